#include "harness/collectives/collective_run.hpp"

#include <nlohmann/json.hpp>

#include "base/program/option_values.hpp"
#include "base/version.hpp"
#include "harness/collectives/collective_list.hpp"
#include "harness/collectives/level_fit.hpp"
#include "harness/environment/facts.hpp"
#include "harness/options/credit.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/main.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/choose_schedules.hpp"
#include "report/host_load.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

void refuse_contradictions(const CollectiveOptions& options, const CollectiveSettings& settings) {
  if (!settings.emulates() && !options.payload.empty())
    fail(
        "--payload: it has no effect here (the machine is measured with whole messages). Leave it "
        "out.");
  if (!settings.emulates() && settings.device != DeviceKind::cpu &&
      settings.calls != CollectiveCalls::native)
    fail(
        "--device {}: without emulation numbers lie in the memory of the host. Use cpu, or "
        "--collectives native for NCCL's.",
        options.device);
  if (!settings.emulates() && !options.beside.empty())
    fail("--beside: without emulation no pipeline is played (its links are). Leave one out.");
  if (options.fit && !options.beside.empty())
    fail("--fit: beside a pipeline rings do not show what a level can do. Leave --beside out.");
  if (options.fit && options.out.empty())
    fail("--fit: there is no place for levels.toml. Give --out DIRECTORY.");
  if (options.fit && settings.calls != CollectiveCalls::messages)
    fail("--fit: it plays rings of messages, not by --collectives {}. Leave one out.",
         options.calls);
}

nlohmann::ordered_json record_of(const CollectiveOptions& options, const Scenario& scenario,
                                 const CollectiveSettings& settings,
                                 const std::vector<CollectiveMeasurement>& measured,
                                 const nlohmann::json& environment) {
  nlohmann::ordered_json record = report::record_header({.benchmark = "bench_collectives",
                                                         .numbers = "measured",
                                                         .command_line = options.command_line});
  std::int64_t wrong = 0;
  for (const CollectiveMeasurement& each : measured) wrong += each.wrong();
  record["scenario"] = scenario.name;
  record["ranks"] = scenario.ranks();
  record["emulation"] = options.emulate;
  record["collectives_by"] = options.calls;
  if (settings.emulates()) record["payload_bytes"] = settings.engine.payload.count();
  if (settings.beside) record["beside"] = settings.beside->schedule;
  record["check"] = wrong == 0 ? "ok" : "wrong";
  record["environment"] = environment;
  record["collectives"] = collectives_json(measured);
  return record;
}

/// Every rank makes the schedule anew, so it must be the same one each time.
BesideWork work_beside(const std::string& schedule, const Scenario& scenario) {
  const planner::ScheduleRequest request = planner::parse_single_schedule_option(schedule);
  if (request.is_looked_for())
    fail(
        "--beside {}: a search may end with another order on each rank. Give a file or a "
        "generator's name.",
        schedule);
  const Schedule made = planner::choose_schedule(request, scenario).schedule;
  return {made.name, plan::lower(made, scenario)};
}

}  // namespace

void declare(Arguments& arguments, CollectiveOptions& options) {
  arguments.option("SCENARIO", options.scenario, "scenario (.toml)").required();
  report::add_collective_options(arguments, options.collective);
  arguments.option("--iterations", options.iterations, "measured")
      .shows_default()
      .within(1, 100'000);
  arguments.option("--warmup", options.warmup, "before them").shows_default().within(0, 1000);
  arguments.option("--payload", options.payload,
                   "cap on the bytes really sent (default: 64KiB; --emulate off sends all)");
  arguments.option("--emulate", options.emulate, "on, or off: the machine as it is")
      .shows_default();
  arguments
      .option("--collectives", options.calls,
              "messages; or, on the machine as it is, shared: ranks of one host read from each "
              "other's memory; native: MPI's own calls alone, with --device cuda NCCL's")
      .shows_default();
  arguments.option("--credit", options.credit, kCreditHelp).shows_default();
  arguments.option("--beside", options.beside,
                   "a schedule of the scenario, played on the same ranks at the same time");
  arguments
      .option("--ties", options.ties,
              "simulations with ties broken at random, whose range stands beside the prediction")
      .shows_default()
      .within(0, 10'000);
  arguments.flag("--fit", options.fit,
                 "fit latency and rate of each level by rings; writes levels.toml");
  add_shared_options(arguments, options,
                     {{Shared::overrides},
                      {Shared::device},
                      {Shared::transport, transport_help()},
                      {Shared::deadline},
                      {Shared::ranks},
                      {Shared::out, "directory for record.json, and levels.toml of --fit"},
                      {Shared::json},
                      {Shared::wide}});
  arguments.footer(help_footer(
      {"scripts/mpi -n 8 build/bin/bench_collectives benchmarks/scenarios/collectives-2dc.toml "
       "--kind all-reduce --bytes 8MB --algorithm all",
       "scripts/mpi -n 8 build/bin/bench_collectives benchmarks/scenarios/collectives-2dc.toml "
       "--kind all-reduce,all-gather --bytes 1MiB..64MiB --algorithm ring --emulate off"}));
}

CollectiveSettings settings_of(const CollectiveOptions& options, const Scenario& scenario) {
  CollectiveSettings settings;
  settings.repetitions = {options.iterations, options.warmup};
  settings.device = device_kind_of(options.device);
  settings.engine.run = scenario.run;
  settings.engine.payload = payload_of(options.payload.empty() ? "64KiB" : options.payload);
  settings.engine.credit = credit_of(options.credit);
  settings.engine.emulation = emulation_of(options.emulate);
  settings.calls = choice<CollectiveCalls>("--collectives", options.calls);
  settings.ties.draws = options.ties;
  refuse_contradictions(options, settings);
  if (!options.beside.empty()) settings.beside = work_beside(options.beside, scenario);
  return settings;
}

std::vector<plan::Collective> collectives_of(const CollectiveOptions& options,
                                             const Scenario& scenario) {
  std::vector<plan::Collective> all = options.fit
                                          ? level_rings(options.collective, scenario)
                                          : listed_collectives(options.collective, scenario);
  if (options.emulate == "off" || options.calls != "messages")
    for (const plan::Collective& each : all) require_runnable(each);
  return all;
}

std::int64_t finish_collectives(const CollectiveOptions& options, const Scenario& scenario,
                                const CollectiveSettings& settings,
                                const std::vector<CollectiveMeasurement>& measured,
                                const nlohmann::json& environment) {
  const nlohmann::ordered_json record =
      record_of(options, scenario, settings, measured, environment);
  if (options.json) {
    fmt::print("{}\n", record.dump(2));
  } else {
    fmt::print("{}{}", collective_tables(scenario.name, settings, measured, options.table_width()),
               report::load_doubt_text(environment));
  }
  if (!options.out.empty()) write_new_file(options.out / "record.json", record.dump(2) + "\n");
  if (options.fit) {
    const std::vector<LevelFit> fits = fit_levels(measured, scenario);
    const LevelsOrigin origin{options.command_line, now_in_words(), git_commit(), options.emulate};
    write_new_file(options.out / "levels.toml", levels_text(fits, scenario, origin));
    if (!options.json) fmt::print("\n{}", level_table(fits));
  }
  std::int64_t wrong = 0;
  for (const CollectiveMeasurement& each : measured) wrong += each.wrong();
  return wrong;
}

}  // namespace longhaul::harness
