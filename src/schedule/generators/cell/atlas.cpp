#include "schedule/generators/cell/atlas.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/cells.hpp"
#include "schedule/generators/cell/cell.hpp"
#include "schedule/generators/empty_schedule.hpp"
#include "schedule/generators/families.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::families {
namespace {

/// All cells of a schedule; those whose links are alike share one problem.
struct Cells {
  std::vector<CellProblem> problems;
  std::vector<std::size_t> problem_of;  ///< index: cell
};

Cells find_cells(const Scenario& scenario, const Schedule& schedule) {
  Cells cells;
  for (int cell = 0; cell * schedule.cell < schedule.replicas; ++cell) {
    CellProblem problem = atlas_problem(scenario, schedule, cell_replicas(schedule, cell));
    const auto known = std::ranges::find(cells.problems, problem);
    cells.problem_of.push_back(at(known - cells.problems.begin()));
    if (known == cells.problems.end()) cells.problems.push_back(std::move(problem));
  }
  return cells;
}

bool alike(const Schedule& schedule, const Cells& cells) {
  return schedule.cell == 1 && cells.problems.size() == 1;
}

/// Calls `use(cell, problem, times)` for every cell whose rows the schedule has.
template <typename Use>
void for_each_cell(const Schedule& schedule, const Cells& cells,
                   const std::vector<CellTimes>& times, Use use) {
  const std::size_t last = alike(schedule, cells) ? 1 : cells.problem_of.size();
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

void fill_atlas_cell(const Scenario& scenario, Schedule& schedule, const CellRules& rules) {
  schedule.recompute_timing = RecomputeTiming::ahead;
  schedule.cell = cell_size(scenario);
  check_cells(schedule, scenario);
  const Cells cells = find_cells(scenario, schedule);
  const std::vector<CellTimes> times = run_cells(cells, rules);
  schedule.rows.clear();
  for_each_cell(
      schedule, cells, times, [&](int cell, const CellProblem& problem, const CellTimes& of_cell) {
        schedule.rows.insert(schedule.rows.end(), of_cell.rows.begin(), of_cell.rows.end());
        if (schedule.cell == 1) return;
        for (std::size_t t = 0; t < problem.turns.size(); ++t) {
          const auto [from, to] = problem.turns[t];
          LinkOrder& order = schedule.link_orders.emplace_back(turns_name(cell, from, to));
          const CellReplicas replicas = cell_replicas(schedule, cell);
          order.messages.reserve(of_cell.transfers[t].size());
          for (const CellTransfer& transfer : of_cell.transfers[t])
            order.messages.push_back({replicas[transfer.pipeline], transfer.producer});
        }
      });
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

Timetable atlas_timetable(const Scenario& scenario, const Schedule& schedule,
                          const CellRules& rules) {
  const Cells cells = find_cells(scenario, schedule);
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

void fill_atlas(const Scenario& scenario, Schedule& schedule) {
  fill_atlas_cell(scenario, schedule, kAtlas);
}
void fill_atlas_timed(const Scenario& scenario, Schedule& schedule) {
  fill_atlas_cell(scenario, schedule, kAtlasTimed);
}
void fill_atlas_even(const Scenario& scenario, Schedule& schedule) {
  fill_atlas_cell(scenario, schedule, kAtlasEven);
}

}  // namespace longhaul::families

namespace longhaul {

namespace {

/// A schedule of this family.
struct Kind {
  std::string_view name;
  bool shares = false;  ///< the WAN in time
  families::CellRules rules;
};
constexpr std::array kCellKinds{
    Kind{"varuna", false, families::kVaruna}, Kind{"varuna-fill", false, families::kVarunaFill},
    Kind{"atlas", true, families::kAtlas}, Kind{"atlas-timed", true, families::kAtlasTimed},
    Kind{"atlas-even", true, families::kAtlasEven}};

const Kind* find_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kCellKinds, name, &Kind::name);
  return found == kCellKinds.end() ? nullptr : found;
}

}  // namespace

bool has_timetable(std::string_view name) { return find_kind(name) != nullptr; }

Timetable timetable_of(std::string_view name, const Scenario& scenario) {
  using namespace families;
  const Schedule schedule = generate(name, scenario);
  const Kind* const kind = find_kind(name);
  if (kind == nullptr)
    fail("There is no timetable of \"{}\" (varuna and atlas have one). Name one of them.", name);
  return kind->shares ? atlas_timetable(scenario, schedule, kind->rules)
                      : varuna_timetable(scenario, schedule, kind->rules);
}

std::optional<Duration> least_time(std::string_view name, const Scenario& scenario,
                                   std::span<const LeastHop> hops, Duration enough) {
  using namespace families;
  const Kind* const kind = find_kind(name);
  if (kind == nullptr) return std::nullopt;
  Schedule schedule = empty_schedule(*find_generator(name), scenario);
  if (!kind->shares)
    return earliest_end(varuna_problem(scenario, schedule), kind->rules, hops, enough);
  schedule.recompute_timing = RecomputeTiming::ahead;
  schedule.cell = cell_size(scenario);
  check_cells(schedule, scenario);
  const CellReplicas replicas = cell_replicas(schedule, 0);
  return earliest_end(atlas_problem(scenario, schedule, replicas), kind->rules, hops, enough);
}

}  // namespace longhaul
