// How long a search of overlaps takes for a candidate: an iteration of FSDP of LLaMA big, 30
// layers, over 8 to 256 GPUs of cluster A, laid out and simulated with ranks that do the same once,
// and all of them; gathers and scatters as rings over all ranks, or in sub-groups. And whole
// searches. Google Benchmark: --benchmark_filter=candidate.
#include <utility>

#include "harness/environment/kernel_main.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "planner/overlap/overlap_search.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::bench {
namespace {

using collective::Grouping;
using planner::OverlapDecisions;
using planner::OverlapVariant;

enum Shape : int { flat, grouped, in_pieces };

Scenario over(int gpus) {
  const std::vector<std::string> set{fmt::format("parallel.replicas={}", gpus),
                                     fmt::format("parallel.shard={}", gpus)};
  return scenario::load_scenario(LONGHAUL_CHECKOUT "/benchmarks/scenarios/centauri-scale.toml",
                                 set);
}

struct Candidate {
  explicit Candidate(int gpus, Shape shape)
      : scenario{over(gpus)},
        variant{planner::overlap_variant(schedule::generate("gpipe", scenario), scenario,
                                         Arrangement::decoupled)
                    .or_throw()} {
    for (const collective::CommunicationClass& each : variant.classes) {
      collective::Partition own;
      if (shape != flat)
        own.grouping =
            each.kind == CollectiveKind::all_gather ? Grouping::far_first : Grouping::near_first;
      if (shape == in_pieces) own.pieces = 4;
      decisions.partitions.push_back(own);
    }
  }
  Scenario scenario;
  OverlapVariant variant;
  OverlapDecisions decisions;
};

/// As OverlapEvaluator does it.
std::pair<Duration, std::size_t> evaluate(const Candidate& of, collective::FoldingMemo& memo) {
  const collective::IterationPlan plan = planner::decided(of.variant, of.decisions);
  const planner::SimulatedIteration ran = planner::simulate_iteration(plan, memo).or_throw();
  const collective::IterationTimes times{ran.lowered, ran.times};
  benchmark::DoNotOptimize(planner::peak_of(plan, times));
  return {times.makespan(), ran.lowered.plan.ops.size()};
}

void candidate(benchmark::State& state, Shape shape) {
  const Candidate own{harness::size_of(state, 0), shape};
  collective::FoldingMemo memo;
  std::size_t ops = evaluate(own, memo).second;  // the first one fills the memo
  for (auto _ : state) ops = evaluate(own, memo).second;
  state.counters["ops"] = static_cast<double>(ops);
}

void all_ranks(benchmark::State& state, Shape shape) {
  const Candidate own{harness::size_of(state, 0), shape};
  const collective::IterationPlan plan = planner::decided(own.variant, own.decisions);
  for (auto _ : state) benchmark::DoNotOptimize(planner::simulate_all_ranks(plan));
}

void search(benchmark::State& state) {
  const Scenario scenario = over(harness::size_of(state, 0));
  const Schedule schedule = schedule::generate("gpipe", scenario);
  std::size_t evaluated = 0;
  for (auto _ : state)
    evaluated =
        planner::centauri_overlap(schedule, scenario, Arrangement::decoupled).or_throw().evaluated;
  state.counters["evaluated"] = static_cast<double>(evaluated);
}

/// The power of the ranks with which a candidate's time grows.
void exponent(benchmark::State& state, Shape shape) {
  std::vector<double> sizes, seconds;
  for (auto _ : state) {
    for (int gpus = 32; gpus <= 256; gpus *= 2) {
      const Candidate own{gpus, shape};
      collective::FoldingMemo memo;
      (void)evaluate(own, memo);
      sizes.push_back(gpus);
      seconds.push_back(harness::least_cpu_seconds([&] { (void)evaluate(own, memo); }));
    }
  }
  state.counters["exponent"] = harness::growth_exponent(sizes, seconds);
}

void register_all() {
  const std::pair<const char*, Shape> shapes[] = {
      {"flat", flat}, {"grouped", grouped}, {"in_pieces", in_pieces}};
  for (const auto& [name, shape] : shapes) {
    harness::add_kernel(fmt::format("candidate/{}", name), candidate, shape)
        ->RangeMultiplier(4)
        ->Range(16, 256)
        ->Unit(benchmark::kMillisecond);
    harness::add_kernel(fmt::format("all_ranks/{}", name), all_ranks, shape)
        ->Arg(16)
        ->Arg(64)
        ->Unit(benchmark::kMillisecond);
    harness::add_kernel(fmt::format("exponent/{}", name), exponent, shape)->Iterations(1);
  }
  harness::add_kernel("centauri", search)
      ->RangeMultiplier(4)
      ->Range(16, 256)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

/// Folded, a candidate takes what it takes on all ranks.
void check() {
  for (const Shape shape : {flat, grouped, in_pieces}) {
    const Candidate own{16, shape};
    collective::FoldingMemo memo;
    const planner::SimulatedIteration whole =
        planner::simulate_all_ranks(planner::decided(own.variant, own.decisions)).or_throw();
    const auto [makespan, ops] = evaluate(own, memo);
    harness::expect(makespan == collective::IterationTimes{whole.lowered, whole.times}.makespan(),
                    "a candidate ends when it does on all ranks");
    harness::expect(ops < whole.lowered.plan.ops.size(), "it has fewer ops");
  }
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  longhaul::bench::register_all();
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
