#pragma once

#include <vector>

#include "nn/layers/chunk.hpp"
#include "nn/layers/shape.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::training {

/// The shape that real layers take from the scenario's model. Throws Error where there is no model,
/// or none that real layers can be made of (no vocabulary, selective recomputation, layers other
/// than SwiGLU's with rotary positions, flash attention and no biases), and says what to write.
[[nodiscard]] nn::ModelShape model_shape(const Scenario& scenario);

/// The layers of each stage (Schedule::stage_of), first to last: the embedding in the first, the
/// head in the last. A device's layers (Scenario::layers) are divided over its chunks as evenly as
/// can be, the first get more; copies of the model hold the same layers. Throws Error where a
/// chunk would be empty.
[[nodiscard]] std::vector<nn::LayerRange> layers_of_stages(const Schedule& schedule,
                                                           const Scenario& scenario);

/// The tensors of part `part` of `parts` of a chunk of these layers, as Chunk::weights_of() cuts
/// them: places among the part's numbers.
[[nodiscard]] nn::ParameterPlaces tensors_of_part(const nn::ModelShape& shape, nn::LayerRange chunk,
                                                  int part, int parts);

}  // namespace longhaul::training
