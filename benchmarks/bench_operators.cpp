// What do operators below blocks cost: 1F1B of Llama 3 70B on 8 stages, to 10^7 operators, with
// lists that blocks share and with an op for each operator. One rank, one core.
#include <algorithm>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/program/program.hpp"
#include "harness/environment/kernel_main.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/draft.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::bench {
namespace {

Scenario llama_in_two_datacenters(std::int64_t microbatches) {
  return scenario::parse_scenario(fmt::format("[model]\npreset = \"llama3-70b\"\n"
                                              "[parallel]\nstages = 8\nmicrobatches = {}\n"
                                              "[[datacenter]]\nname = \"west\"\nstages = \"0-3\"\n"
                                              "[[datacenter]]\nname = \"east\"\nstages = \"4-7\"\n"
                                              "[[link]]\nbetween = [\"west\", \"east\"]\n"
                                              "latency = \"20ms\"\nbandwidth = \"100Gbps\"\n",
                                              microbatches),
                                  "bench_operators");
}

Plan shared_plan(const Schedule& schedule, const Scenario& scenario) {
  return plan::with_operators(plan::lower(schedule, scenario), schedule, scenario).or_throw();
}

/// Bytes of plan, lists and times.
std::size_t resident(const Plan& plan, const OpTimes& times) {
  return plan.ops.capacity() * sizeof(Op) + plan.after.capacity() * sizeof(OpId) +
         plan.operators->steps.capacity() * sizeof(plan::OperatorStep) +
         times.capacity() * sizeof(OpTime);
}

/// Of a plan that has `operators` operators, as ops or below blocks.
void count(benchmark::State& state, const Plan& plan, const OpTimes& times, std::size_t operators) {
  const auto all = static_cast<double>(operators);
  state.counters["operators"] = all;
  state.counters["ops"] = static_cast<double>(plan.ops.size());
  state.counters["operators/s"] =
      benchmark::Counter(all, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/operator"] = static_cast<double>(resident(plan, times)) / all;
}

std::size_t operators_of(const Schedule& schedule, const Scenario& scenario) {
  return plan::count_operators(shared_plan(schedule, scenario)).operators;
}

/// Lowers and simulates.
void shared(benchmark::State& state) {
  const Scenario scenario = llama_in_two_datacenters(state.range(0));
  const Schedule schedule = schedule::generate("1f1b", scenario);
  Plan plan;
  OpTimes times;
  for (auto _ : state) {
    plan = shared_plan(schedule, scenario);
    times = sim::simulate(plan);
  }
  count(state, plan, times, operators_of(schedule, scenario));
}

/// Lowers, makes every operator an op, and simulates.
void expanded(benchmark::State& state) {
  const Scenario scenario = llama_in_two_datacenters(state.range(0));
  const Schedule schedule = schedule::generate("1f1b", scenario);
  Plan plan;
  OpTimes times;
  for (auto _ : state) {
    plan = Plan{};  // so that there is room for one
    times = OpTimes{};
    plan = plan::expand(shared_plan(schedule, scenario));
    times = sim::simulate(plan);
  }
  count(state, plan, times, operators_of(schedule, scenario));
}

enum class Pass { expand, fold, thaw_and_freeze };

/// Of the plan with an op for each operator.
void rewrite(benchmark::State& state, Pass pass) {
  const Scenario scenario = llama_in_two_datacenters(state.range(0));
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const Plan blocks = shared_plan(schedule, scenario);
  const Plan inside = pass == Pass::expand ? Plan{} : plan::expand(blocks);
  for (auto _ : state) {
    switch (pass) {
      case Pass::expand: benchmark::DoNotOptimize(plan::expand(blocks).ops.data()); break;
      case Pass::fold: benchmark::DoNotOptimize(plan::fold(inside).or_throw().ops.data()); break;
      case Pass::thaw_and_freeze:
        benchmark::DoNotOptimize(plan::freeze(plan::thaw(inside)).ops.data());
    }
  }
  state.counters["operators"] = static_cast<double>(operators_of(schedule, scenario));
}

// 6100 microbatches have 10^7 operators.
BENCHMARK(shared)->Arg(61)->Arg(610)->Arg(6100)->Unit(benchmark::kMillisecond);
BENCHMARK(expanded)->Arg(61)->Arg(610)->Arg(6100)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rewrite, expand, Pass::expand)->Arg(6100)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rewrite, fold, Pass::fold)->Arg(6100)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rewrite, thaw_and_freeze, Pass::thaw_and_freeze)
    ->Arg(610)
    ->Unit(benchmark::kMillisecond);

/// Blocks begin with their first operator and end with their last.
void check() {
  const Scenario scenario = llama_in_two_datacenters(16);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const Plan blocks = shared_plan(schedule, scenario);
  const plan::OperatorIds ids{blocks};
  const OpTimes folded = sim::simulate(blocks);
  const OpTimes inside = sim::simulate(plan::expand(blocks));
  bool same = true;
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    same = same && inside[index(ids.first(id))].start == folded[i].start &&
           inside[index(ids.last(id))].end == folded[i].end;
  }
  harness::expect(same, "operators take what their blocks take");
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  longhaul::keep_freed_memory();  // as `longhaul` does
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
