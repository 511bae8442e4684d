#include <array>

#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy.hpp"

namespace longhaul::families {
namespace {

using enum BlockKind;

// Each list was found greedily: the first serves best alone, each other one helps most where those
// before it leave something to gain over published instances and random ones.

constexpr std::array kOneChunk{
    GreedyRules{.patience = 0.25},
    GreedyRules{.after_forward{F, D, W}, .patience = 0.75, .cap_first = 1, .cap_slope = 2},
    GreedyRules{.after_backward{D, F, W}, .patience = 0.5},
    GreedyRules{.patience = 1, .cap_first = 1, .cap_slope = 1.5},
    GreedyRules{},
    GreedyRules{.patience = 0.5, .cap_first = 1, .cap_slope = 1.5},
    GreedyRules{.after_forward{F, D, W}, .cap_first = 1, .cap_slope = 1.5},
    GreedyRules{.patience = 0.75},
    GreedyRules{.after_forward{D, W, F}, .cap_first = 1, .cap_slope = 2},
    GreedyRules{.after_backward{D, F, W},
                .memory_full{D, W, F},
                .patience = 0.75,
                .cap_first = 1,
                .cap_slope = 1},
};

/// Parts of W wait for less.
constexpr std::array kInParts{
    GreedyRules{.patience = 0.5},
    GreedyRules{.after_forward{F, D, W}, .patience = 1, .cap_first = 1, .cap_slope = 1.5},
    GreedyRules{.after_backward{D, F, W}, .memory_full{D, W, F}, .cap_first = 1, .cap_slope = 2},
    GreedyRules{.after_forward{F, D, W}, .patience = 0.25, .cap_first = 1, .cap_slope = 1.5},
    GreedyRules{.after_backward{D, F, W}, .memory_full{D, W, F}, .patience = 0.75},
    GreedyRules{.after_backward{F, W, D}, .patience = 1},
    GreedyRules{.after_forward{D, W, F}},
};

}  // namespace

void fill_cross_ud(const Scenario& scenario, Schedule& schedule) {
  run_best(greedy_problem(scenario, schedule, 1), kOneChunk, schedule.rows);
}

void fill_cross_ud_sub(const Scenario& scenario, Schedule& schedule) {
  const GreedyProblem parts = greedy_problem(scenario, schedule, scenario.parallel.sub_blocks);
  const GreedyProblem whole = greedy_problem(scenario, schedule, 1);
  std::vector<GreedyTrial> trials;
  for (const GreedyRules& rules : kInParts) trials.push_back({&parts, &rules});
  for (const GreedyRules& rules : kOneChunk) trials.push_back({&whole, &rules});
  run_best(trials, schedule.rows);
}

void fill_cross_wave(const Scenario& scenario, Schedule& schedule) {
  run_best(greedy_problem(scenario, schedule, 1), kOneChunk, schedule.rows);
}

void fill_cross_loop(const Scenario& scenario, Schedule& schedule) {
  run_best(greedy_problem(scenario, schedule, 1), kOneChunk, schedule.rows);
}

}  // namespace longhaul::families
