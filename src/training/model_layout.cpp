#include "training/model_layout.hpp"

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {
namespace {

/// Real layers are of one kind; what a scenario asks for beside it would be left out silently.
void refuse_other_layers(const Scenario& scenario) {
  const Model& model = *scenario.model;
  const auto refuse = [&](const char* key, const std::string& asked, const char* real) {
    fail(
        "model.{} = {} of scenario {} (real layers have {} alone). Write {} = {}, take a preset "
        "that has it, or use --compute timed.",
        key, asked, scenario.name, real, key, real);
  };
  const auto quoted = [](const auto& value) { return fmt::format("\"{}\"", to_string(value)); };
  if (model.mlp != MlpKind::swiglu) refuse("mlp", quoted(model.mlp), "\"swiglu\"");
  if (model.positions != PositionKind::rotary)
    refuse("positions", quoted(model.positions), "\"rotary\"");
  if (model.attention != AttentionKind::flash)
    refuse("attention", quoted(model.attention), "\"flash\"");
  if (model.biases) refuse("biases", "true", "false");
}

}  // namespace

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
  refuse_other_layers(scenario);
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
