#include "api/longhaul.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/version.hpp"
#include "cli/longhaul.hpp"
#include "plan/rows.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/search/makespan.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/memory.hpp"
#include "schedule/placement.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"
#include "trace/report/report.hpp"

namespace longhaul::api {

struct Scenario::Data {
  longhaul::Scenario scenario;
};
struct Schedule::Data {
  longhaul::Schedule schedule;
};
struct Maker {
  static Schedule wrap(longhaul::Schedule schedule) {
    return Schedule{std::make_shared<const Schedule::Data>(std::move(schedule))};
  }
};

namespace {

/// Our own exceptions never leave the library: their type is not part of the interface.
template <typename Work>
auto guarded(Work&& work) {
  try {
    return work();
  } catch (const longhaul::Error& error) {
    throw Error{error.what()};
  }
}

Arrangement arrangement_of(Comm comm) {
  return comm == Comm::grouped ? Arrangement::grouped : Arrangement::decoupled;
}

/// A comma list; none where it is empty.
std::vector<schedule::Placement> placements_of(std::string_view list) {
  std::vector<schedule::Placement> placements;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    placements.push_back(schedule::parse_placement(list.substr(0, comma)));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return placements;
}

/// Rows that are given once hold for every replica of the scenario.
longhaul::Schedule fitted(longhaul::Schedule schedule, const longhaul::Scenario& scenario) {
  if (schedule.replicas_share_rows()) schedule.replicas = scenario.parallel.replicas;
  return schedule;
}

std::vector<Row> rows_of(const Timeline& timeline) {
  std::vector<Row> rows;
  rows.reserve(timeline.rows.size());
  for (const TimelineRow& row : timeline.rows)
    rows.push_back({row.rank, timeline.lanes[at(row.lane)], to_string(row.kind), row.chunk,
                    row.microbatch, row.peer, row.size_bytes, row.start_ns, row.end_ns});
  return rows;
}

Prediction prediction_of(const longhaul::Schedule& schedule, const longhaul::Scenario& scenario,
                         Comm comm) {
  if (const auto why = schedule::violation_but_memory(schedule, scenario)) fail("{}", *why);
  const Plan plan = planner::lower_reported(schedule, scenario, arrangement_of(comm)).plan;
  Timeline timeline;
  plan::append_rows(timeline, plan, sim::simulate(plan), 0);
  const trace::IterationReport report =
      trace::report_iteration(timeline, 0, 0, scenario.activation_budget().count());
  Prediction prediction;
  prediction.makespan_ns = report.makespan_ns;
  prediction.device_span_ns = report.device_span_ns;
  prediction.lower_bound_ns = planner::lower_bound(schedule, scenario).lower_bound.count();
  prediction.bubble_ratio = report.bubble_ratio;
  prediction.peak_activation_bytes = report.peak_activation_bytes;
  prediction.over_budget = schedule::over_budget(schedule, scenario);
  prediction.wan_crossings_on_critical_path = report.wan_crossings_on_critical_path;
  prediction.rows = rows_of(timeline);
  return prediction;
}

}  // namespace

std::string version() { return longhaul::version(); }

Scenario Scenario::load(const std::string& file, const std::vector<std::string>& overrides) {
  return guarded([&] {
    return Scenario{std::make_shared<const Data>(Data{scenario::load_scenario(file, overrides)})};
  });
}

Scenario Scenario::parse(const std::string& toml, const std::vector<std::string>& overrides) {
  return guarded([&] {
    return Scenario{
        std::make_shared<const Data>(Data{scenario::parse_scenario(toml, "scenario", overrides)})};
  });
}

std::string Scenario::name() const { return data().scenario.name; }
int Scenario::stages() const { return data().scenario.parallel.stages; }
int Scenario::replicas() const { return data().scenario.parallel.replicas; }
int Scenario::microbatches() const { return data().scenario.parallel.microbatches; }

std::vector<std::string> Scenario::datacenters() const {
  std::vector<std::string> names;
  for (const Datacenter& datacenter : data().scenario.datacenters) names.push_back(datacenter.name);
  return names;
}

std::vector<int> Scenario::placement() const {
  std::vector<int> places;
  for (const DatacenterId place : data().scenario.placement)
    places.push_back(static_cast<int>(index(place)));
  return places;
}

Schedule Schedule::from_csv(const std::string& csv, const std::string& name) {
  return guarded([&] { return Maker::wrap(schedule::read_csv(csv, name, name)); });
}

std::string Schedule::name() const { return data().schedule.name; }
int Schedule::devices() const { return data().schedule.devices; }
int Schedule::chunks() const { return data().schedule.chunks; }
int Schedule::microbatches() const { return data().schedule.microbatches; }
int Schedule::replicas() const { return data().schedule.replicas; }
std::vector<int> Schedule::device_of_chunk() const {
  return numbers(data().schedule.device_of_chunk.items());
}

std::vector<std::string> Schedule::row(int device, int replica) const {
  const longhaul::Schedule& schedule = data().schedule;
  if (device < 0 || device >= schedule.devices || replica < 0 || replica >= schedule.replicas)
    throw Error{
        fmt::format("schedule {} has no row of device {} in replica {} (it has {} devices, "
                    "{} replicas). Name another one.",
                    schedule.name, device, replica, schedule.devices, schedule.replicas)};
  std::vector<std::string> cells;
  for (const Block& block : schedule.row(ReplicaId{replica}, DeviceId{device}))
    cells.push_back(schedule::csv_cell(block));
  return cells;
}

std::string Schedule::csv() const {
  return guarded([&] { return schedule::write_csv(data().schedule); });
}

std::string Schedule::pytorch_csv() const {
  return guarded(
      [&] { return schedule::write_csv(data().schedule, schedule::CsvFormat::pytorch); });
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const planner::ScheduleName& known : planner::schedule_names()) names.push_back(known.name);
  return names;
}

