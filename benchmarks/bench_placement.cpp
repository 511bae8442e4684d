// How long does Controller, which `longhaul prefill` asks, take to decide on a prompt, each GPU
// with bubbles of its own? `earliest` and `best_fit` by the index of gaps, from 12 to 100,000 GPUs;
// `earliest_of_all` and `best_fit_of_all`: the same decisions by a look at all pipelines.
#include <algorithm>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "harness/environment/kernel_main.hpp"
#include "prefill/placement.hpp"

namespace longhaul::bench {
namespace {

using namespace prefill;

constexpr Duration kPeriod = 3500ms;
constexpr std::int64_t kRequests = 100'000;
constexpr double kLoad = 0.5, kMeanPrompt = 57e6;  // of the idle time; ns

/// Half of the time idle, in bubbles of 20 to 180 ms, those of each GPU at times of their own.
IterationBubbles own_bubbles(int gpus) {
  Random random{1};
  IterationBubbles iteration{.period = kPeriod, .gpus = gpus, .bubbles = {}};
  for (std::int32_t rank = 0; rank < gpus; ++rank) {
    Duration time{random.between(0, 100'000'000)};
    while (time < kPeriod - 400ms) {
      const Duration length{random.between(20'000'000, 180'000'000)};
      iteration.bubbles.push_back({rank, time, time + length});
      time += length + Duration{random.between(20'000'000, 180'000'000)};
    }
  }
  return iteration;
}

/// Times of prompts as in Azure's code trace: most short, some as long as a bubble.
Duration prompt_time(Random& random) {
  const double draw = random.uniform();
  return Duration{10'000'000 + static_cast<std::int64_t>(140e6 * draw * draw)};
}

/// What a decision takes on each of the prompts that arrive at random times.
std::vector<Duration> decision_times(const IterationBubbles& iteration, const auto& decide) {
  Duration idle{};
  for (const Bubble& bubble : iteration.bubbles) idle += bubble.length();
  const double gap = kMeanPrompt * static_cast<double>(kPeriod.count()) /
                     (kLoad * static_cast<double>(idle.count()));
  std::vector<Duration> times(kRequests);
  Random random{2};
  double arrival = 0;
  for (Duration& time : times) {
    arrival += 2 * gap * random.uniform();
    const Duration length = prompt_time(random);
    const TimePoint begin = now();
    decide(Duration{static_cast<std::int64_t>(arrival)}, length);
    time = now() - begin;
  }
  return times;
}

void report(std::vector<Duration> times, benchmark::State& state) {
  const Duration sum = std::accumulate(times.begin(), times.end(), Duration{});
  const auto percentile = [&](std::int64_t percent) {
    const auto found = times.begin() + std::ssize(times) * percent / 100;
    std::ranges::nth_element(times, found);
    return static_cast<double>(found->count());
  };
  // With the clock, read twice.
  state.counters["mean_ns"] = static_cast<double>(sum.count()) / static_cast<double>(times.size());
  state.counters["median_ns"] = percentile(50);
  state.counters["p99_ns"] = percentile(99);
}

/// One stage on each GPU; a token takes a microsecond.
std::vector<Served> served_on(int gpus) {
  std::vector<Served> served(1);
  served.front().model.guard = 1ms;
  served.front().model.profile = {{5'000, 5ms}, {1'000'000, 1s}};
  for (std::int32_t rank = 0; rank < gpus; ++rank)
    served.front().serving.pipelines.push_back({rank, {rank}});
  return served;
}

Controller controller_of(const IterationBubbles& iteration, PlacementPolicy policy,
                         PipelineLookup lookup) {
  ControllerMeans means;
  means.lookup = lookup;
  return {iteration, served_on(iteration.gpus), policy, {}, std::move(means)};
}

void decide(benchmark::State& state, PlacementPolicy policy, PipelineLookup lookup) {
  const IterationBubbles iteration = own_bubbles(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    Controller controller = controller_of(iteration, policy, lookup);
    std::int64_t id = 0;
    const auto place = [&](Duration arrival, Duration length) {
      benchmark::DoNotOptimize(controller.decide({id++, arrival, length / Duration{1us}}));
    };
    report(decision_times(iteration, place), state);
  }
}

void earliest(benchmark::State& state) {
  decide(state, PlacementPolicy::earliest, PipelineLookup::index);
}
void best_fit(benchmark::State& state) {
  decide(state, PlacementPolicy::best_fit, PipelineLookup::index);
}
void earliest_of_all(benchmark::State& state) {
  decide(state, PlacementPolicy::earliest, PipelineLookup::all);
}
void best_fit_of_all(benchmark::State& state) {
  decide(state, PlacementPolicy::best_fit, PipelineLookup::all);
}

void check() {
  IterationBubbles iteration{.period = 900ms, .gpus = 2, .bubbles = {}};
  iteration.bubbles = {{0, 200ms, 500ms}, {1, 700ms, 1000ms}};
  for (const PipelineLookup lookup : {PipelineLookup::index, PipelineLookup::all}) {
    Controller controller = controller_of(iteration, PlacementPolicy::earliest, lookup);
    const auto start_of = [&](Duration arrival, std::int64_t tokens) {
      return controller.decide({0, arrival, tokens}).start;
    };
    harness::expect(start_of(250ms, 100'000) == 250ms, "the first bubble is open");
    harness::expect(start_of(450ms, 100'000) == 700ms, "50 ms are too short");
    harness::expect(start_of(450ms, 100'000) == 800ms, "behind the one before");
    harness::expect(controller.decide({0, 450ms, 350'000}).refused == RefusalReason::too_long,
                    "no bubble is so long");
  }
}

BENCHMARK(earliest)->Arg(12)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(100'000)->Iterations(1);
BENCHMARK(best_fit)->Arg(12)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(100'000)->Iterations(1);
BENCHMARK(earliest_of_all)->Arg(12)->Arg(100)->Arg(1000)->Iterations(1);
BENCHMARK(best_fit_of_all)->Arg(12)->Arg(100)->Arg(1000)->Iterations(1);

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
