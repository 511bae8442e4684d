#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.hpp"
#include "scenario/model_costs.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

std::vector<int> read_list(const Field& field, const Model& model, int stages) {
  (void)elements(field);
  const std::vector<int> layers = read_per_stage(field, stages, [&](const Field& item) {
    return static_cast<int>(read_integer(item, 1, model.layers));
  });
  const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != model.layers)
    fail_at(field.node->place, "{} adds up to {} layers (the model has {}). Make them equal.",
            field.path, sum, model.layers);
  return layers;
}

/// Bytes of a stage with so many layers that may hold what the budget allows, as far as layers
/// decide it: messages under way come on top.
double memory_of(const Scenario& scenario, const Memory& memory, int stage, int layers) {
  const Model& model = *scenario.model;
  const Parallel& parallel = scenario.parallel;
  const int first = stage == 0 ? 0 : 1;  // only the first and the last layer are special
  Bytes weights = layer_weights(model, first, layers);
  if (stage > 0 && stage + 1 == parallel.stages)
    weights = layer_weights(model, model.layers - layers, layers);
  const double held = memory.budget * std::min(parallel.stages, parallel.microbatches);
  const double activations = held * static_cast<double>(layer_activation(model, layers).count());
  const auto& fixed = memory.fixed[at(stage)];
  if (fixed) return activations + static_cast<double>(fixed->count());
  // bf16 weights and gradients; an optimizer of six times the weights (schedule/memory.hpp)
  const bool divided = divides_optimizer(parallel.gradient_sync);
  const double copies = 2.0 + 6.0 / (divided ? parallel.replicas : parallel.shard);
  return activations + copies * static_cast<double>(weights.count());
}

/// How many layers fit into each stage where its capacity is given.
std::vector<int> most_layers(const Scenario& scenario, const Memory& memory) {
  const int layers = scenario.model->layers;
  std::vector<int> most(memory.capacity.size(), layers);
  for (std::size_t stage = 0; stage < most.size(); ++stage) {
    if (!memory.capacity[stage]) continue;
    const auto capacity = static_cast<double>(memory.capacity[stage]->count());
    const auto fits = [&](int count) {
      return memory_of(scenario, memory, static_cast<int>(stage), count) <= capacity;
    };
    while (most[stage] > 0 && !fits(most[stage])) --most[stage];
  }
  return most;
}

std::vector<int> balance(const Field& field, const ConfigNode& root, const Scenario& scenario) {
  const int stages = scenario.parallel.stages;
  std::vector<double> speeds;
  for (const DeviceId stage : ids<DeviceId>(stages))
    speeds.push_back(scenario.speed_of_stage(stage));
  const std::vector<int> most = most_layers(scenario, read_memory(root, stages, true));
  const auto layers = balanced_layers(scenario.model->layers, speeds, most);
  if (!layers)
    fail_at(field.node->place,
            "{} = \"balanced\" finds no place for {} layers (memory.capacity leaves room for {} "
            "with memory.budget = {}). Use more stages, a smaller budget or a list of your own.",
            field.path, scenario.model->layers,
            std::accumulate(most.begin(), most.end(), std::int64_t{0}),
            read_memory(root, stages, true).budget);
  return *layers;
}

}  // namespace

std::vector<int> read_layers(const ConfigNode& root, const LoadedModel& loaded,
                             const Scenario& scenario) {
  const int stages = scenario.parallel.stages;
  std::vector<int> even;
  try {
    even = layers_of_stages(loaded.model, stages);
  } catch (const Error& error) {
    fail_at(loaded.place, "{}", error.what());
  }
  const ConfigNode* node = root.find("model")->find("layers_per_stage");
  if (node == nullptr) return even;
  const Field field{node, "model.layers_per_stage"};
  if (node->kind != ConfigNode::Kind::text) return read_list(field, loaded.model, stages);
  return read_choice(field, {"even", "balanced"}) == 0 ? even : balance(field, root, scenario);
}

}  // namespace longhaul::scenario
