// How long the site planner takes: Atlas' 5 datacenters of 600 GPUs, 60 stages and microbatches
// (the paper: 55 s on one processor, section 6.4), and the search over 8 different datacenters.
// All cores; wall-clock time.
#include <benchmark/benchmark.h>

#include "base/random.hpp"
#include "harness/environment/kernel_main.hpp"
#include "planner/sites/algorithm1.hpp"
#include "planner/sites/branch_and_bound.hpp"

namespace longhaul::bench {
namespace {

Scenario sites(int datacenters, int pipelines) {
  Scenario scenario = uniform_scenario(60, 60, 10ms);
  scenario.parallel.cell = pipelines;
  scenario.parallel.gradient_sync = GradientSync::ring_rate;
  scenario.memory.recompute = true;
  scenario.costs.message.assign(60, Bytes{6'250'000 * pipelines});
  scenario.costs.weights.assign(60, Bytes{824'000'000});
  scenario.placement.clear();
  scenario.datacenters.clear();
  for (int d = 0; d < datacenters; ++d) {
    Datacenter datacenter;
    datacenter.name = "dc" + std::to_string(d + 1);
    datacenter.gpus = 600;
    scenario.datacenters.push_back(datacenter);
    NodeInterfaces nodes;
    nodes.datacenter = DatacenterId{d};
    nodes.egress = nodes.ingress = 5_Gbps;
    nodes.internal = 100_Gbps;
    scenario.nodes.push_back(nodes);
    for (int to = 0; to < datacenters; ++to) {
      if (to == d) continue;
      Link link;
      link.from = DatacenterId{d};
      link.to = DatacenterId{to};
      link.latency = 10ms;
      scenario.links.push_back(link);
    }
  }
  return scenario;
}

/// No two are equal: GPUs, speeds of links, prices and latencies differ.
Scenario different_sites(int datacenters, int pipelines) {
  Scenario scenario = sites(datacenters, pipelines);
  Random random{7};
  for (Datacenter& datacenter : scenario.datacenters) {
    datacenter.gpus = static_cast<int>(random.between(10, 60)) * 10;
    datacenter.price = 1 + random.uniform();
    datacenter.egress_price = 0.02;
  }
  for (Link& link : scenario.links) link.latency = random.between(5, 80) * 1ms;
  return scenario;
}

const char* const kSchedules[] = {"atlas", "varuna", "1f1b"};

void algorithm_1(benchmark::State& state) {
  const Scenario scenario = sites(5, static_cast<int>(state.range(0)));
  planner::Algorithm1Options options;
  options.schedule = planner::parse_schedule(kSchedules[state.range(1)]);
  state.SetLabel(options.schedule.name);
  std::int64_t simulated = 0;
  for (auto _ : state) {
    const planner::GpuInventory inventory{scenario};
    planner::CellTimes cells{inventory};
    benchmark::DoNotOptimize(planner::algorithm1(inventory, options, cells));
    simulated = cells.simulated();
  }
  state.counters["cells"] = static_cast<double>(simulated);
}

void search(benchmark::State& state) {
  const Scenario scenario = different_sites(static_cast<int>(state.range(0)), 2);
  planner::SiteSearchOptions options;
  options.objective =
      state.range(1) == 0 ? planner::SiteObjective::throughput : planner::SiteObjective::cost;
  state.SetLabel(state.range(1) == 0 ? "throughput" : "cost");
  planner::SiteSearch found;
  for (auto _ : state) {
    const planner::GpuInventory inventory{scenario};
    planner::CellTimes cells{inventory};
    found = planner::search_sites(inventory, options, cells);
  }
  state.counters["candidates"] = static_cast<double>(found.candidates);
  state.counters["evaluated"] = static_cast<double>(found.evaluated);
  state.counters["cells"] = static_cast<double>(found.simulated);
  state.counters["gap"] = found.gap;
}

BENCHMARK(algorithm_1)
    ->ArgsProduct({{2, 4}, {0, 1, 2}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(search)
    ->ArgsProduct({{4, 8}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Iterations(1);

/// The search over two datacenters proves its answer, and algorithm 1 finds none that is better.
void check() {
  const Scenario scenario = sites(2, 2);
  const planner::GpuInventory inventory{scenario};
  planner::CellTimes cells{inventory};
  const planner::SitePlans plans = planner::algorithm1(inventory, {}, cells);
  const planner::SitePlan* best =
      planner::best_plan(plans.plans, planner::SiteObjective::throughput);
  const planner::SiteSearch found = planner::search_sites(inventory, {}, cells);
  harness::expect(best != nullptr && found.best && found.gap == 0, "a plan is found and proven");
  harness::expect(planner::score(*found.best, planner::SiteObjective::throughput) <=
                      planner::score(*best, planner::SiteObjective::throughput),
                  "the search is no worse than algorithm 1");
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
