#include "training/model_layout.hpp"

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {

nn::ModelShape model_shape(const Scenario& scenario) {
  if (!scenario.model)
    fail(
        "scenario {} has no model (real layers need its dimensions). Add [model] with layers, "
        "hidden, intermediate, heads, sequence_length and vocabulary, or use --compute timed.",
        scenario.name);
  const Model& model = *scenario.model;
  if (model.vocabulary == 0)
    fail(
        "the model of scenario {} has no vocabulary (real layers read tokens and predict the "
        "next). Write vocabulary = 256 in [model], or --set model.vocabulary=256.",
        scenario.name);
  if (model.selective_recompute)
    fail(
        "memory.recompute = \"selective\" of scenario {} (real layers keep no scores: their "
        "attention computes them again in every backward). Write false or true, or use --compute "
        "timed.",
        scenario.name);
  if (model.layers < 2)
    fail(
        "the model of scenario {} has {} layer (embedding and output head are one each). Write "
        "layers = 2 or more.",
        scenario.name, model.layers);
  return {.batch = model.microbatch_size,
          .sequence = model.sequence_length,
          .hidden = model.hidden,
          .intermediate = model.intermediate,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .vocabulary = model.vocabulary,
          .layers = model.layers};
}

std::vector<nn::LayerRange> layers_of_stages(const Schedule& schedule, const Scenario& scenario) {
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  std::vector<nn::LayerRange> stages;
  int first = 0;
  for (const ChunkId chunk : ids<ChunkId>(schedule.chunks_of_copy())) {
    const DeviceId device = schedule.device_of_chunk[chunk];
    const int layers = scenario.layers[index(device)];
    const auto [of, place] = shares[chunk];
    const int count = layers / of + (place < layers % of ? 1 : 0);
    if (count == 0)
      fail(
          "chunk {} of schedule {} would hold no layer (device {} has {} for {} chunks). Give the "
          "model more layers (--set model.layers={}), or name schedules of one chunk a device.",
          chunk, schedule.name, device, layers, of, schedule.chunks_of_copy());
    stages.push_back({first, count});
    first += count;
  }
  return stages;
}

nn::ParameterPlaces tensors_of_part(const nn::ModelShape& shape, nn::LayerRange chunk, int part,
                                    int parts) {
  const int first = part * chunk.count / parts, past = (part + 1) * chunk.count / parts;
  if (first == past) return {};
  return nn::parameter_places(shape, {chunk.first + first, past - first});
}

}  // namespace longhaul::training
