// How fast is the simulator in order of time: 1F1B, P = 64, M = 1024, which needs none of it, and a
// stream whose link chooses. One rank, one core.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/program/program.hpp"
#include "harness/environment/kernel_main.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/plan_draft.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::bench {
namespace {

Plan plan_of_1f1b(int stages, int microbatches) {
  const Scenario scenario = spread(uniform_scenario(stages, microbatches, 10ms), 2, 20ms, 1ms);
  return plan::lower(schedule::generate("1f1b", scenario), scenario);
}

void count(benchmark::State& state, double ops) {
  state.counters["ops/s"] = benchmark::Counter(ops, benchmark::Counter::kIsIterationInvariantRate);
}

void plain(benchmark::State& state) {
  const Plan plan =
      plan_of_1f1b(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(sim::simulate_in_order_of_time(plan));
  count(state, static_cast<double>(plan.ops.size()));
}

/// A device and `parts` messages an iteration over a link that serves by deadline, each of which
/// the next iteration's block waits for.
Plan plan_of_parts(int parts) {
  plan::PlanDraft draft{"parts"};
  const Rank from = draft.add_rank("east");
  const Rank to = draft.add_rank("west");
  const LaneId blocks = draft.add_lane(from, "compute", OpKind::compute,
                                       {draft.add_resource("device 0", ResourceKind::device)});
  const ResourceId link =
      draft.add_resource("link 0>1", ResourceKind::shared_link, 1, Serve::deadline);
  for (int part = 0; part < parts; ++part) {
    const auto block = draft.add_block(blocks, 10us);
    const LaneId sends = draft.add_lane(from, fmt::format("send>1/{}", part), OpKind::send, {link});
    const LaneId receives = draft.add_lane(to, fmt::format("recv<0/{}", part), OpKind::recv);
    const auto message = draft.add_message(sends, receives, 9us, 50us);
    draft.after(message.send, block);
    draft.priority(message.send, -part);
    draft.after(block, message.recv, 1);
  }
  return draft.make();
}

void stream(benchmark::State& state) {
  const Plan plan = plan_of_parts(static_cast<int>(state.range(0)));
  constexpr int kIterations = 1000;
  for (auto _ : state)
    sim::simulate_stream(plan, {kIterations, {}}, [](const sim::StreamedIteration& done) {
      benchmark::DoNotOptimize(done.results.times.data());
    });
  count(state, static_cast<double>(plan.ops.size()) * kIterations);
}

BENCHMARK(plain)->Args({8, 16})->Args({64, 1024})->Unit(benchmark::kMillisecond);
BENCHMARK(stream)->Arg(3)->Arg(100)->Unit(benchmark::kMillisecond);

void check() {
  const Plan plan = plan_of_1f1b(8, 16);
  const OpTimes swept = sim::simulate(plan);
  const OpTimes driven = sim::simulate_in_order_of_time(plan).or_throw().times;
  bool same = swept.size() == driven.size();
  for (std::size_t i = 0; same && i < swept.size(); ++i) same = swept[i].end == driven[i].end;
  harness::expect(same, "1F1B in order of time takes what it takes lane by lane");
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  longhaul::keep_freed_memory();  // as `longhaul` does
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
