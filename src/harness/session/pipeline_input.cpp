#include "harness/session/pipeline_input.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "harness/options/run_files.hpp"
#include "harness/placement/placement.hpp"
#include "harness/ranks/main.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "report/evaluate.hpp"
#include "report/planning.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/reader/stored_text.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/memory.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

struct TypedChange {
  int iteration = 0;
  std::string set;
  std::string option;  ///< as typed
};

TypedChange split(const std::string& option, int iterations) {
  const std::size_t colon = std::min(option.find(':'), option.size());
  int iteration = 0;
  const auto [at, problem] = std::from_chars(option.data(), option.data() + colon, iteration);
  if (colon == option.size() || problem != std::errc{} || at != option.data() + colon)
    fail(
        "--change {}: there is no iteration in front (a change is ITERATION:PATH=VALUE). Write "
        "--change 10:link.latency_ratio=2, say.",
        option);
  if (iteration < 1 || iteration >= iterations)
    fail(
        "--change {}: no iteration {} can begin on other links (the run has {}, counted from 0, "
        "and begins on the scenario's). Give 1 to {}, or more --iterations.",
        option, iteration, iterations, iterations - 1);
  TypedChange change{iteration, option.substr(colon + 1), option};
  if (!change.set.starts_with("link.") && !change.set.starts_with("node."))
    fail(
        "--change {}: only links and node interfaces change during a run (the ranks stay). Write "
        "link.KEY=VALUE or node.KEY=VALUE.",
        option);
  return change;
}

/// The scenario's own complaint, under the name of this option.
[[noreturn]] void refuse(const TypedChange& change, std::string complaint) {
  const std::string prefix = "--set " + change.set + ": ";
  if (complaint.starts_with(prefix)) complaint.erase(0, prefix.size());
  fail("--change {}: {}", change.option, complaint);
}

/// The changes of --change ITERATION:PATH=VALUE (repeatable; those of one iteration are one
/// change), in order of iteration. `scenario` was read from `file`; `overrides` are those of --set,
/// `iterations` how many the run has. Throws Error that names the option: no iteration of the run,
/// no path of links or node interfaces, or what the scenario's own overrides would refuse.
std::vector<LinkChange> parse_changes(std::span<const std::string> options,
                                      const Scenario& scenario, const std::string& file,
                                      std::span<const std::string> overrides, int iterations) {
  std::vector<TypedChange> typed;
  for (const std::string& option : options) typed.push_back(split(option, iterations));
  std::ranges::stable_sort(typed, {}, &TypedChange::iteration);
  std::vector<std::string> all{overrides.begin(), overrides.end()};
  std::vector<LinkChange> changes;
  for (const TypedChange& change : typed) {
    all.push_back(change.set);
    if (changes.empty() || changes.back().iteration != change.iteration)
      changes.push_back({change.iteration, {}, {}});
    changes.back().set.push_back(change.set);
    try {
      changes.back().scenario = scenario::parse_scenario(scenario.text, file, all).as_played();
    } catch (const Error& error) {
      refuse(change, error.what());
    }
  }
  return changes;
}

/// While rank 0 looks for schedules, which may be asked to take hours. A rank that is dead or
/// stopped ends the run all the same (Watchdog::set_patience).
constexpr Duration kPlanningPatience = std::chrono::hours{24};

/// Warns of schedules that do not fit into memory. They run all the same, since blocks are timed
/// and take no memory: the gain of a larger device is worth knowing.
void warn_of_memory(const std::vector<planner::ScheduleResult>& made, const Scenario& scenario,
                    bool real) {
  for (const planner::ScheduleResult& each : made) {
    const Schedule& schedule = each.schedule;
    for (const schedule::DeviceNeed& device : schedule::device_memory(schedule, scenario))
      if (!device.fits())
        fmt::print(
            stderr, "longhaul: {} does not fit on device {}: {} are needed and it has {} ({})\n",
            schedule.name, device.device, to_text(device.total()), to_text(*device.capacity),
            real ? "real layers end where it is full" : "it runs all the same, and is marked");
  }
}

