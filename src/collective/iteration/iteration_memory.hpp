#pragma once

#include <vector>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"
#include "collective/iteration/iteration_times.hpp"

namespace longhaul::collective {

/// What a device holds all the time: weights, gradients (`gradient_bytes` a number) and an
/// optimizer of six times the weights, each whole or divided as `parallel` says: ZeRO-1 divides the
/// optimizer over the replicas, 2 the gradients too, 3 all of them over `shard` of them; and
/// buffers of messages between stages. `[memory] static` replaces the first three.
[[nodiscard]] Bytes always_held(const IterationPlan& plan, DeviceId stage);

/// A gather of each unit's weights, in the order in which they are used: the first place in the
/// order of operations at whose start it fits into the device's capacity beside what is held then,
/// until its last operation; 0 where no capacity is given.
[[nodiscard]] std::vector<std::uint32_t> earliest_gathers(const IterationPlan& plan,
                                                          DeviceId stage);

/// None: the capacity of each device has room for what it always holds and the largest unit,
/// gathered and its gradients.
[[nodiscard]] std::optional<Refusal> why_no_unit_fits(const IterationPlan& plan);

/// The most that a rank holds at a time: what it always holds, activations, gathered weights and
/// gradients on their way (Communication::holds).
[[nodiscard]] Bytes peak_memory(const IterationPlan& plan, const IterationTimes& times, Rank rank);

}  // namespace longhaul::collective
