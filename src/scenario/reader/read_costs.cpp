#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/training/read_train.hpp"
#include "scenario/training/training_presets.hpp"

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

/// Operators that are the costs, by stages: their times, and without a model their weights.
void take_operators(const Scenario& scenario, bool has_model, Costs& costs) {
  const Costs sums = operator_costs(*scenario.operators.all, operators_of_stages(scenario));
  costs.forward = sums.forward;
  costs.backward = sums.backward;
  costs.dgrad = sums.dgrad;
  costs.wgrad = sums.wgrad;
  costs.recompute = sums.recompute;
  if (!has_model) costs.weights = sums.weights;
}

/// Of a training preset: f32 gradients of its parameters, and times of the GPUs of replica 0.
void take_preset(const ConfigNode& root, const Scenario& scenario, Costs& costs) {
  const TrainingPreset* const preset = find_training_preset(scenario.train.preset);
  if (preset == nullptr) return;
  const std::vector<Costs> of_gpus = costs_of_gpus(root, scenario);
  if (!of_gpus.empty()) costs = of_gpus.front();
  for (int stage = 0; stage < scenario.parallel.stages; ++stage)
    costs.weights.push_back(share(Bytes{4 * preset->parameters}, scenario.parallel.stages, stage));
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
  const bool of_operators = !costs.weights.empty();
  loaded.weights_known = set_size(section, "weights", stages, 0_B, of_operators, costs.weights,
                                  std::vector<Bytes>(at(stages)));
  if (of_operators && !has_model)
    loaded.weights_known = *std::ranges::max_element(costs.weights) > Bytes{};
}

/// Selective recomputation makes a backward longer by attention's scores. Refused where nothing
/// says by how much: neither a model, whose scores are known, nor a backward that is given.
void refuse_unknown_selective(const ConfigNode& root, const std::optional<LoadedModel>& model) {
  if (read_recompute(root) != RecomputeKind::selective) return;
  const ConfigPosition& place = root.find("memory")->find("recompute")->place;
  constexpr std::array kMeasured{"file", "operators"};
  const char* const measured = given_in_costs(root, kMeasured);
  if (model && model->model.computes_scores_again() && measured != nullptr)
    fail_at(place,
            "memory.recompute = \"selective\" beside costs.{} (bench_profile measured layers that "
            "keep no scores, so that their backward has them in already). Take costs.profile, or "
            "recompute = false.",
            measured);
  constexpr std::array kBackward{"backward", "dgrad"};
  if (model || !tables_of(root, "operator").empty() || given_in_costs(root, kBackward) != nullptr)
    return;
  fail_at(place,
          "memory.recompute = \"selective\" needs [model], or costs.backward or dgrad with it in "
          "(nothing else tells how long attention's scores take). Add one of them.");
}

/// The optimizer's step takes no time unless it is given, or in the profile of `operators`.
std::vector<Duration> read_optimizer(const std::optional<Section>& section, int stages,
                                     const std::vector<Duration>& of_profile) {
  std::vector<Duration> times = read_list(section, "optimizer", stages, read_duration);
  if (times.empty()) times = of_profile;
  if (std::ranges::count(times, Duration::zero()) == std::ssize(times)) times.clear();
  return times;
}

/// Of a model, each of the tensor ranks has its part: of the work, of what is kept, of the weights
/// and of what crosses to the next stage (cut as sequence parallelism cuts it).
void divide_over_tensor(const Scenario& scenario, Costs& costs) {
  const int tensor = scenario.parallel.tensor;
  if (tensor == 1) return;
  if (!scenario.operators.of_rank)
    for (auto* times :
         {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute})
      for (Duration& time : *times) time = (time + Duration{tensor - 1}) / tensor;
  std::vector<std::vector<Bytes>*> divided{&costs.activation, &costs.weights};
  if (scenario.parallel.p2p == P2pKind::scatter_gather) divided.push_back(&costs.message);
  for (auto* sizes : divided)
    for (Bytes& size : *sizes) size = Bytes{(size.count() + tensor - 1) / tensor};
}

/// The times of the model or of operators, which keys replace; nothing where there is neither.
Costs default_costs(const ConfigNode& root, const std::optional<LoadedModel>& model,
                    const Scenario& scenario) {
  Costs costs;
  if (model) {
    try {
      costs = model_costs(model->model, scenario.layers, model->measured);
    } catch (const Error& error) {
      fail_at(model->place, "{}", error.what());
    }
    const std::vector<Costs> of_gpus = costs_of_gpus(root, scenario);
    if (!of_gpus.empty())
      for (const auto times :
           {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad, &Costs::recompute})
        costs.*times = of_gpus.front().*times;
  }
  if (scenario.operators.are_costs) take_operators(scenario, model.has_value(), costs);
  if (!model && !scenario.operators.are_costs) take_preset(root, scenario, costs);
  return costs;
}

}  // namespace

LoadedCosts read_costs(const ConfigNode& root, const std::optional<LoadedModel>& model,
                       const Scenario& scenario, const std::vector<Duration>& optimizer) {
  const int stages = scenario.parallel.stages;
  const auto section =
      section_of(root, "costs",
                 {"file", "operators", "profile", "collectives", "tasks", "forward", "backward",
                  "dgrad", "wgrad", "recompute", "optimizer", "activation", "message", "weights"});
  refuse_unknown_selective(root, model);
  LoadedCosts loaded;
  loaded.costs = default_costs(root, model, scenario);
  if (model) divide_over_tensor(scenario, loaded.costs);
  const bool has_times = !loaded.costs.forward.empty();
  if (!has_times && !section)
    fail_at(root.place,
            "there is neither [model] nor [costs] (what a block costs is unknown). Add "
            "[model] preset = \"m70\", or [costs] forward = \"40ms\".");
  if (!has_times) (void)section->require("forward", "there is no [model] to take it from");
  if (section) set_times(read_times(section, stages), *section, has_times, loaded.costs);
  set_sizes(section, stages, model.has_value(), loaded);
  loaded.costs.optimizer = read_optimizer(section, stages, optimizer);
  if (*std::ranges::max_element(loaded.costs.forward) == Duration::zero())
    fail_at(section ? section->place()
            : model ? model->place
                    : root.place,
            "the forward time of every stage is zero (ratios are measured in the largest). Give "
            "at least \"1ns\".");
  return loaded;
}

Costs changed_costs(const Section& section, int stages, const Costs& common) {
  LoadedCosts changed;
  changed.costs = common;
  GivenTimes given = read_times(section, stages);
  // What is computed once more takes as long again, unless either of them says otherwise.
  if (given.recompute.empty() && common.recompute == common.forward)
    given.recompute = given.forward;
  set_times(given, section, true, changed.costs);
  set_size(section, "activation", stages, 1_B, true, changed.costs.activation, {});
  set_size(section, "message", stages, 1_B, true, changed.costs.message, {});
  return changed.costs;
}

}  // namespace longhaul::scenario
