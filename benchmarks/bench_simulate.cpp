// How fast is the simulator: 1F1B, P = 64, M = 1024 (others' rates: docs/performance.md), to 10^7
// ops, and one iteration of 3,000 GPUs whose cells share the WAN. One rank, one core.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "base/program/program.hpp"
#include "harness/environment/kernel_main.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::bench {
namespace {

Scenario two_datacenters(benchmark::State& state, Sharing sharing) {
  const auto stages = static_cast<int>(state.range(0));
  const auto microbatches = static_cast<int>(state.range(1));
  Scenario scenario = spread(uniform_scenario(stages, microbatches, 10ms), 2, 20ms, 1ms);
  for (Link& link : scenario.links) link.sharing = sharing;
  return scenario;
}

/// Bytes of an op's part of plan and result; the simulator's own state grows with lanes, not ops.
double bytes_per_op(const Plan& plan) {
  const auto bytes = plan.ops.capacity() * sizeof(Op) + plan.after.capacity() * sizeof(OpId);
  return static_cast<double>(bytes) / static_cast<double>(plan.ops.size()) + sizeof(OpTime);
}

void simulate_1f1b(benchmark::State& state, Sharing sharing, Arrangement arrangement) {
  const Scenario scenario = two_datacenters(state, sharing);
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario, arrangement);
  for (auto _ : state) benchmark::DoNotOptimize(sim::simulate(plan));
  state.counters["ops"] = static_cast<double>(plan.ops.size());
  state.counters["ops/s"] = benchmark::Counter(static_cast<double>(plan.ops.size()),
                                               benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/op"] = bytes_per_op(plan);
}

void lower_1f1b(benchmark::State& state) {
  const Scenario scenario = two_datacenters(state, Sharing::pair);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  std::size_t ops = 0;
  for (auto _ : state) ops = plan::lower(schedule, scenario).ops.size();
  state.counters["ops/s"] =
      benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsIterationInvariantRate);
}

/// Atlas section 6.2 at scale: 60 stages, 50 pipelines, 60 microbatches, 5 datacenters of 600 GPUs;
/// 5 Gbps to the WAN and 100 Gbps inside for each GPU, 40 ms.
Scenario atlas_at_scale() {
  Scenario scenario = uniform_scenario(60, 60, 10ms);
  scenario.parallel.replicas = 50;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.costs.message.assign(60, 25_MiB);
  scenario = spread(scenario, 5, 40ms, 0ms);
  for (int datacenter = 0; datacenter < 5; ++datacenter)
    scenario.nodes.push_back({DatacenterId{datacenter}, 1, 5_Gbps, 5_Gbps, 100_Gbps});
  return scenario;
}

/// 1F1B whose cells send in the order of microbatches, ties by replica.
Schedule in_cells(const Scenario& scenario, int cell) {
  Schedule schedule = schedule::generate("1f1b", scenario);
  schedule.cell = cell;
  const auto add = [&](int c, BlockKind kind, int from, int to) {
    if (scenario.datacenter_of(Rank{from}) == scenario.datacenter_of(Rank{to})) return;
    const CellReplicas members = cell_replicas(schedule, c);
    LinkOrder turns = turns_order(c, DeviceId{from}, DeviceId{to});
    for (int m = 0; m < schedule.microbatches; ++m) {
      for (const ReplicaId replica : members.ids())
        turns.messages.push_back({replica, {kind, 0, 1, ChunkId{from}, MicrobatchId{m}}});
    }
    schedule.link_orders.push_back(std::move(turns));
  };
  for (int c = 0; c * cell < schedule.replicas; ++c) {
    for (int device = 0; device + 1 < schedule.devices; ++device) {
      add(c, BlockKind::F, device, device + 1);
      add(c, BlockKind::B, device + 1, device);
    }
  }
  return schedule;
}

enum class Step { lower, simulate, both, pooled };

void cells(benchmark::State& state, Step step) {
  const Scenario scenario = atlas_at_scale();
  const Schedule schedule = in_cells(scenario, static_cast<int>(state.range(0)));
  const Plan plan = step == Step::pooled ? plan::lower_pooled(schedule, scenario)
                                         : plan::lower(schedule, scenario);
  for (auto _ : state) {
    switch (step) {
      case Step::lower: benchmark::DoNotOptimize(plan::lower(schedule, scenario)); break;
      case Step::simulate: benchmark::DoNotOptimize(sim::simulate(plan)); break;
      case Step::both:
        benchmark::DoNotOptimize(sim::simulate(plan::lower(schedule, scenario)));
        break;
      case Step::pooled:
        benchmark::DoNotOptimize(sim::simulate(plan::lower_pooled(schedule, scenario)));
    }
  }
  state.counters["ranks"] = static_cast<double>(plan.ranks.size());
  state.counters["ops"] = static_cast<double>(plan.ops.size());
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
BENCHMARK_CAPTURE(cells, lower, Step::lower)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(cells, simulate, Step::simulate)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(cells, both, Step::both)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(cells, pooled, Step::pooled)->Arg(2)->Arg(4)->Unit(benchmark::kMillisecond);
BENCHMARK(lower_1f1b)->Args({64, 1024})->Unit(benchmark::kMillisecond);

Duration makespan_of(const Plan& plan) {
  return std::ranges::max(sim::simulate(plan), {}, &OpTime::end).end;
}

/// Without links 1F1B takes (M + P - 1) (F + B), and pooled collectives change no time.
void check() {
  const Scenario scenario = uniform_scenario(8, 16, 10ms);
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  harness::expect(makespan_of(plan) == 23 * 30ms, "1F1B with 8 stages and 16 microbatches");
  Scenario replicated = uniform_scenario(4, 8, 10ms);
  replicated.parallel.replicas = 4;
  replicated.parallel.gradient_sync = GradientSync::all_reduce;
  replicated = spread(replicated, 2, 20ms, 1ms);
  const Schedule schedule = schedule::generate("zb-h1", replicated);
  harness::expect(makespan_of(plan::lower(schedule, replicated)) ==
                      makespan_of(plan::lower_pooled(schedule, replicated)),
                  "pooled lowering ends when the other does");
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  longhaul::keep_freed_memory();  // as `longhaul` does
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
