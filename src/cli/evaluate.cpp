#include "cli/evaluate.hpp"

#include <algorithm>
#include <array>

#include "base/suggest.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/words.hpp"
#include "plan/lower.hpp"
#include "plan/rows.hpp"
#include "scenario/load.hpp"
#include "schedule/csv.hpp"
#include "schedule/generate.hpp"
#include "schedule/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

constexpr std::array kArrangements{Arrangement::decoupled, Arrangement::grouped};

bool is_schedule_file(std::string_view name) { return name.ends_with(".csv"); }

/// A list grows by expansion only where it holds `static`, and may name nothing twice: every static
/// schedule in it then came with `static`.
bool holds_static(std::string_view list, std::span<const std::string> expanded) {
  return expanded.size() > static_cast<std::size_t>(std::ranges::count(list, ',')) + 1;
}

bool is_static(const std::string& name) {
  return std::ranges::find(static_schedule_names(), name) != static_schedule_names().end();
}

/// A file's schedule that can run on the scenario, over its budget or not.
Schedule runnable_schedule(const std::string& file, const Scenario& scenario,
                           Arrangement arrangement) {
  Schedule schedule = read_schedule_file(file);
  if (schedule.replicas_alike()) schedule.replicas = scenario.parallel.replicas;
  const auto refuse = [&](const std::string& why) {
    throw Error{fmt::format("{}: {}", file, why), ExitCode::answer_is_no};
  };
  const auto violation = first_violation(schedule, scenario);
  if (violation && violation->kind != ViolationKind::memory) refuse(violation->text);
  if (const auto why = why_not_runnable(schedule, scenario, arrangement)) refuse(*why);
  return schedule;
}

bool every_pair_is_linked(const Scenario& scenario) {
  const std::size_t datacenters = scenario.datacenters.size();
  const auto pairs =
      std::ranges::count_if(scenario.links, [](const Link& link) { return link.from != link.to; });
  return static_cast<std::size_t>(pairs) == datacenters * (datacenters - 1);
}

/// Throws Error where the schedule is not defined on the scenario. Chunks that go round the devices
/// may meet where stages do not, so that a link that the scenario can do without is missing.
Schedule generate_runnable(const std::string& name, const Scenario& scenario,
                           Arrangement arrangement) {
  Schedule schedule = generate(name, scenario);
  if (every_pair_is_linked(scenario)) return schedule;
  if (const auto why = why_not_runnable(schedule, scenario, arrangement)) throw Error{*why};
  return schedule;
}

/// Reports and traces tell schedules apart by name: a file whose name is taken keeps its path.
void make_name_unique(Schedule& schedule, const std::string& typed,
                      std::span<const Schedule> others) {
  const auto taken = [&](const std::string& name) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Schedule& other) { return other.name == name; });
  };
  if (taken(schedule.name)) schedule.name = typed;
}

}  // namespace

Scenario scenario_of(const Options& options) {
  if (options.files.empty()) fail("a scenario is missing (the command needs one). Name its .toml.");
  return load_scenario(options.files.front(), options.overrides);
}

const char* name_of(Arrangement arrangement) {
  return arrangement == Arrangement::grouped ? "grouped" : "decoupled";
}

Arrangement arrangement_of(std::string_view comm) {
  std::vector<std::string> known;
  for (const Arrangement arrangement : kArrangements) {
    if (comm == name_of(arrangement)) return arrangement;
    known.emplace_back(name_of(arrangement));
  }
  fail("--comm: unknown arrangement \"{}\". {}", comm, suggestion(comm, known));
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

ChosenSchedules choose_schedules(std::string_view list, const Scenario& scenario,
                                 Arrangement arrangement) {
  if (list.empty())
    fail(
        "--schedule is missing (the command needs one). Name one or more of static, {}, or a .csv "
        "file.",
        fmt::join(static_schedule_names(), ", "));
  ChosenSchedules chosen;
  const std::vector<std::string> names = expand_schedule_names(list);
  const bool with_static = holds_static(list, names);
  for (const std::string& name : names) {
    if (is_schedule_file(name)) {
      chosen.schedules.push_back(runnable_schedule(name, scenario, arrangement));
      make_name_unique(chosen.schedules.back(), name,
                       std::span{chosen.schedules}.first(chosen.schedules.size() - 1));
      continue;
    }
    try {
      chosen.schedules.push_back(generate_runnable(name, scenario, arrangement));
    } catch (const Error& error) {
      if (!with_static || !is_static(name)) throw;
      chosen.skipped.push_back({name, error.what()});
    }
  }
  return chosen;
}

Schedule choose_schedule(std::string_view name, const Scenario& scenario, Arrangement arrangement) {
  if (name == "static" || name.find(',') != std::string_view::npos)
    fail("--schedule: \"{}\" names several (this command takes one). Name one of them.", name);
  return choose_schedules(name, scenario, arrangement).schedules.front();
}

ScheduleRecord evaluate(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                        Timeline& timeline) {
  const Plan plan = lower(schedule, scenario, arrangement);
  const OpTimes times = simulate(plan);
  append_rows(timeline, plan, times, 0);
  const auto named = std::find(timeline.schedules.begin(), timeline.schedules.end(), plan.schedule);
  const int position = static_cast<int>(named - timeline.schedules.begin());
  const std::int64_t budget = scenario.activation_budget().count();
  ScheduleRecord record =
      make_record(report_iteration(timeline, position, 0, budget), schedule, scenario);
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
  return ignored;
}

std::string ignored_text(const Scenario& scenario) {
  const std::vector<std::string> ignored = ignored_settings(scenario);
  if (ignored.empty()) return {};
  return fmt::format("\npredictions leave out {} (for ranks that play the scenario)\n",
                     fmt::join(ignored, " and "));
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
