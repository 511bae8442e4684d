#include <array>

#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy/greedy.hpp"
#include "schedule/generators/greedy/row_times.hpp"
#include "schedule/generators/greedy/wave_list.hpp"

namespace longhaul::schedule::families {
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

constexpr std::array kWave{
    GreedyRules{.memory_full{D, W, F}, .patience = 0.5, .sharing = 1, .deep_dgrad = true},
    GreedyRules{.after_forward{F, D, W}, .patience = 0.5, .sharing = 0.9, .deep_wgrad = false},
    GreedyRules{.memory_full{D, W, F}, .sharing = 0.9, .deep_dgrad = true, .deep_wgrad = false},
    GreedyRules{.after_forward{F, D, W}, .patience = 1, .sharing = 0.5},
    GreedyRules{.after_forward{F, D, W},
                .after_backward{D, F, W},
                .memory_full{D, W, F},
                .patience = 0.5,
                .sharing = 1,
                .deep_dgrad = true,
                .deep_wgrad = false},
    GreedyRules{.after_forward{F, D, W},
                .after_backward{F, W, D},
                .memory_full{D, W, F},
                .patience = 0.5,
                .sharing = 1,
                .deep_wgrad = false},
    GreedyRules{.after_forward{F, D, W},
                .memory_full{D, W, F},
                .patience = 1,
                .sharing = 0.9,
                .deep_dgrad = true},
    GreedyRules{.after_forward{F, D, W}, .patience = 1, .sharing = 1},
    GreedyRules{.after_backward{D, W, F}, .memory_full{D, W, F}, .patience = 1, .sharing = 0.9},
    GreedyRules{.after_forward{D, W, F},
                .after_backward{D, F, W},
                .memory_full{D, W, F},
                .patience = 0.5,
                .sharing = 0.75,
                .deep_wgrad = false},
    GreedyRules{.patience = 0.5, .sharing = 1, .deep_dgrad = true},
    GreedyRules{.after_forward{F, D, W},
                .memory_full{D, W, F},
                .patience = 0.5,
                .sharing = 0.9,
                .deep_dgrad = true},
    GreedyRules{},  // as section 4.2 states them
};

constexpr std::array kLoop{
    GreedyRules{.memory_full{D, W, F}, .patience = 0.5, .sharing = 1, .deep_dgrad = true},
    GreedyRules{.memory_full{D, W, F}, .patience = 0.5, .sharing = 1.1, .deep_forward = false},
    GreedyRules{.sharing = 0.75, .deep_dgrad = true},
    GreedyRules{.after_backward{D, F, W}, .patience = 0.5, .sharing = 1.1},
    GreedyRules{.after_backward{D, F, W},
                .patience = 1,
                .sharing = 0.9,
                .deep_forward = false,
                .deep_dgrad = true},
    GreedyRules{.after_forward{D, W, F},
                .after_backward{F, W, D},
                .patience = 1,
                .sharing = 1,
                .deep_dgrad = true,
                .deep_wgrad = false},
    GreedyRules{.memory_full{D, W, F},
                .patience = 0.5,
                .sharing = 1,
                .deep_forward = false,
                .deep_dgrad = true,
                .deep_wgrad = false},
    GreedyRules{.patience = 0.5, .sharing = 1.1, .deep_wgrad = false},
    GreedyRules{.memory_full{D, W, F}, .patience = 0.5, .sharing = 0.75},
    GreedyRules{.after_forward{D, W, F}, .patience = 1, .sharing = 0.5},
    GreedyRules{.after_backward{D, F, W}, .memory_full{D, W, F}, .sharing = 1, .deep_dgrad = true},
    GreedyRules{.after_forward{D, W, F},
                .after_backward{D, F, W},
                .patience = 0.5,
                .sharing = 1,
                .deep_forward = false,
                .deep_dgrad = true},
};

std::optional<Refusal> fill(const Scenario& scenario, Schedule& schedule,
                            std::span<const GreedyRules> rules) {
  const Result<GreedyProblem> problem = greedy_problem(scenario, schedule, 1);
  if (!problem) return problem.refusal();
  run_best(*problem, rules, schedule.rows);
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> fill_cross_ud(const Scenario& scenario, Schedule& schedule) {
  return fill(scenario, schedule, kOneChunk);
}

std::optional<Refusal> fill_cross_ud_sub(const Scenario& scenario, Schedule& schedule) {
  const Result<GreedyProblem> parts =
      greedy_problem(scenario, schedule, scenario.parallel.sub_blocks);
  if (!parts) return parts.refusal();
  const Result<GreedyProblem> whole = greedy_problem(scenario, schedule, 1);
  if (!whole) return whole.refusal();
  std::vector<GreedyTrial> trials;
  for (const GreedyRules& rules : kInParts) trials.push_back({&*parts, &rules});
  for (const GreedyRules& rules : kOneChunk) trials.push_back({&*whole, &rules});
  run_best(trials, schedule.rows);
  return std::nullopt;
}

/// The passes of zbv-auto are starts too, as they are and with delays: rules that look one block
/// ahead miss their regular steady phase where links delay little.
std::optional<Refusal> fill_cross_wave(const Scenario& scenario, Schedule& schedule) {
  const Result<GreedyProblem> problem = greedy_problem(scenario, schedule, 1);
  if (!problem) return problem.refusal();
  Duration least = run_best(*problem, kWave, schedule.rows);
  const GreedyProblem blocks = without_delays(*problem);
  for (const GreedyProblem* planned : {&blocks, &*problem}) {
    auto rows = best_wave_rows(scenario, schedule, {.planned = *planned, .judged = *problem});
    const Duration end = time_of_rows(*problem, rows);
    if (end >= least) continue;
    schedule.rows = std::move(rows);
    least = end;
  }
  return std::nullopt;
}

std::optional<Refusal> fill_cross_loop(const Scenario& scenario, Schedule& schedule) {
  return fill(scenario, schedule, kLoop);
}

}  // namespace longhaul::schedule::families