/// Makes the input of a run from its options: rank 0 reads and chooses, and every rank takes that.
class InputMaker {
public:
  /// All must live as long.
  InputMaker(const engine::Ranks& ranks, const PipelineOptions& options,
             const planner::PlannerOptions& planner)
      : ranks_{ranks}, options_{options}, planner_{planner} {}

  /// Rank 0's part, as one text: what it chooses, or chose when the run was begun.
  [[nodiscard]] std::string read_and_choose() const {
    const Scenario scenario = scenario::load_scenario(options_.scenario, options_.overrides);
    check_rank_count(scenario);
    check_overlap(scenario);
    if (options_.compute.compute == "real") refuse_rules();
    Json text;
    text["asked"] = asked_of(options_, scenario, ranks_.count());
    const auto kept =
        options_.resume ? kept_input(options_.out, text["asked"]) : std::optional<Json>{};
    if (!kept && !options_.out.empty()) require_free(options_.out);
    text["goes_on"] = kept.has_value();
    text["is_complete"] = kept && is_complete(options_.out);
    text["handed"] = kept ? *kept : choose(scenario);
    return text.dump();
  }

  /// Every rank's part: lowers the schedules that rank 0 handed on.
  void take_handed(PipelineInput& input) const {
    const Scenario read = scenario::parse_scenario(input.handed["scenario"].get<std::string>(),
                                                   options_.scenario, options_.overrides);
    input.time_scale = read.run.time_scale;
    input.scenario = read.as_played();
    input.stopping = stopping_rule(options_.confidence, options_.max_iterations,
                                   options_.iterations.value_or(read.run.iterations));
    input.iterations = input.stopping.most;
    input.warmup = options_.warmup.value_or(read.run.warmup);
    input.changes = parse_changes(options_.changes, read, options_.scenario, options_.overrides,
                                  input.iterations);
    scenario::store_changes(input.scenario.text, options_.changes);
    for (const Json& made : input.handed["schedules"]) {
      const auto name = made["name"].get<std::string>();
      PlannedSchedule planned;
      planned.schedule = schedule::read_csv(made["csv"].get<std::string>(), name, name);
      planned.planning = made["planning"];
      if (made.contains("overlap")) {
        plan_overlap(planned, made["overlap"].get<std::string>(), made["searched"], input.scenario,
                     planner_.search.arrangement, overlap_facts());
      } else {
        planned.plan = plan::lower(planned.schedule, input.scenario, planner_.search.arrangement);
        planned.predicted = sim::simulate(planned.plan);
      }
      input.schedules.push_back(std::move(planned));
    }
    for (const Json& skipped : input.handed["skipped"])
      input.skipped.push_back(
          {skipped["schedule"].get<std::string>(), skipped["reason"].get<std::string>()});
  }

private:
  [[nodiscard]] OverlapFacts overlap_facts() const {
    if (ranks_.is_first()) return OverlapFacts::work_and_prediction;
    return options_.compute.compute == "real" ? OverlapFacts::work : OverlapFacts::plan;
  }

  void check_rank_count(const Scenario& scenario) const {
    if (scenario.ranks() == ranks_.count()) return;
    if (ranks_.world().is_of_threads())
      fail(
          "scenario {} needs {} ranks ({}), but --ranks-per-process is {} (all of them are threads "
          "of "
          "this process). Write --ranks-per-process {}.",
          scenario.name, scenario.ranks(), report::size_text(scenario), ranks_.count(),
          scenario.ranks());
    fail(
        "scenario {} needs {} ranks ({}), but {} are running. Start it with scripts/mpi -n {} "
        "build/bin/bench_pipeline {} ...{}",
        scenario.name, scenario.ranks(), report::size_text(scenario), ranks_.count(),
        scenario.ranks(), options_.scenario,
        scenario.is_placed() ? "; on a cluster allocate " + fitting_allocation(scenario, {}) : "");
  }

