#pragma once

#include <vector>

#include "plan/link_model/weather.hpp"

namespace longhaul::sim {

/// One iteration of a run in virtual time.
struct PlayedIteration {
  Duration begin{};  ///< since the start of the weather
  Duration makespan{};
};

/// Runs `count` iterations of a plan back to back under its weather, the first at its start: each
/// begins when the one before has ended on all ranks. Throws Error if the plan deadlocks, or if the
/// run would last beyond 2^61 ns (73 years).
[[nodiscard]] std::vector<PlayedIteration> play_iterations(const Plan& plan,
                                                           const plan::Weather& weather, int count);

}  // namespace longhaul::sim
