#include <algorithm>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

/// The given lists of [costs]; empty where a key is missing.
struct GivenTimes {
  std::vector<Duration> forward, backward, dgrad, wgrad, recompute;
};

/// Reads `key` for every stage; empty where it is missing.
template <typename Read>
auto read_list(const std::optional<Section>& section, const char* key, int stages, Read read) {
  using List = decltype(read_per_stage(Field{}, stages, read));
  const auto field = section ? section->find(key) : std::nullopt;
  return field ? read_per_stage(*field, stages, read) : List{};
}

GivenTimes read_times(const std::optional<Section>& section, int stages) {
  const auto list = [&](const char* key) { return read_list(section, key, stages, read_duration); };
  return {list("forward"), list("backward"), list("dgrad"), list("wgrad"), list("recompute")};
}

/// dgrad and wgrad out of backward: halves, the odd nanosecond on dgrad, or what the given one of
/// them leaves.
void split_backward(const GivenTimes& given, const Section& section, Costs& costs) {
  for (int stage = 0; stage < static_cast<int>(given.backward.size()); ++stage) {
    const Duration whole = given.backward[at(stage)];
    Duration wgrad = whole / 2;
    if (!given.wgrad.empty()) wgrad = given.wgrad[at(stage)];
    if (!given.dgrad.empty()) wgrad = whole - given.dgrad[at(stage)];
    if (wgrad < Duration::zero() || wgrad > whole)
      fail_at(section.place(),
              "costs.backward of stage {} is {}, less than its {} (the other part would be "
              "negative). Give dgrad and wgrad both, or a longer backward.",
              stage, longhaul::to_text(whole), given.dgrad.empty() ? "wgrad" : "dgrad");
    costs.wgrad[at(stage)] = wgrad;
    costs.dgrad[at(stage)] = whole - wgrad;
  }
}

void add_up_backward(Costs& costs) {
  costs.backward.resize(costs.dgrad.size());
  std::ranges::transform(costs.dgrad, costs.wgrad, costs.backward.begin(), std::plus<>{});
}

/// Without a model the forward time stands for all that is not given; with one, the model does.
void set_times(const GivenTimes& given, const Section& section, bool has_model, Costs& costs) {
  if (!has_model) {
    for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute})
      *times = given.forward;
    add_up_backward(costs);
  }
  const auto replace = [](std::vector<Duration>& times, const std::vector<Duration>& by) {
    if (!by.empty()) times = by;
  };
  replace(costs.forward, given.forward);
  replace(costs.recompute, given.recompute);
  replace(costs.dgrad, given.dgrad);
  replace(costs.wgrad, given.wgrad);
  if (given.backward.empty()) {
    if (!given.dgrad.empty() || !given.wgrad.empty()) add_up_backward(costs);
    return;
  }
  costs.backward = given.backward;
  if (given.dgrad.empty() || given.wgrad.empty()) split_backward(given, section, costs);
}

/// Replaces a size where the file gives one; true where it is known then.
bool set_size(const std::optional<Section>& section, const char* key, int stages, Bytes least,
              bool has_model, std::vector<Bytes>& sizes, const std::vector<Bytes>& otherwise) {
  const auto given = read_list(section, key, stages, [&](const Field& field) {
    const Bytes size = read_bytes(field);
    if (size < least)
      fail_at(field.node->place, "{} = {} is too small ({} is the least). Give the real size.",
              field.path, to_text(*field.node), longhaul::to_text(least));
    return size;
  });
  if (!given.empty())
    sizes = given;
  else if (!has_model)
    sizes = otherwise;
  return has_model || !given.empty();
}

void set_sizes(const std::optional<Section>& section, int stages, bool has_model,
               LoadedCosts& loaded) {
  Costs& costs = loaded.costs;
  const std::vector<Bytes> small(at(stages), 1_MiB);
  loaded.message_known = set_size(section, "message", stages, 1_B, has_model, costs.message, small);
  std::vector<Bytes> twice = costs.message;
  for (Bytes& size : twice) size += size;
  loaded.activation_known =
      set_size(section, "activation", stages, 1_B, has_model, costs.activation, twice);
  loaded.weights_known = set_size(section, "weights", stages, 0_B, has_model, costs.weights,
                                  std::vector<Bytes>(at(stages)));
}

/// Costs are of speed 1.
void divide_by_speed(const Scenario& scenario, Costs& costs) {
  for (const DeviceId stage : scenario.device_ids()) {
    const double speed = scenario.speed_of_stage(stage);
    if (speed == 1) continue;
    for (auto* times :
         {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute})
      (*times)[index(stage)] = scaled((*times)[index(stage)], 1 / speed);
  }
}

}  // namespace

LoadedCosts read_costs(const ConfigNode& root, const std::optional<LoadedModel>& model,
                       const Scenario& scenario) {
  const int stages = scenario.parallel.stages;
  const auto section = section_of(root, "costs",
                                  {"file", "forward", "backward", "dgrad", "wgrad", "recompute",
                                   "activation", "message", "weights"});
  LoadedCosts loaded;
  if (model) {
    try {
      loaded.costs = model_costs(model->model, scenario.layers, model->measured);
    } catch (const Error& error) {
      fail_at(model->place, "{}", error.what());
    }
  }
  if (!model && !section)
    fail_at(root.place,
            "there is neither [model] nor [costs] (what a block costs is unknown). Add "
            "[model] preset = \"m70\", or [costs] forward = \"40ms\".");
  if (!model) (void)section->require("forward", "there is no [model] to take it from");
  if (section) set_times(read_times(section, stages), *section, model.has_value(), loaded.costs);
  set_sizes(section, stages, model.has_value(), loaded);
  divide_by_speed(scenario, loaded.costs);
  if (*std::ranges::max_element(loaded.costs.forward) == Duration::zero())
    fail_at(section ? section->place() : model->place,
            "the forward time of every stage is zero (ratios are measured in the largest). Give "
            "at least \"1ns\".");
  return loaded;
}

}  // namespace longhaul::scenario
