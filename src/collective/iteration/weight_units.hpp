#pragma once

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

struct UnitsOfStage {
  std::vector<WeightUnit> units;
  /// By chunk and place of the operator; -1: of none.
  IndexedVector<ChunkId, std::vector<std::int32_t>> unit_of;
};

/// The units of a stage's chunks: `parallel.sharding.unit_layers` layers each (operators of a list
/// without layers count as one), or each operator with weights. Weights of a normalization go with
/// the next operator's, or where there is none with the one before. The weights of a chunk are cut
/// in proportion to those of its operators, so that they add up to it.
[[nodiscard]] UnitsOfStage weight_units(const IterationPlan& plan, DeviceId stage);

/// The weights of each operator of a chunk: they add up to those of the chunk.
[[nodiscard]] std::vector<Bytes> weights_of_operators(const IterationPlan& plan, ChunkId chunk);

/// Of weights of 2 bytes a number, what their gradients take.
[[nodiscard]] Bytes gradients_of(Bytes weights, const Scenario& scenario);

}  // namespace longhaul::collective
