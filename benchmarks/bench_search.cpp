// How fast is the search of `best`: moves per second by problem size, and the time that the
// incremental evaluator saves compared with whole orders. One core.
#include <benchmark/benchmark.h>

#include "base/random.hpp"
#include "harness/bench_scenarios/bench_scenarios.hpp"
#include "harness/environment/kernel_main.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/orders/order_problem.hpp"
#include "planner/orders/starts.hpp"
#include "planner/search/annealing.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "planner/wan_sharing/turn_evaluator.hpp"
#include "planner/wan_sharing/turn_search.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::bench {
namespace {

void anneal_order(benchmark::State& state, const char* name) {
  const Scenario scenario = harness::two_datacenters(harness::size_of(state, 0));
  const Schedule start = planner::whole_blocks(schedule::generate(name, scenario));
  const planner::OrderProblem problem{start, scenario};
  constexpr std::int64_t kMoves = 100'000;
  std::int64_t moves = 0;
  std::int64_t accepted = 0;
  const double unit = 1e7;
  for (auto _ : state) {
    const planner::AnnealingResult found = planner::anneal(
        problem, start, nullptr, {0.026 * unit, 0.005 * unit}, 1,
        [](std::int64_t done) { return static_cast<double>(done) / static_cast<double>(kMoves); });
    moves += found.moves;
    accepted += found.accepted;
  }
  state.counters["blocks"] = static_cast<double>(problem.blocks());
  state.counters["moves/s"] = harness::rate(moves);
  state.counters["accepted"] = static_cast<double>(accepted) / static_cast<double>(moves);
}

/// One whole order: times from nothing, as the first evaluation of a search.
void evaluate_all(benchmark::State& state) {
  const Scenario scenario = harness::two_datacenters(harness::size_of(state, 0));
  const Schedule start = schedule::generate("zb-h2", scenario);
  const planner::OrderProblem problem{start, scenario};
  const planner::Orders orders{problem, start};
  for (auto _ : state) {
    planner::Evaluator evaluator{orders, problem.links().front()};
    benchmark::DoNotOptimize(evaluator.makespan());
  }
  state.counters["orders/s"] = harness::rate(state.iterations());
}

/// One whole order by the simulator, on a plan that is lowered already.
void simulate_all(benchmark::State& state) {
  const Scenario scenario = harness::two_datacenters(harness::size_of(state, 0));
  const Plan plan = plan::lower(schedule::generate("zb-h2", scenario), scenario);
  for (auto _ : state) benchmark::DoNotOptimize(sim::simulate(plan));
  state.counters["orders/s"] = harness::rate(state.iterations());
}

/// Lowered and simulated: what a search would do without an evaluator.
void lower_and_simulate(benchmark::State& state) {
  const Scenario scenario = harness::two_datacenters(harness::size_of(state, 0));
  const Schedule start = schedule::generate("zb-h2", scenario);
  for (auto _ : state) benchmark::DoNotOptimize(planner::makespan_of(start, scenario));
  state.counters["orders/s"] = harness::rate(state.iterations());
}

void list_schedules(benchmark::State& state) {
  const Scenario scenario = harness::two_datacenters(harness::size_of(state, 0));
  const Schedule like = schedule::generate("zb-h2", scenario);
  const planner::OrderProblem problem{like, scenario};
  std::uint64_t seed = 0;
  for (auto _ : state) benchmark::DoNotOptimize(planner::list_schedule(problem, like, ++seed));
  state.counters["orders/s"] = harness::rate(state.iterations());
}

/// Rows and WAN turns together: every move evaluates the whole cell.
void anneal_rows_and_turns(benchmark::State& state) {
  const Scenario scenario = harness::cell_of_three(harness::size_of(state, 0));
  const planner::TurnProblem problem{
      planner::share_wan(schedule::generate("1f1b", scenario), scenario), scenario};
  constexpr std::int64_t kMoves = 20'000;
  std::int64_t moves = 0;
  for (auto _ : state) {
    const planner::TurnAnnealingResult found = planner::anneal_turns(
        problem, planner::TurnOrders{problem}, {3e5, 5e4}, 1,
        [](std::int64_t done) { return static_cast<double>(done) / static_cast<double>(kMoves); });
    moves += found.moves;
  }
  state.counters["blocks"] = static_cast<double>(problem.blocks.size());
  state.counters["moves/s"] = harness::rate(moves);
}

/// One whole cell: what a move costs at most.
void evaluate_cell(benchmark::State& state) {
  const Scenario scenario = harness::cell_of_three(harness::size_of(state, 0));
  const planner::TurnProblem problem{
      planner::share_wan(schedule::generate("1f1b", scenario), scenario), scenario};
  const planner::TurnOrders orders{problem};
  planner::TurnEvaluator times{problem};
  for (auto _ : state) benchmark::DoNotOptimize(times.evaluate(orders));
  state.counters["orders/s"] = harness::rate(state.iterations());
}

BENCHMARK_CAPTURE(anneal_order, ud, "zb-h2")
    ->RangeMultiplier(2)
    ->Range(4, 64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(anneal_order, wave, "zbv")
    ->RangeMultiplier(2)
    ->Range(4, 64)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(evaluate_all)->RangeMultiplier(2)->Range(4, 64)->Unit(benchmark::kMicrosecond);
BENCHMARK(simulate_all)->RangeMultiplier(2)->Range(4, 64)->Unit(benchmark::kMicrosecond);
BENCHMARK(lower_and_simulate)->RangeMultiplier(2)->Range(4, 64)->Unit(benchmark::kMicrosecond);
BENCHMARK(anneal_rows_and_turns)->RangeMultiplier(2)->Range(4, 16)->Unit(benchmark::kMillisecond);
BENCHMARK(evaluate_cell)->RangeMultiplier(2)->Range(4, 64)->Unit(benchmark::kMicrosecond);
BENCHMARK(list_schedules)->RangeMultiplier(2)->Range(4, 64)->Unit(benchmark::kMicrosecond);

/// The evaluator of a search says what the simulator says, and annealing ends no later.
void check() {
  Scenario scenario = spread(uniform_scenario(4, 8, 10ms), 2, 20ms, 1ms);
  scenario.memory.budget = 2;
  const Schedule start = planner::whole_blocks(schedule::generate("zb-h2", scenario));
  const planner::OrderProblem problem{start, scenario};
  planner::Evaluator evaluator{planner::Orders{problem, start}, problem.links().front()};
  harness::expect(evaluator.makespan() == planner::makespan_of(start, scenario).count(),
                  "makespan of the evaluator is that of the simulator");
  const planner::AnnealingResult found =
      planner::anneal(problem, start, nullptr, {2.6e5, 5e4}, 1,
                      [](std::int64_t done) { return static_cast<double>(done) / 2000; });
  harness::expect(found.moves >= 2000, "annealing makes its moves");
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
