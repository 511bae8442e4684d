#pragma once

#include <cstdint>
#include <string_view>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// Bytes of so many numbers between two stages. Of `topk` places are taken to be as if drawn at
/// random; a real message may differ by a few bytes.
[[nodiscard]] Bytes activation_bytes(const ActivationCompression& how, std::int64_t numbers);

/// Why stages cannot send each other activations in a format of their own; empty: they can.
[[nodiscard]] std::string_view why_no_activations(const Scenario& scenario);

/// Activations travel as `how` says, and all messages between stages are as long as that makes
/// them. Only where why_no_activations() is empty.
void send_activations_as(Scenario& scenario, const ActivationCompression& how);

}  // namespace longhaul::scenario
