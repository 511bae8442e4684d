#include "cli/check/check.hpp"
#include "planner/search/makespan.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::cli {
namespace {

std::optional<std::string> text_of(const std::optional<schedule::Violation>& violation) {
  return violation ? std::optional{violation->text} : std::nullopt;
}

}  // namespace

Finding check_schedule(const std::string& file, const Options& options) {
  Schedule schedule = schedule::read_schedule_file(file);
  std::optional<std::string> problem;
  std::string held_against;
  if (options.scenario.empty()) {
    problem = text_of(schedule::first_violation(schedule));
  } else {
    const Scenario scenario = scenario::load_scenario(options.scenario, options.overrides);
    if (schedule.replicas_share_rows()) schedule.replicas = scenario.parallel.replicas;
    problem = text_of(schedule::first_violation(schedule, scenario));
    if (!problem) {
      if (auto why = planner::why_not_runnable(schedule, scenario, Arrangement::decoupled))
        problem = std::move(why->reason);
    }
    held_against = " on " + scenario.name;
  }
  Finding finding{file, "schedule", {}, {}, {}, {}};
  finding.summary = fmt::format(
      "schedule {}: {}{}; {}, {}, {}", schedule.name, problem ? "not valid" : "valid", held_against,
      report::counted(schedule.devices, "device"), report::counted(schedule.chunks, "chunk"),
      report::counted(schedule.microbatches, "microbatch"));
  if (problem) finding.problems.push_back(*problem);
  finding.json["schedule"] = schedule.name;
  finding.json["devices"] = schedule.devices;
  finding.json["chunks"] = schedule.chunks;
  finding.json["microbatches"] = schedule.microbatches;
  return finding;
}

}  // namespace longhaul::cli
