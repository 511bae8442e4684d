#include "harness/profile/model_profile.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "harness/profile/message_probe.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "nn/layers/weights.hpp"
#include "report/record.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

constexpr int kWarmUpRounds = 2;

/// Numbers that are equal for devices with the same chunks.
using BlockNumbers = std::vector<std::vector<int>>;  // embeddings, layers, heads of each chunk
BlockNumbers census_of(const std::vector<nn::LayerRange>& chunks, const nn::ModelShape& shape) {
  BlockNumbers census;
  for (const nn::LayerRange& chunk : chunks) {
    const int embeddings = chunk.first == 0 ? 1 : 0;
    const int heads = chunk.first + chunk.count == shape.layers ? 1 : 0;
    census.push_back({embeddings, chunk.count - embeddings - heads, heads});
  }
  return census;
}

Json to_json(const DeviceProfile& profile, std::size_t at) {
  const BlockSamples& samples = profile.samples;
  const StageMemory& memory = profile.memory;
  return {{"at", at},
          {"F", samples.forward},
          {"B", samples.backward},
          {"D", samples.dgrad},
          {"W", samples.wgrad},
          {"R", samples.recompute},
          {"loss", profile.loss},
          {"memory",
           {memory.weights.count(), memory.resident.count(), memory.activation.count(),
            memory.kept_for_wgrad.count(), memory.kept_recomputed.count(), memory.peak.count(),
            memory.left_over.count()}}};
}

void append(std::vector<double>& to, const Json& values) {
  for (const Json& value : values) to.push_back(value.get<double>());
}

/// Adds what one rank measured.
void merge(std::vector<DeviceProfile>& kinds, const Json& part) {
  DeviceProfile& kind = kinds[part["at"].get<std::size_t>()];
  append(kind.samples.forward, part["F"]);
  append(kind.samples.backward, part["B"]);
  append(kind.samples.dgrad, part["D"]);
  append(kind.samples.wgrad, part["W"]);
  append(kind.samples.recompute, part["R"]);
  kind.loss = part["loss"].get<float>();
  const auto bytes = [&](std::size_t i) { return Bytes{part["memory"][i].get<std::int64_t>()}; };
  kind.memory = {bytes(0), bytes(1), bytes(2), bytes(3), bytes(4), bytes(5), bytes(6)};
}

/// Samples of which the stopping rule speaks: a round, its B aside.
std::vector<double> rounds_of(const BlockSamples& samples) {
  std::vector<double> sums = samples.forward;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += samples.dgrad[i] + samples.wgrad[i];
  return sums;
}

/// This rank's part of a turn: all ranks do as many rounds, begun together.
void measure(engine::Ranks& ranks, nn::TensorOps& math, const nn::ModelShape& shape,
             const StoppingRule& rule, DeviceProfile& mine) {
  int rounds = 0;
  for (const nn::Recompute recompute : {nn::Recompute::off, nn::Recompute::on}) {
    StageProbe probe{math, shape, mine.chunks, recompute};
    BlockSamples ignored;
    for (int i = 0; i < kWarmUpRounds; ++i) probe.round(ignored);
    probe.weigh(mine.memory);
    if (recompute == nn::Recompute::off) {
      do {
        ranks.world().barrier();
        probe.round(mine.samples);
        ++rounds;
      } while (goes_on(rule, rounds, rounds_of(mine.samples), ranks.world()));
      mine.loss = probe.loss();
    } else {
      for (int i = 0; i < rounds; ++i) {
        ranks.world().barrier();
        probe.round(mine.samples);
      }
    }
  }
}

/// Turn by turn, until every kind has been measured by some rank.
void measure_all(engine::Ranks& ranks, nn::TensorOps& math, const nn::ModelShape& shape,
                 const StoppingRule& rule, std::vector<DeviceProfile>& kinds) {
  const auto count = static_cast<std::size_t>(ranks.count());
  for (std::size_t first = 0; first < kinds.size(); first += count) {
    const std::size_t at = (first + index(ranks.self())) % kinds.size();
    DeviceProfile mine{kinds[at].name, kinds[at].chunks, kinds[at].devices};
    measure(ranks, math, shape, rule, mine);
    for (const std::string& text : gather_texts(ranks.world(), to_json(mine, at).dump()))
      merge(kinds, Json::parse(text));
  }
}

}  // namespace

const DeviceProfile& ModelProfile::of_device(int device) const {
  return *std::ranges::find_if(devices, [&](const DeviceProfile& profile) {
    return std::ranges::find(profile.devices, device) != profile.devices.end();
  });
}

std::vector<DeviceProfile> profiled_devices(const Schedule& schedule, const Scenario& scenario) {
  const nn::ModelShape shape = training::model_shape(scenario);
  const std::vector<nn::LayerRange> stages = training::layers_of_stages(schedule, scenario);
  std::vector<DeviceProfile> kinds;
  for (int device = 0; device < schedule.devices; ++device) {
    std::vector<nn::LayerRange> chunks;
    for (const ChunkId chunk : chunks_on(schedule, DeviceId{device}))
      chunks.push_back(stages[static_cast<std::size_t>(schedule.stage_of(chunk))]);
    for (const nn::LayerRange& chunk : chunks) nn::check_layers(shape, chunk);
    const BlockNumbers census = census_of(chunks, shape);
    const auto same_kind = std::ranges::find_if(
        kinds, [&](const DeviceProfile& kind) { return census_of(kind.chunks, shape) == census; });
    if (same_kind != kinds.end())
      same_kind->devices.push_back(device);
    else
      kinds.push_back({"", chunks, {device}});
  }
  for (DeviceProfile& kind : kinds)
    kind.name = fmt::format("stage{} {}", kind.devices.size() == 1 ? "" : "s",
                            report::ranges_text(kind.devices));
  return kinds;
}

ModelProfile profile_model(engine::Ranks& ranks, nn::TensorOps& math, const Scenario& scenario,
                           const Schedule& schedule, const ProfileOptions& options) {
  ModelProfile profile;
  profile.shape = training::model_shape(scenario);
  profile.type = math.working_type();
  profile.devices = profiled_devices(schedule, scenario);
  for (const ModelPart& part : parts_of(profile.shape))
    profile.parts.push_back({part.name, {part.layers}, {}});
  measure_all(ranks, math, profile.shape, options.rule, profile.devices);
  measure_all(ranks, math, profile.shape, options.rule, profile.parts);
  profile.message =
      message_times(ranks, math, profile.shape.boundary(), options.rule.least, options.patience);
  ranks.world().barrier();
  profile.operators = operator_times(math, profile.shape, options.rule.least);
  ranks.world().barrier();
  return profile;
}

}  // namespace longhaul::harness
