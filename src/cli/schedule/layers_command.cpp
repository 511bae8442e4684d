#include <nlohmann/json.hpp>

#include "base/program/working_line.hpp"
#include "base/table.hpp"
#include "cli/command/commands.hpp"
#include "planner/layers.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "scenario/model_costs.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// Moves of the search for each assignment, unless asked for: there are tens of them.
constexpr std::int64_t kMovesPerAssignment = 20'000;

struct Division {
  const char* name;
  planner::Assignment assignment;
};

std::vector<std::string> with_override(const Options& options, const std::string& value) {
  std::vector<std::string> overrides = options.overrides;
  overrides.push_back("model.layers_per_stage=" + value);
  return overrides;
}

std::string list_text(const std::vector<int>& layers) {
  return fmt::format("[{}]", fmt::join(layers, ","));
}

/// F, D and W of the slowest stage.
Duration slowest_stage(const Scenario& scenario) {
  Duration slowest{};
  for (std::size_t s = 0; s < scenario.costs.forward.size(); ++s)
    slowest = std::max(
        slowest, scenario.costs.forward[s] + scenario.costs.dgrad[s] + scenario.costs.wgrad[s]);
  return slowest;
}

std::string text_of(const std::vector<Division>& divisions, const Scenario& scenario, int tried) {
  const auto of_first = static_cast<double>(divisions.front().assignment.found.makespan.count());
  const report::TimeScale scale{of_first};
  const report::TimeScale stage_scale{
      static_cast<double>(slowest_stage(divisions.front().assignment.scenario).count())};
  Table table{{{"layers", Align::left},
               {"of each stage", Align::left},
               {fmt::format("slowest stage [{}]", stage_scale.unit())},
               {fmt::format("makespan of best [{}]", scale.unit())},
               {"less than even [%]"}}};
  for (const Division& division : divisions) {
    const auto makespan = static_cast<double>(division.assignment.found.makespan.count());
    const auto slowest = static_cast<double>(slowest_stage(division.assignment.scenario).count());
    table.add_row({division.name, list_text(division.assignment.layers), stage_scale.text(slowest),
                   scale.text(makespan), report::percent_text(1 - makespan / of_first)});
  }
  return fmt::format("{}: {}; simulated, each with the same bytes of activations\n\n",
                     scenario.name, report::size_text(scenario)) +
         table.text() +
         fmt::format("\n{} divisions were looked at. Set model.layers_per_stage to keep one.\n",
                     tried);
}

ordered_json to_json(const std::vector<Division>& divisions, const Options& options,
                     const Scenario& scenario, int tried) {
  ordered_json json = record_header(options, scenario);
  json["divisions"] = ordered_json::array();
  for (const Division& division : divisions)
    json["divisions"].push_back(
        {{"name", division.name},
         {"layers", division.assignment.layers},
         {"slowest_stage_ns", slowest_stage(division.assignment.scenario).count()},
         {"budget", division.assignment.scenario.memory.budget},
         {"makespan_ns", division.assignment.found.makespan.count()}});
  json["tried"] = tried;
  return json;
}

}  // namespace

Answer layers_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  if (!scenario.model)
    fail("{} has no [model] (layers are those of a model). Add one, or give [costs] per stage.",
         options.files.front());
  planner::SearchOptions search = planner_options_of(options).search;
  if (options.planner.search_time.empty() && !search.moves) search.moves = kMovesPerAssignment;
  const Bytes bytes = scenario.activation_budget();
  int looked_at = 0;
  const planner::WithLayers with_layers = [&](const std::vector<int>& layers) {
    WorkingLine::step(fmt::format("division {}", ++looked_at));
    Scenario divided =
        scenario::load_scenario(options.files.front(), with_override(options, list_text(layers)));
    divided.memory.budget *= static_cast<double>(bytes.count()) /
                             static_cast<double>(divided.activation_budget().count());
    return divided;
  };
  const auto divide = [&](const char* name, const std::vector<int>& layers) {
    Scenario divided = with_layers(layers);
    planner::SearchResult found = planner::find_best(divided, search);
    return Division{name, {layers, std::move(divided), std::move(found)}};
  };
  std::vector<Division> divisions;
  divisions.push_back(
      divide("even", scenario::layers_of_stages(*scenario.model, scenario.parallel.stages)));
  const std::vector<int> balanced =
      scenario::load_scenario(options.files.front(), with_override(options, "balanced")).layers;
  divisions.push_back(divide("balanced", balanced));
  planner::AssignedLayers assigned = planner::assign_layers(with_layers, balanced, search);
  divisions.push_back({"refined", std::move(assigned.best)});
  return {options.json ? report::json_text(to_json(divisions, options, scenario, assigned.tried))
                       : text_of(divisions, scenario, assigned.tried)};
}

}  // namespace longhaul::cli
