#include "cli/evaluate.hpp"

#include <algorithm>
#include <array>

#include "base/suggest.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
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

/// Was the schedule named itself, or did it come with `static`?
bool is_named(std::string_view list, std::string_view name) {
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item == name) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

/// A file's schedule that can run on the scenario, over its budget or not.
Schedule runnable_schedule(const std::string& file, const Scenario& scenario) {
  Schedule schedule = read_schedule_file(file);
  if (schedule.replicas_alike()) schedule.replicas = scenario.parallel.replicas;
  const auto violation = first_violation(schedule, scenario);
  if (violation && violation->kind != ViolationKind::memory)
    throw Error{fmt::format("{}: {}", file, violation->text), ExitCode::answer_is_no};
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

ChosenSchedules choose_schedules(std::string_view list, const Scenario& scenario) {
  if (list.empty())
    fail(
        "--schedule is missing (the command needs one). Name one or more of static, {}, or a .csv "
        "file.",
        fmt::join(static_schedule_names(), ", "));
  ChosenSchedules chosen;
  for (const std::string& name : expand_schedule_names(list)) {
    if (is_schedule_file(name)) {
      chosen.schedules.push_back(runnable_schedule(name, scenario));
      make_name_unique(chosen.schedules.back(), name,
                       std::span{chosen.schedules}.first(chosen.schedules.size() - 1));
      continue;
    }
    try {
      chosen.schedules.push_back(generate(name, scenario));
    } catch (const Error& error) {
      if (is_named(list, name)) throw;
      chosen.skipped.push_back({name, error.what()});
    }
  }
  return chosen;
}

Schedule choose_schedule(std::string_view name, const Scenario& scenario) {
  if (name == "static" || name.find(',') != std::string_view::npos)
    fail("--schedule: \"{}\" names several (this command takes one). Name one of them.", name);
  return choose_schedules(name, scenario).schedules.front();
}

ScheduleRecord evaluate(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                        Timeline& timeline) {
  const Plan plan = lower(schedule, scenario, arrangement);
  append_rows(timeline, plan, simulate(plan), 0);
  const auto named = std::find(timeline.schedules.begin(), timeline.schedules.end(), plan.schedule);
  const int position = static_cast<int>(named - timeline.schedules.begin());
  const std::int64_t budget = scenario.activation_budget().count();
  return make_record(report_iteration(timeline, position, 0, budget), schedule, scenario);
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
  return json;
}

std::string json_text(const nlohmann::ordered_json& json) {
  // File names are bytes, JSON is UTF-8: what is neither is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace longhaul
