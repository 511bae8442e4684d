#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/files/operators_table.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

constexpr MeasuredKind kTableKind{"costs.operators", "profiles", "costs", "the table of operators",
                                  "what bench_profile wrote"};
/// Of [costs]: what says how long a block takes.
constexpr std::array kTimes{"forward", "backward", "dgrad", "wgrad", "recompute", "file"};

/// The first of `keys` that [costs] has; nullptr where it has none.
template <std::size_t Count>
const char* given_in_costs(const ConfigNode& root, const std::array<const char*, Count>& keys) {
  const ConfigNode* const costs = root.find("costs");
  if (costs == nullptr || costs->kind != ConfigNode::Kind::table) return nullptr;
  const auto given = [&](const char* key) {
    const ConfigNode* const value = costs->find(key);
    return value != nullptr && !(value->kind == ConfigNode::Kind::text && value->text.empty());
  };
  const auto found = std::ranges::find_if(keys, given);
  return found == keys.end() ? nullptr : *found;
}

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
  constexpr std::array kAlso{"forward",   "backward", "dgrad",   "wgrad",
                             "recompute", "file",     "weights", "operators"};
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

}  // namespace

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
  loaded.operators.are_costs = !model->measured && given_in_costs(root, kTimes) == nullptr;
  return loaded;
}

}  // namespace longhaul::scenario
