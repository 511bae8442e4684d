// How long does Controller, which `longhaul prefill` asks, take to decide on a prompt, each GPU
// with bubbles of its own (12 to 100,000 GPUs, then the load in % of the idle time)? `_of_all`: the
// same decisions by a look at all pipelines. `upkeep`: of bubbles that nothing is placed in.
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
constexpr std::int64_t kRequests = 1'000'000;
constexpr double kMeanPrompt = 57e6;  // ns

/// Half of the time idle, in bubbles of 20 to 180 ms, those of each GPU at times of their own.
IterationBubbles own_bubbles(std::int64_t gpus) {
  Random random{1};
  IterationBubbles iteration{.period = kPeriod, .gpus = static_cast<int>(gpus), .bubbles = {}};
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

/// What a decision takes on each prompt, with the clock, read twice. They arrive at random times.
std::vector<Duration> decision_times(const IterationBubbles& iteration, double load,
                                     const auto& decide) {
  Duration idle{};
  for (const Bubble& bubble : iteration.bubbles) idle += bubble.length();
  const double gap = kMeanPrompt * static_cast<double>(kPeriod.count()) /
                     (load * static_cast<double>(idle.count()));
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
  const Duration mean = std::accumulate(times.begin(), times.end(), Duration{}) / kRequests;
  const auto percentile = [&](std::int64_t percent) {
    const auto found = times.begin() + std::ssize(times) * percent / 100;
    std::ranges::nth_element(times, found);
    return static_cast<double>(found->count());
  };
  state.counters["mean_ns"] = static_cast<double>(mean.count());
  state.counters["median_ns"] = percentile(50);
  state.counters["p99_ns"] = percentile(99);
}

/// One stage on each GPU; a token takes a microsecond.
Controller controller_of(const IterationBubbles& iteration, PlacementPolicy policy,
                         PipelineLookup lookup) {
  Served served;
  served.model.guard = 1ms;
  served.model.profile = {{5'000, 5ms}, {1'000'000, 1s}};
  for (std::int32_t rank = 0; rank < iteration.gpus; ++rank)
    served.serving.pipelines.push_back({rank, {rank}});
  return {iteration, {served}, policy, {}, ControllerMeans{.lookup = lookup}};
}

void decide(benchmark::State& state, PlacementPolicy policy, PipelineLookup lookup) {
  const IterationBubbles iteration = own_bubbles(state.range(0));
  for (auto _ : state) {
    Controller controller = controller_of(iteration, policy, lookup);
    std::int64_t id = 0;
    const auto place = [&](Duration arrival, Duration length) {
      benchmark::DoNotOptimize(controller.decide({id++, arrival, length / Duration{1us}}));
    };
    report(decision_times(iteration, static_cast<double>(state.range(1)) / 100, place), state);
  }
}

/// One prompt in a period, so that all other bubbles open and close: each by its share of that
/// decision, and of making the controller.
void upkeep(benchmark::State& state) {
  constexpr int kPeriods = 200;
  const IterationBubbles iteration = own_bubbles(state.range(0));
  const auto bubbles = static_cast<double>(iteration.bubbles.size());
  for (auto _ : state)
    for (const PlacementPolicy policy : {PlacementPolicy::earliest, PlacementPolicy::best_fit}) {
      const TimePoint begin = now();
      Controller controller = controller_of(iteration, policy, PipelineLookup::index);
      const TimePoint made = now();
      for (int i = 0; i < kPeriods; ++i)
        benchmark::DoNotOptimize(controller.decide({i, i * kPeriod, 50'000}));
      const std::string name = fmt::format("{}_ns_a_bubble", to_string(policy));
      state.counters[name] = static_cast<double>((now() - made).count()) / (bubbles * kPeriods);
      state.counters["made_" + name] = static_cast<double>((made - begin).count()) / bubbles;
    }
}

void check() {
  IterationBubbles iteration{.period = 900ms, .gpus = 2, .bubbles = {}};
  iteration.bubbles = {{0, 200ms, 500ms}, {1, 700ms, 1000ms}};
  for (const PipelineLookup lookup : {PipelineLookup::index, PipelineLookup::all}) {
    Controller controller = controller_of(iteration, PlacementPolicy::earliest, lookup);
    std::vector<Duration> starts;
    for (const Duration arrival : {250ms, 450ms, 450ms})
      starts.push_back(controller.decide({0, arrival, 100'000}).start);
    harness::expect(starts == std::vector<Duration>{250ms, 700ms, 800ms},
                    "the first bubble is open, 50 ms are too short, after the one before");
    harness::expect(controller.decide({0, 450ms, 350'000}).refused == RefusalReason::too_long,
                    "no bubble is so long");
  }
}

const std::vector<std::vector<std::int64_t>> kAll{{12, 100, 1000, 10'000, 100'000}, {50}},
    kLoads{{1000}, {5, 90, 150}}, kFew{{12, 100, 1000}, {50}};
constexpr auto kEarliest = PlacementPolicy::earliest, kBestFit = PlacementPolicy::best_fit;
constexpr auto kIndex = PipelineLookup::index, kEach = PipelineLookup::all;
BENCHMARK_CAPTURE(decide, earliest, kEarliest, kIndex)->ArgsProduct(kAll)->ArgsProduct(kLoads);
BENCHMARK_CAPTURE(decide, best_fit, kBestFit, kIndex)->ArgsProduct(kAll)->ArgsProduct(kLoads);
BENCHMARK_CAPTURE(decide, earliest_of_all, kEarliest, kEach)->ArgsProduct(kFew);
BENCHMARK_CAPTURE(decide, best_fit_of_all, kBestFit, kEach)->ArgsProduct(kFew);
BENCHMARK(upkeep)->Arg(1000)->Arg(10'000)->Arg(100'000);

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
