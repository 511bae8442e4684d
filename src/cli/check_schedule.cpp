#include "cli/check.hpp"
#include "cli/evaluate.hpp"
#include "scenario/load.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity.hpp"

namespace longhaul {

Finding check_schedule(const std::string& file, const Options& options) {
  Schedule schedule = read_schedule_file(file);
  std::optional<Violation> violation;
  std::string held_against;
  if (options.scenario.empty()) {
    violation = first_violation(schedule);
  } else {
    const Scenario scenario = load_scenario(options.scenario, options.overrides);
    if (schedule.replicas_alike()) schedule.replicas = scenario.parallel.replicas;
    violation = first_violation(schedule, scenario);
    held_against = " on " + scenario.name;
  }
  Finding finding{file, "schedule", {}, {}, {}, {}};
  finding.summary = fmt::format("schedule {}: {}{}; {} devices, {} chunks, {} microbatches",
                                schedule.name, violation ? "not valid" : "valid", held_against,
                                schedule.devices, schedule.chunks, schedule.microbatches);
  if (violation) finding.problems.push_back(violation->text);
  finding.json["schedule"] = schedule.name;
  finding.json["devices"] = schedule.devices;
  finding.json["chunks"] = schedule.chunks;
  finding.json["microbatches"] = schedule.microbatches;
  return finding;
}

}  // namespace longhaul
