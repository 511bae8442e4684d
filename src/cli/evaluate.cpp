#include "cli/evaluate.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/progress.hpp"
#include "base/suggest.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/words.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

constexpr std::string_view kShares = "atlas+";

bool is_schedule_file(std::string_view name) { return name.ends_with(".csv"); }

/// "atlas+mine.csv": mine.csv under temporal sharing. Not where there is a file of this name.
bool shares_file(const std::string& name) {
  return name.starts_with(kShares) && !std::filesystem::exists(name);
}

/// A file's schedule that can run on the scenario, over its budget or not.
Schedule runnable_schedule(const std::string& name, const Scenario& scenario,
                           Arrangement arrangement) {
  const bool shares = shares_file(name);
  const std::string file = shares ? name.substr(kShares.size()) : name;
  Schedule schedule = read_schedule_file(file);
  if (schedule.replicas_alike()) schedule.replicas = scenario.parallel.replicas;
  const auto refuse = [&](const std::string& why) {
    throw Error{fmt::format("{}: {}", file, why), ExitCode::answer_is_no};
  };
  const auto violation = first_violation(schedule, scenario);
  if (violation && violation->kind != ViolationKind::memory) refuse(violation->text);
  if (shares) schedule = share_wan(schedule, scenario);
  if (const auto why = why_not_runnable(schedule, scenario, arrangement)) refuse(*why);
  return schedule;
}

bool every_pair_is_linked(const Scenario& scenario) {
  const std::size_t datacenters = scenario.datacenters.size();
  const auto pairs =
      std::ranges::count_if(scenario.links, [](const Link& link) { return link.from != link.to; });
  return to_size(pairs) == datacenters * (datacenters - 1);
}

/// Throws Error where the schedule is not defined on the scenario. Chunks that go round the devices
/// may meet where stages do not, so that a link that the scenario can do without is missing.
ScheduleResult make_runnable(const std::string& name, const Scenario& scenario,
                             const PlannerOptions& options) {
  ScheduleResult made = make_schedule(name, scenario, options);
  if (every_pair_is_linked(scenario)) return made;
  const auto why = why_not_runnable(made.schedule, scenario, options.search.arrangement);
  if (why) throw Error{*why};
  return made;
}

/// Reports and traces tell schedules apart by name: a file whose name is taken keeps its path.
void make_name_unique(Schedule& schedule, const std::string& typed,
                      std::span<const ScheduleResult> others) {
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(
        others, [&](const ScheduleResult& other) { return other.schedule.name == name; });
  };
  if (taken(schedule.name)) schedule.name = typed;
}

/// Takes the solver's proof where it says more. Its class is narrower than ours: what it started
/// from may lie outside, and below.
void raise_bound(ScheduleRecord& record, const SolverResult& solved) {
  if (solved.bound <= record.bound.lower_bound || solved.bound.count() > record.makespan_ns) return;
  record.bound = {solved.bound, solved.holds_for, "the solver's proof"};
}

std::vector<std::string> names_of_schedules() {
  std::vector<std::string> names;
  for (const ScheduleName& known : schedule_names()) names.push_back(known.name);
  return names;
}

}  // namespace

Scenario scenario_of(const Options& options) {
  if (options.files.empty()) fail("a scenario is missing (the command needs one). Name its .toml.");
  return load_scenario(options.files.front(), options.overrides);
}

Arrangement arrangement_of(std::string_view comm) {
  if (const auto arrangement = from_string<Arrangement>(comm)) return *arrangement;
  fail("--comm: unknown arrangement \"{}\". {}", comm, suggestion(comm, every_name<Arrangement>()));
}

Schedule read_schedule_file(const std::filesystem::path& file) {
  return read_csv(read_text_file(file), file.string(), file.stem().string());
}

