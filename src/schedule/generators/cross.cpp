#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy.hpp"

namespace longhaul::families {

void fill_cross_ud(const Scenario& scenario, Schedule& schedule) {
  run_greedy(greedy_problem(scenario, schedule, 1), GreedyRules{}, &schedule.rows);
}

void fill_cross_ud_sub(const Scenario& scenario, Schedule& schedule) {
  run_greedy(greedy_problem(scenario, schedule, scenario.parallel.sub_blocks), GreedyRules{},
             &schedule.rows);
}

void fill_cross_wave(const Scenario& scenario, Schedule& schedule) {
  run_greedy(greedy_problem(scenario, schedule, 1), GreedyRules{}, &schedule.rows);
}

void fill_cross_loop(const Scenario& scenario, Schedule& schedule) {
  run_greedy(greedy_problem(scenario, schedule, 1), GreedyRules{}, &schedule.rows);
}

}  // namespace longhaul::families
