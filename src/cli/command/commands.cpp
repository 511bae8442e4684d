#include "cli/command/commands.hpp"

#include <nlohmann/json.hpp>

#include "report/planning.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::cli {

Scenario scenario_of(const Options& options) {
  if (options.files.empty()) fail("a scenario is missing (the command needs one). Name its .toml.");
  return scenario::load_scenario(options.files.front(), options.overrides);
}

planner::PlannerOptions planner_options_of(const Options& options) {
  return report::planner_options_of(options.planner, report::arrangement_of(options.comm));
}

nlohmann::ordered_json record_header(const Options& options, const Scenario& scenario) {
  nlohmann::ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["scenario"] = scenario.name;
  json["stages"] = scenario.parallel.stages;
  json["replicas"] = scenario.parallel.replicas;
  json["microbatches"] = scenario.parallel.microbatches;
  json["comm"] = options.comm;
  json["ignored"] = report::ignored_settings(scenario);
  return json;
}

}  // namespace longhaul::cli
