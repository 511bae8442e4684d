// How long does a decision on a prompt take, each GPU with bubbles of its own? `place`: the index
// of gaps, from 12 to 100,000 GPUs, which no controller uses yet; `place_by_controller`:
// Controller, which `longhaul prefill` asks, to 1,000 GPUs.
#include <algorithm>
#include <numeric>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "harness/environment/kernel_main.hpp"
#include "prefill/gap_index.hpp"
#include "prefill/placement.hpp"

namespace longhaul::bench {
namespace {

using namespace prefill;

constexpr Duration kPeriod = 3500ms;
constexpr std::int64_t kRequests = 1'000'000;
constexpr std::int64_t kByController = 100'000;
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

GapIndex index_of(const IterationBubbles& iteration) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(iteration.gpus));
  std::iota(ranks.begin(), ranks.end(), 0);
  return {iteration, ranks, 1ms, 5ms};
}

/// Times of prompts as in Azure's code trace: most short, some as long as a bubble.
Duration prompt_time(Random& random) {
  const double draw = random.uniform();
  return Duration{10'000'000 + static_cast<std::int64_t>(140e6 * draw * draw)};
}

/// What a decision takes on each of so many prompts that arrive at random times.
std::vector<Duration> decision_times(const IterationBubbles& iteration, std::int64_t requests,
                                     const auto& decide) {
  Duration idle{};
  for (const Bubble& bubble : iteration.bubbles) idle += bubble.length();
  const double gap = kMeanPrompt * static_cast<double>(kPeriod.count()) /
                     (kLoad * static_cast<double>(idle.count()));
  std::vector<Duration> times(static_cast<std::size_t>(requests));
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
  const auto p99 = times.begin() + std::ssize(times) * 99 / 100;
  std::ranges::nth_element(times, p99);
  // With the clock, read twice.
  state.counters["mean_ns"] = static_cast<double>(sum.count()) / static_cast<double>(times.size());
  state.counters["p99_ns"] = static_cast<double>(p99->count());
}

void place(benchmark::State& state) {
  const IterationBubbles iteration = own_bubbles(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    GapIndex gaps = index_of(iteration);
    const auto decide = [&](Duration arrival, Duration length) {
      benchmark::DoNotOptimize(gaps.place(arrival, length));
    };
    report(decision_times(iteration, kRequests, decide), state);
    state.counters["bubbles"] = static_cast<double>(gaps.opened());
  }
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

void place_by_controller(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const IterationBubbles iteration = own_bubbles(gpus);
  for (auto _ : state) {
    Controller controller{iteration, served_on(gpus), PlacementPolicy::earliest};
    std::int64_t id = 0;
    const auto decide = [&](Duration arrival, Duration length) {
      benchmark::DoNotOptimize(controller.decide({id++, arrival, length / Duration{1us}}));
    };
    report(decision_times(iteration, kByController, decide), state);
  }
}

void upkeep(benchmark::State& state) {
  const IterationBubbles iteration = own_bubbles(static_cast<int>(state.range(0)));
  GapIndex gaps = index_of(iteration);
  Duration time{};
  const std::int64_t before = gaps.opened();
  const TimePoint begin = now();
  for (auto _ : state) gaps.advance(time += kPeriod);
  const auto opened = static_cast<double>(std::max<std::int64_t>(1, gaps.opened() - before));
  state.counters["ns_a_bubble"] = static_cast<double>((now() - begin).count()) / opened;
}

void check() {
  IterationBubbles iteration{.period = 900ms, .gpus = 2, .bubbles = {}};
  iteration.bubbles = {{0, 200ms, 500ms}, {1, 700ms, 1000ms}};
  GapIndex gaps{iteration, {0, 1}, 0ms, 1ms};
  harness::expect(gaps.place(250ms, 100ms)->start == 250ms, "the first bubble is open");
  harness::expect(gaps.place(450ms, 100ms)->start == 700ms, "50 ms are too short");
  harness::expect(gaps.place(450ms, 100ms)->start == 800ms, "behind the one before");
  harness::expect(!gaps.place(450ms, 350ms), "no bubble is so long");
  Controller controller{iteration, served_on(2), PlacementPolicy::earliest};
  harness::expect(controller.decide({0, 450ms, 100'000}).start == 700ms, "as the index does");
}

BENCHMARK(place)->Arg(12)->Arg(100)->Arg(1000)->Arg(10'000)->Arg(100'000)->Iterations(1);
BENCHMARK(place_by_controller)->Arg(12)->Arg(100)->Arg(1000)->Iterations(1);
BENCHMARK(upkeep)->Arg(1000)->Arg(100'000);

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_kernels(argc, argv, longhaul::bench::check);
}
