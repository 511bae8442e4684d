#include "schedule/generators/cell/atlas.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/cells.hpp"
#include "schedule/generators/cell/cell.hpp"
#include "schedule/generators/families.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::schedule::families {

constexpr CellRules kAtlas{.recompute = RecomputePolicy::idle, .at_once = true};
constexpr CellRules kAtlasTimed{.at_once = true};
constexpr CellRules kAtlasEven{.recompute = RecomputePolicy::idle, .at_once = true, .even = true};

namespace {

/// All cells of a schedule; those with equal links share one problem.
struct Cells {
  std::vector<CellProblem> problems;
  std::vector<std::size_t> problem_of;  ///< index: cell
};

Result<Cells> find_cells(const Scenario& scenario, const Schedule& schedule) {
  Cells cells;
  for (int cell = 0; cell * schedule.cell < schedule.replicas; ++cell) {
    Result<CellProblem> problem = atlas_problem(scenario, schedule, cell_replicas(schedule, cell));
    if (!problem) return problem.refusal();
    const auto known = std::ranges::find(cells.problems, *problem);
    cells.problem_of.push_back(at(known - cells.problems.begin()));
    if (known == cells.problems.end()) cells.problems.push_back(*std::move(problem));
  }
  return cells;
}

bool cells_are_equal(const Schedule& schedule, const Cells& cells) {
  return schedule.cell == 1 && cells.problems.size() == 1;
}

/// Calls `use(cell, problem, times)` for every cell whose rows the schedule has.
template <typename Use>
void for_each_cell(const Schedule& schedule, const Cells& cells,
                   const std::vector<CellTimes>& times, Use use) {
  const std::size_t last = cells_are_equal(schedule, cells) ? 1 : cells.problem_of.size();
  for (std::size_t cell = 0; cell < last; ++cell) {
    const std::size_t p = cells.problem_of[cell];
    use(static_cast<int>(cell), cells.problems[p], times[p]);
  }
}

std::vector<CellTimes> run_cells(const Cells& cells, const CellRules& rules) {
  std::vector<CellTimes> times;
  for (const CellProblem& problem : cells.problems) times.push_back(run_cell(problem, rules));
  return times;
}

std::optional<Refusal> fill_atlas_cell(const Scenario& scenario, Schedule& schedule,
                                       const CellRules& rules) {
  schedule.recompute_timing = RecomputeTiming::ahead;
  schedule.cell = cell_size(scenario);
  if (auto why = why_no_cells(schedule, scenario)) return why;
  const Result<Cells> found = find_cells(scenario, schedule);
  if (!found) return found.refusal();
  const Cells& cells = *found;
  const std::vector<CellTimes> times = run_cells(cells, rules);
  schedule.rows.clear();
  for_each_cell(
      schedule, cells, times, [&](int cell, const CellProblem& problem, const CellTimes& of_cell) {
        schedule.rows.insert(schedule.rows.end(), of_cell.rows.begin(), of_cell.rows.end());
        if (schedule.cell == 1) return;
        for (std::size_t t = 0; t < problem.turns.size(); ++t) {
          const auto [from, to] = problem.turns[t];
          LinkOrder& order = schedule.link_orders.emplace_back(turns_order(cell, from, to));
          const CellReplicas replicas = cell_replicas(schedule, cell);
          order.messages.reserve(of_cell.transfers[t].size());
          for (const CellTransfer& transfer : of_cell.transfers[t])
            order.messages.push_back({replicas[transfer.pipeline], transfer.producer});
        }
      });
  return std::nullopt;
}

/// When the last B of every stage has ended and its gradients are summed.
Duration end_of(const CellProblem& problem, const CellTimes& times) {
  Duration end{};
  for (std::size_t node = 0; node < times.rows.size(); ++node) {
    const CellStage& stage = problem.stages[node % problem.stages.size()];
    end = std::max(end, times.starts[node].back() + stage.backward + stage.reduction);
  }
  return end;
}

Timetable varuna_timetable(const Scenario& scenario, const Schedule& schedule,
                           const CellRules& rules) {
  const CellProblem problem = varuna_problem(scenario, schedule);
  CellTimes times = run_cell(problem, rules);
  const Duration end = end_of(problem, times);
  return {std::move(times.starts), {}, end};
}

Result<Timetable> atlas_timetable(const Scenario& scenario, const Schedule& schedule,
                                  const CellRules& rules) {
  const Result<Cells> found = find_cells(scenario, schedule);
  if (!found) return found.refusal();
  const Cells& cells = *found;
  std::vector<CellTimes> times = run_cells(cells, rules);
  Timetable table;
  for (std::size_t p = 0; p < times.size(); ++p) start_late(cells.problems[p], times[p]);
  for_each_cell(
      schedule, cells, times, [&](int cell, const CellProblem& problem, const CellTimes& of_cell) {
        table.end = std::max(table.end, end_of(problem, of_cell));
        table.starts.insert(table.starts.end(), of_cell.starts.begin(), of_cell.starts.end());
        if (schedule.cell == 1) return;
        const CellReplicas replicas = cell_replicas(schedule, cell);
        for (const std::vector<CellTransfer>& turns : of_cell.transfers) {
          std::vector<TimedTransfer>& timed = table.turns.emplace_back();
          for (const CellTransfer& transfer : turns)
            timed.push_back(
                {{replicas[transfer.pipeline], transfer.producer}, transfer.start, transfer.end});
        }
      });
  return table;
}

}  // namespace

