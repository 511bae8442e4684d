#pragma once

#include <memory>

#include "training/parts/rival_methods.hpp"

namespace longhaul::training {

/// 1-bit Adam (Tang et al. 2021): dense Adam for RivalSettings::warm_up steps, then one bit a
/// number. Every replica has all sets, and plays the server that answers with one bit a number,
/// too: its residual is the same everywhere. An exchange is direct or a ring; no update is late,
/// for a set holds the momentum after the last. Throws Error where there is no warm-up: the second
/// moment that it leaves divides every later step.
[[nodiscard]] std::unique_ptr<PartMethod> make_one_bit(const RivalSettings& settings,
                                                       const PartPlace& place,
                                                       const StepSettings& step);

}  // namespace longhaul::training
