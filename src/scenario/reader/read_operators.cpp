#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/files/operators_table.hpp"
#include "scenario/files/profiled_operators.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/presets.hpp"
#include "scenario/reader/link_values.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::scenario {
namespace {

constexpr MeasuredKind kTableKind{"costs.operators", "profiles", "costs", "the table of operators",
                                  "what bench_profile wrote"};
std::string read_operator_name(const Section& section) {
  const Field field = section.require("name", "traces and tables name it");
  std::string name = read_text(field);
  if (name.empty() || name != shown(name) || name.find(',') != std::string::npos)
    fail_at(field.node->place,
            "operator.name = \"{}\" is no name (it stands in tables: 1 to 60 characters in one "
            "line, no comma). Choose another.",
            shown(name));
  return name;
}

Operator read_operator(const ConfigNode& table) {
  const Section section{
      table, "operator", {"name", "kind", "weights", "forward", "dgrad", "wgrad", "recompute"}};
  Operator result;
  result.name = read_operator_name(section);
  result.kind = read_choice<OperatorKind>(section.require("kind", "it says what it computes"));
  if (const auto field = section.find("weights")) result.weights = read_bytes(*field);
  const std::string why = fmt::format("nothing else tells how long \"{}\" takes", result.name);
  result.forward = read_duration(section.require("forward", why));
  result.dgrad = read_duration(section.require("dgrad", why));
  const auto wgrad = section.find("wgrad");
  if (wgrad || result.weights > Bytes{})
    result.wgrad = read_duration(wgrad ? *wgrad : section.require("wgrad", why));
  const auto recompute = section.find("recompute");
  result.recompute = recompute ? read_duration(*recompute) : result.forward;
  return result;
}

/// Fails where something else says what blocks take.
void refuse_beside(const ConfigNode& root, const ConfigPosition& place) {
  if (root.find("model") != nullptr)
    fail_at(place,
            "[[operator]] and [model] are both given (each says what blocks take). Keep one.");
  constexpr std::array kAlso{"forward", "backward", "dgrad",     "wgrad",  "recompute",
                             "file",    "weights",  "operators", "profile"};
  if (const char* const key = given_in_costs(root, kAlso))
    fail_at(place,
            "[[operator]] and [costs] with {} are both given (each says what blocks take). Keep "
            "one; [costs] may have activation, message and optimizer beside operators.",
            key);
}

std::vector<Operator> read_list(const std::vector<const ConfigNode*>& tables, int stages) {
  std::vector<Operator> all;
  for (const ConfigNode* const table : tables) all.push_back(read_operator(*table));
  if (std::ssize(all) < stages)
    fail_at(tables.front()->place,
            "{} [[operator]] for parallel.stages = {} (a stage would be empty). Give one for each "
            "stage at least.",
            all.size(), stages);
  constexpr double kLongest = 0x1p60;
  double sum = 0;
  for (const Operator& each : all)
    sum +=
        static_cast<double>((each.forward + each.recompute + each.dgrad + each.wgrad).count() / 4);
  if (!(sum < kLongest / 8))
    fail_at(tables.front()->place,
            "the times of all [[operator]] add up to {:.3g} years (18 are the limit). Check their "
            "units.",
            4 * sum / 1e9 / 86400 / 365.25);
  return all;
}

constexpr MeasuredKind kOperatorsKind{"costs.profile", "profiles", "costs",
                                      "the profile of operators", "an operators.csv"};
constexpr MeasuredKind kCollectivesKind{"costs.collectives", "profiles", "costs",
                                        "the table of collectives", "a collectives.csv"};
constexpr MeasuredKind kTasksKind{"costs.tasks", "profiles", "costs", "the table of tasks",
                                  "a tasks.csv"};

bool is_given(const ConfigNode& root, const char* key) {
  return given_in_costs(root, std::array{key}) != nullptr;
}

MeasuredText text_of(const ConfigNode& root, const char* key, const MeasuredKind& kind) {
  return read_measured(root, Field{root.find("costs")->find(key), kind.key}, kind);
}

/// How many ranks a node has, which the number of nodes of a tensor group follows from. The
/// sections themselves are read later, and refused there.
void peek_nodes(const ConfigNode& root, Scenario& scenario) {
  for (const ConfigNode* const table : tables_of(root, "node")) {
    const ConfigNode* const where = table->find("datacenter");
    if (where == nullptr || where->kind != ConfigNode::Kind::text) continue;
    NodeInterfaces node;
    const auto found = std::ranges::find(scenario.datacenters, where->text, &Datacenter::name);
    if (found == scenario.datacenters.end()) continue;
    node.datacenter = DatacenterId{static_cast<int>(found - scenario.datacenters.begin())};
    node.gpus = found->gpus_per_node.value_or(1);
    if (const ConfigNode* const preset = table->find("preset"))
      for (const NodePreset& each : node_presets())
        if (each.name == preset->text) node.gpus = each.gpus;
    if (const ConfigNode* const gpus = table->find("gpus"))
      node.gpus = static_cast<int>(std::clamp<std::int64_t>(gpus->integer, 1, 1 << 20));
    scenario.nodes.push_back(node);
  }
}

void refuse_tables_alone(const ConfigNode& root) {
  for (const char* key : {"collectives", "tasks"})
    if (is_given(root, key))
      fail_at(root.find("costs")->find(key)->place,
              "costs.{} needs costs.profile (it has the times of some of its operators). Name the "
              "profile too.",
              key);
}

std::vector<Duration> by_stage(const std::vector<Duration>& of_layers,
                               const std::vector<int>& layers_of_stages) {
  std::vector<Duration> sums;
  auto next = of_layers.begin();
  for (const int layers : layers_of_stages) {
    Duration sum{};
    for (int i = 0; i < layers; ++i) sum += *next++;
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace

std::span<const char* const> keys_of_block_times() {
  static constexpr std::array kTimes{"forward", "backward", "dgrad", "wgrad", "recompute", "file"};
  return kTimes;
}

const char* given_in_costs(const ConfigNode& root, std::span<const char* const> keys) {
  const ConfigNode* const costs = root.find("costs");
  if (costs == nullptr || costs->kind != ConfigNode::Kind::table) return nullptr;
  const auto given = [&](const char* key) {
    const ConfigNode* const value = costs->find(key);
    return value != nullptr && !(value->kind == ConfigNode::Kind::text && value->text.empty());
  };
  const auto found = std::ranges::find_if(keys, given);
  return found == keys.end() ? nullptr : *found;
}

std::shared_ptr<const PieceTimes> piece_times(const Scenario& scenario) {
  if (!scenario.operators.of_rank || !scenario.model) return nullptr;
  const std::vector<std::string> overrides = stored_options(scenario.text).set;
  const ConfigNode root = scenario_tree(scenario.text, scenario.name, overrides);
  if (!is_given(root, "profile")) return nullptr;
  const MeasuredText text = text_of(root, "profile", kOperatorsKind);
  return std::make_shared<const PieceTimes>(read_profile_table(text.text, text.name), scenario);
}

std::optional<LoadedOperators> read_profile(const ConfigNode& root,
                                            const std::optional<LoadedModel>& model,
                                            const Scenario& scenario) {
  if (!is_given(root, "profile")) {
    refuse_tables_alone(root);
    return std::nullopt;
  }
  const ConfigPosition& place = root.find("costs")->find("profile")->place;
  if (!model)
    fail_at(place,
            "costs.profile needs [model] (its sizes say which operators there are). Add [model].");
  if (is_given(root, "operators"))
    fail_at(place,
            "costs.profile and costs.operators are both given (each says what operators "
            "take). Keep one.");
  Scenario seen = scenario;
  peek_nodes(root, seen);
  seen.memory.recompute = read_recompute(root) == RecomputeKind::full;
  LoadedOperators loaded;
  OperatorProfile profile;
  const MeasuredText text = text_of(root, "profile", kOperatorsKind);
  profile.operators = read_profile_table(text.text, text.name);
  loaded.held_text = text.held;
  if (is_given(root, "collectives")) {
    const MeasuredText table = text_of(root, "collectives", kCollectivesKind);
    profile.collectives = read_collective_table(table.text, table.name);
    loaded.held_text += table.held;
  }
  if (is_given(root, "tasks")) {
    const MeasuredText table = text_of(root, "tasks", kTasksKind);
    profile.tasks = read_task_table(table.text, table.name);
    loaded.held_text += table.held;
  }
  ProfiledOperators made = profiled_operators(profile, seen);
  loaded.operators.all = std::make_shared<const std::vector<Operator>>(std::move(made.all));
  loaded.operators.tasks = std::move(made.tasks);
  loaded.operators.of_rank = true;
  loaded.operators.are_costs =
      !model->measured && given_in_costs(root, keys_of_block_times()) == nullptr;
  if (loaded.operators.are_costs) loaded.optimizer = by_stage(made.update, scenario.layers);
  return loaded;
}

LoadedOperators read_operators(const ConfigNode& root, const std::optional<LoadedModel>& model,
                               const Scenario& scenario) {
  LoadedOperators loaded;
  const auto keep = [&](std::vector<Operator> all) {
    loaded.operators.all = std::make_shared<const std::vector<Operator>>(std::move(all));
  };
  if (const auto tables = tables_of(root, "operator"); !tables.empty()) {
    refuse_beside(root, tables.front()->place);
    keep(read_list(tables, scenario.parallel.stages));
    loaded.operators.are_costs = true;
    return loaded;
  }
  if (auto profile = read_profile(root, model, scenario)) return *std::move(profile);
  if (given_in_costs(root, std::array{"operators"}) == nullptr) {
    if (model) keep(model_operators(model->model));
    return loaded;
  }
  const Field field{root.find("costs")->find("operators"), kTableKind.key};
  if (!model)
    fail_at(field.node->place,
            "costs.operators needs [model] (its sizes say which product is which). Add [model], or "
            "give [[operator]] instead.");
  const MeasuredText table = read_measured(root, field, kTableKind);
  keep(read_operators_table(table.text, table.name, model->model));
  loaded.held_text = table.held;
  loaded.operators.are_costs =
      !model->measured && given_in_costs(root, keys_of_block_times()) == nullptr;
  return loaded;
}

}  // namespace longhaul::scenario
