// How fast is the simulator: 1F1B, P = 64, M = 1024 (LogGOPSim's and vTrain's published rates are
// in docs/performance.md), and how it grows to 10^7 ops. One rank, one core.
#include <benchmark/benchmark.h>

#include "plan/lower.hpp"
#include "schedule/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

Scenario two_datacenters(benchmark::State& state, Sharing sharing) {
  const auto stages = static_cast<int>(state.range(0));
  const auto microbatches = static_cast<int>(state.range(1));
  Scenario scenario = spread(uniform_scenario(stages, microbatches, 10ms), 2, 20ms, 1ms);
  for (Link& link : scenario.links) link.sharing = sharing;
  return scenario;
}

double plan_bytes(const Plan& plan) {
  return static_cast<double>(plan.ops.capacity() * sizeof(Op) +
                             plan.after.capacity() * sizeof(OpId));
}

/// Bytes of an op's part of plan and result; the simulator's own state grows with lanes, not ops.
double bytes_per_op(const Plan& plan) {
  return plan_bytes(plan) / static_cast<double>(plan.ops.size()) + sizeof(OpTime);
}

void simulate_1f1b(benchmark::State& state, Sharing sharing, Arrangement arrangement) {
  const Scenario scenario = two_datacenters(state, sharing);
  const Plan plan = lower(generate("1f1b", scenario), scenario, arrangement);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(plan));
  state.counters["ops"] = static_cast<double>(plan.ops.size());
  state.counters["ops/s"] = benchmark::Counter(static_cast<double>(plan.ops.size()),
                                               benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/op"] = bytes_per_op(plan);
}

void lower_1f1b(benchmark::State& state) {
  const Scenario scenario = two_datacenters(state, Sharing::pair);
  const Schedule schedule = generate("1f1b", scenario);
  std::size_t ops = 0;
  for (auto _ : state) ops = lower(schedule, scenario).ops.size();
  state.counters["ops/s"] =
      benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(simulate_1f1b, pair, Sharing::pair, Arrangement::decoupled)
    ->Args({8, 16})
    ->Args({64, 1024})
    ->Args({64, 8192})
    ->Args({256, 6400})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_1f1b, shared_link, Sharing::datacenter, Arrangement::decoupled)
    ->Args({64, 1024})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_1f1b, grouped, Sharing::pair, Arrangement::grouped)
    ->Args({64, 1024})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(lower_1f1b)->Args({64, 1024})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace longhaul

BENCHMARK_MAIN();