  /// Blocks that slow beside messages are played by planned times under emulated links.
  void check_overlap(const Scenario& scenario) const {
    if (scenario.overlap.largest() <= 1) return;
    const auto refuse = [&](const char* option, const char* why) {
      fail("{} with [overlap] ({}). Leave one out (--set overlap.slowdown=1).", option, why);
    };
    if (options_.compute.compute == "real")
      refuse("--compute real", "real blocks take what they take beside messages");
    if (options_.compute.device != "cpu")
      refuse("--device cuda", "its kernels do not slow beside messages that only are emulated");
    if (options_.emulate == "off") refuse("--emulate off", "no message holds a link");
    if (options_.adaptive)
      refuse("--adaptive", "measured blocks that messages slowed look like a slower device");
  }

  /// Said before another one is searched.
  void refuse_rules() const {
    const std::vector<std::string> overlaps = words_of(options_.overlap, ',');
    if (std::ranges::find(overlaps, "centauri-rules") != overlaps.end())
      fail(
          "--overlap centauri-rules with --compute real (the rules cut operators and collectives, "
          "which real layers compute whole). Name centauri, which searches within what they "
          "compute, or use --compute timed.");
  }

  /// The parts of the input that the other ranks need.
  [[nodiscard]] Json choose(const Scenario& scenario) const {
    const planner::ScheduleChooser chooser{planner::parse_schedule_option(options_.schedule),
                                           scenario, planner_};
    const planner::ChosenSchedules chosen = chooser.choose();
    if (chosen.schedules.empty())
      fail("none of {} runs on scenario {} ({}: {}). Name other schedules.", options_.schedule,
           scenario.name, chosen.skipped.front().schedule, chosen.skipped.front().reason);
    if (options_.compute.compute == "real" && !scenario.costs.optimizer.empty())
      fail(
          "costs.optimizer is given, and --compute real steps between iterations, not in them. "
          "Leave it out (--set costs.optimizer=0ns), or use --compute timed.");
    if (options_.overlap.empty())
      warn_of_memory(chosen.schedules, scenario, options_.compute.compute == "real");
    Json input = {{"scenario", scenario.text}, {"schedules", Json::array()}};
    for (const planner::ScheduleResult& made : chosen.schedules) {
      Json handed = {{"name", made.schedule.name},
                     {"csv", schedule::write_csv(made.schedule)},
                     {"planning", report::planning_json(made)}};
      if (options_.overlap.empty()) {
        input["schedules"].push_back(handed);
        continue;
      }
      for (const std::string& overlap : words_of(options_.overlap, ',')) {
        handed["overlap"] = overlap;
        const auto& most = planner_.overlap_evaluations;
        handed["searched"] = searched_overlap(
            overlap, made.schedule, scenario.as_played(), planner_.search.arrangement,
            {.of_real_layers = options_.compute.compute == "real",
             .orders_too = made.found.has_value()},
            planner::ended_after(planner_.solver.time_limit,
                                 most ? planner::ended_at(*most) : planner::SearchWatch{}));
        input["schedules"].push_back(handed);
      }
    }
    input["skipped"] = Json::array();
    for (const planner::SkippedSchedule& skipped : chosen.skipped)
      input["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
    return input;
  }

  const engine::Ranks& ranks_;
  const PipelineOptions& options_;
  const planner::PlannerOptions& planner_;
};

}  // namespace

PipelineInput prepare_input(engine::Ranks& ranks, const PipelineOptions& options,
                            const planner::PlannerOptions& planner) {
  ranks.watchdog().set_patience(kPlanningPatience);
  const InputMaker maker{ranks, options, planner};
  const Json text = Json::parse(on_rank0(ranks.world(), [&] { return maker.read_and_choose(); }));
  PipelineInput input;
  input.goes_on = text["goes_on"].get<bool>();
  input.is_complete = text["is_complete"].get<bool>();
  input.asked = text["asked"];
  input.handed = text["handed"];
  collectively([&] { maker.take_handed(input); });
  return input;
}

Timeline predicted_timeline(const PipelineInput& input) {
  Timeline timeline;
  for (const PlannedSchedule& planned : input.schedules)
    plan::append_rows(timeline, planned.plan, planned.predicted, 0);
  return timeline;
}

}  // namespace longhaul::harness
