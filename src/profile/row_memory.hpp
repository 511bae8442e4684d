#pragma once

#include "base/units.hpp"
#include "profile/training_row.hpp"

namespace longhaul::profile {

/// Bytes of the GPU that holds most, by cause.
struct RowMemory {
  double weights = 0;      ///< half-precision weights and gradients
  double optimizer = 0;    ///< master weights and two moments
  double activations = 0;  ///< of microbatches in flight
  double working = 0;      ///< what recomputing a layer needs, gathered layers, logits
  double buffers = 0;      ///< of messages between stages
  [[nodiscard]] Bytes total() const;
};

/// 16 bytes a weight (2 and 2, and 12 of the optimizer), divided as the sharding says. Activations
/// of a layer and microbatch: s b h (34 + 5 a s / h), of which tensor ranks share all but 10, with
/// sequence parallelism all; without scores 34 alone; with full recomputation the layer's input
/// alone, s b h 2 (Korthikanti et al., arXiv 2205.05198, section 4, equations 1 to 6). In flight:
/// min(p, M) microbatches on the first stage, interleaved with v chunks (p - 1) / v more. A
/// buffer for each message between stages: activations and gradients, each way.
[[nodiscard]] RowMemory memory_of(const TrainingRow& row);
/// The same with so many microbatches in flight.
[[nodiscard]] RowMemory memory_of(const TrainingRow& row, double in_flight);

/// Activations in flight on the GPU that holds most, in activations of its stage.
[[nodiscard]] double in_flight(RowSchedule schedule, int pipeline, int chunks, int microbatches);

}  // namespace longhaul::profile