std::optional<Refusal> fill_atlas(const Scenario& scenario, Schedule& schedule) {
  return fill_atlas_cell(scenario, schedule, kAtlas);
}
std::optional<Refusal> fill_atlas_timed(const Scenario& scenario, Schedule& schedule) {
  return fill_atlas_cell(scenario, schedule, kAtlasTimed);
}
std::optional<Refusal> fill_atlas_even(const Scenario& scenario, Schedule& schedule) {
  return fill_atlas_cell(scenario, schedule, kAtlasEven);
}

}  // namespace longhaul::schedule::families

namespace longhaul::schedule {

Timetable timetable_of(const Generator& generator, const Scenario& scenario) {
  using namespace families;
  LONGHAUL_ASSERT(generator.timetable != nullptr, "{} has no timetable", generator.name);
  const Schedule schedule = try_generate(generator, scenario).or_throw();
  return generator.shares_wan ? atlas_timetable(scenario, schedule, *generator.timetable).or_throw()
                              : varuna_timetable(scenario, schedule, *generator.timetable);
}

Timetable timetable_of(std::string_view name, const Scenario& scenario) {
  const Generator* const generator = find_generator(name);
  if (generator != nullptr && generator->timetable != nullptr)
    return timetable_of(*generator, scenario);
  static_cast<void>(generate(name, scenario));  // says whether there is such a schedule at all
  fail("There is no timetable of \"{}\" (varuna and atlas have one). Name one of them.", name);
}

Result<Duration> least_time(const Generator& generator, const Scenario& scenario,
                            std::span<const LeastHop> hops, Duration enough) {
  using namespace families;
  if (generator.timetable == nullptr) return Duration::zero();
  const families::CellRules& rules = *generator.timetable;
  Result<Schedule> empty = empty_schedule(generator, scenario);
  if (!empty) return empty.refusal();
  Schedule schedule = *std::move(empty);
  if (!generator.shares_wan)
    return families::earliest_end(families::varuna_problem(scenario, schedule), rules, hops,
                                  enough);
  schedule.recompute_timing = RecomputeTiming::ahead;
  schedule.cell = cell_size(scenario);
  if (auto why = why_no_cells(schedule, scenario)) return *std::move(why);
  const CellReplicas replicas = cell_replicas(schedule, 0);
  const Result<families::CellProblem> problem =
      families::atlas_problem(scenario, schedule, replicas);
  if (!problem) return problem.refusal();
  return families::earliest_end(*problem, rules, hops, enough);
}

}  // namespace longhaul::schedule
