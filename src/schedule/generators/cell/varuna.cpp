#include "schedule/generators/cell/cell.hpp"
#include "schedule/generators/families.hpp"

namespace longhaul::schedule::families {

constexpr CellRules kVaruna{};
constexpr CellRules kVarunaFill{.recompute = RecomputePolicy::idle};

namespace {

void fill_varuna_cell(const Scenario& scenario, Schedule& schedule, const CellRules& rules) {
  schedule.recompute_timing = RecomputeTiming::ahead;
  schedule.rows = run_cell(varuna_problem(scenario, schedule), rules).rows;
}

}  // namespace

/// Athlur et al., "Varuna", EuroSys 2022, as Atlas describes it (sections 3.2 and 4.2): B before R
/// before F, R so that it ends when its gradient arrives, none on the last stage.
void fill_varuna(const Scenario& scenario, Schedule& schedule) {
  fill_varuna_cell(scenario, schedule, kVaruna);
}

void fill_varuna_fill(const Scenario& scenario, Schedule& schedule) {
  fill_varuna_cell(scenario, schedule, kVarunaFill);
}

}  // namespace longhaul::schedule::families