Schedule make_schedule(const std::string& name, const Scenario& scenario, Comm comm,
                       const Search& search) {
  return guarded([&] {
    if (!(search.seconds >= 0 && search.seconds <= 1e9))
      fail("a search of {} seconds (not between 0 and 1e9). Give 1.", search.seconds);
    if (search.moves.value_or(0) < 0 || search.threads < 0)
      fail("a search of {} moves on {} threads (neither is negative). Give 0 or more.",
           search.moves.value_or(0), search.threads);
    planner::PlannerOptions options;
    options.search.time = std::chrono::nanoseconds{static_cast<std::int64_t>(search.seconds * 1e9)};
    options.search.moves = search.moves;
    options.search.seed = search.seed;
    options.search.threads = search.threads;
    options.search.placements = placements_of(search.placement);
    options.search.arrangement = arrangement_of(comm);
    options.solver.arrangement = arrangement_of(comm);
    const planner::ScheduleChooser chooser{{}, scenario.data().scenario, options};
    auto made = chooser.try_choose(planner::parse_schedule(name)).or_throw();
    return Maker::wrap(std::move(made.schedule));
  });
}

std::optional<std::string> why_invalid(const Schedule& schedule) {
  const auto violation = schedule::first_violation(schedule.data().schedule);
  return violation ? std::optional{violation->text} : std::nullopt;
}

std::optional<std::string> why_invalid(const Schedule& schedule, const Scenario& scenario,
                                       Comm comm) {
  return guarded([&]() -> std::optional<std::string> {
    const longhaul::Scenario& on = scenario.data().scenario;
    const longhaul::Schedule fits = fitted(schedule.data().schedule, on);
    if (auto violation = schedule::first_violation(fits, on)) return std::move(violation->text);
    auto why = planner::why_not_runnable(fits, on, arrangement_of(comm));
    return why ? std::optional{std::move(why->reason)} : std::nullopt;
  });
}

Prediction simulate(const Schedule& schedule, const Scenario& scenario, Comm comm) {
  return guarded([&] {
    const longhaul::Scenario& on = scenario.data().scenario;
    return prediction_of(fitted(schedule.data().schedule, on), on, comm);
  });
}

std::vector<std::string> commands() { return cli::command_names(); }

Answer ask(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  if (std::find(words.begin(), words.end(), "--json") == words.end()) words.emplace_back("--json");
  std::ostringstream out, err;
  const int code = cli::run_longhaul(words, out, err);
  if (code == static_cast<int>(ExitCode::fine)) return {out.str(), true};
  if (code == static_cast<int>(ExitCode::answer_is_no)) return {out.str(), false};
  constexpr std::string_view kPrefix = "longhaul: ";
  std::string why = err.str();
  if (why.starts_with(kPrefix)) why.erase(0, kPrefix.size());
  while (why.ends_with('\n')) why.pop_back();
  throw Error{why};
}

}  // namespace longhaul::api