std::optional<std::string> why_not_runnable(const Schedule& schedule, const Scenario& scenario,
                                            Arrangement arrangement) {
  try {
    static_cast<void>(simulate(lower(schedule, scenario, arrangement)));
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

PlannerOptions planner_options_of(const Options& options) {
  return planner_options_of(options.planner, arrangement_of(options.comm));
}

ChosenSchedules choose_schedules(std::string_view list, const Scenario& scenario,
                                 const PlannerOptions& options) {
  if (list.empty())
    fail(
        "--schedule is missing (the command needs one). Name one or more of static, dynamic, {}, "
        "or a .csv file.",
        fmt::join(names_of_schedules(), ", "));
  ChosenSchedules chosen;
  const std::vector<RequestedSchedule> requested = requested_schedules(list);
  std::optional<Progress> progress;
  for (const RequestedSchedule& request : requested) {
    if (is_schedule_file(request.name)) {
      Schedule schedule = runnable_schedule(request.name, scenario, options.search.arrangement);
      make_name_unique(schedule, request.name, chosen.schedules);
      chosen.schedules.push_back({std::move(schedule), std::nullopt, std::nullopt, std::nullopt});
      continue;
    }
    if (is_looked_for(request.name)) {
      progress.emplace("looking for schedules", std::ssize(requested));
      progress->update(std::ssize(chosen.schedules), request.name);
    }
    try {
      chosen.schedules.push_back(make_runnable(request.name, scenario, options));
    } catch (const Error& error) {
      if (!request.from_group) throw;
      chosen.skipped.push_back({request.name, error.what()});
    }
  }
  return chosen;
}

ScheduleResult choose_schedule(std::string_view name, const Scenario& scenario,
                               const PlannerOptions& options) {
  if (name == "static" || name == "dynamic" || name == "shared" ||
      name.find(',') != std::string_view::npos)
    fail("--schedule: \"{}\" names several (this command takes one). Name one of them.", name);
  return std::move(choose_schedules(name, scenario, options).schedules.front());
}

ScheduleRecord evaluate(const ScheduleResult& made, const Scenario& scenario,
                        Arrangement arrangement, Timeline& timeline) {
  const Schedule& schedule = made.schedule;
  const Plan plan = lower(schedule, scenario, arrangement);
  const OpTimes times = simulate(plan);
  append_rows(timeline, plan, times, 0);
  const auto named = std::find(timeline.schedules.begin(), timeline.schedules.end(), plan.schedule);
  const int position = static_cast<int>(named - timeline.schedules.begin());
  const std::int64_t budget = scenario.activation_budget().count();
  ScheduleRecord record =
      make_record(report_iteration(timeline, position, 0, budget), schedule, scenario);
  if (made.solved) raise_bound(record, *made.solved);
  record.resources = occupancy(plan, times);
  std::erase_if(record.resources,
                [](const ResourceUse& use) { return use.kind == ResourceKind::device; });
  return record;
}

std::string size_text(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  return fmt::format("{}, {}, {}", counted(parallel.stages, "stage"),
                     counted(parallel.replicas, "replica"),
                     counted(parallel.microbatches, "microbatch"));
}

std::vector<std::string> ignored_settings(const Scenario& scenario) {
  std::vector<std::string> ignored;
  if (scenario.run.noise > 0) ignored.emplace_back("run.noise");
  const auto& stragglers = scenario.run.stragglers;
  if (std::ranges::any_of(stragglers, [](double factor) { return factor != 1; }))
    ignored.emplace_back("run.stragglers");
  const auto any_link = [&](auto has) { return std::ranges::any_of(scenario.links, has); };
  if (any_link([](const Link& link) { return link.weather.trace != nullptr; }))
    ignored.emplace_back("link.trace");
  if (any_link([](const Link& link) { return link.weather.loss.probability > 0; }))
    ignored.emplace_back("link.loss");
  if (any_link([](const Link& link) { return !link.weather.outages.empty(); }))
    ignored.emplace_back("link.outage");
  return ignored;
}

std::string ignored_text(const Scenario& scenario, std::string_view but) {
  const std::vector<std::string> ignored = ignored_settings(scenario);
  if (ignored.empty()) return {};
  return fmt::format("\npredictions leave out {} (for ranks that play the scenario{})\n",
                     fmt::join(ignored, " and "), but);
}

nlohmann::ordered_json record_header(const Options& options, const Scenario& scenario) {
  nlohmann::ordered_json json;
  json["schema_version"] = kRecordSchemaVersion;
  json["numbers"] = "simulated";
  json["creator"] = fmt::format("longhaul {}", version());
  json["git_commit"] = git_commit();
  json["command_line"] = options.command_line;
  json["scenario"] = scenario.name;
  json["stages"] = scenario.parallel.stages;
  json["replicas"] = scenario.parallel.replicas;
  json["microbatches"] = scenario.parallel.microbatches;
  json["comm"] = options.comm;
  json["ignored"] = ignored_settings(scenario);
  return json;
}

std::string json_text(const nlohmann::ordered_json& json) {
  // File names are bytes, JSON is UTF-8: what is neither is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace longhaul
