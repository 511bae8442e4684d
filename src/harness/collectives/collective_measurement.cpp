#include "harness/collectives/collective_measurement.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/index.hpp"
#include "engine/engine.hpp"
#include "engine/payloads/collective_data_plane.hpp"

namespace longhaul::harness {
namespace {

/// When a rank's first message began and its last one was over, by its host's clock.
struct RankSpan {
  Duration begin = Duration::max(), end = Duration::min();
};

RankSpan span_of(const Plan& plan, Rank rank, const OpTimes& times) {
  RankSpan span;
  const OpRange range = ops_of_rank(plan, rank);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    span.begin = std::min(span.begin, times[i].start);
    span.end = std::max(span.end, times[i].end);
  }
  return span;
}

/// Rank 0 gets the time from the first begin to the last end.
double duration_of(const engine::Ranks& ranks, const RankSpan& mine) {
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{&mine, std::size_t{1}}), counts);
  if (!ranks.is_first()) return 0;
  std::vector<RankSpan> spans(bytes.size() / sizeof(RankSpan));
  std::memcpy(spans.data(), bytes.data(), bytes.size());
  const Duration begin = std::ranges::min(spans, {}, &RankSpan::begin).begin;
  const Duration end = std::ranges::max(spans, {}, &RankSpan::end).end;
  return static_cast<double>((end - begin).count());
}

/// Whole messages are sent, and memory holds the vectors.
bool adds_up(const plan::Collective& collective, const plan::CollectiveSteps& steps,
             const CollectiveSettings& settings) {
  constexpr Bytes kMost{256 << 20};
  const auto fits = [&](const plan::StepMessage& message) {
    return message.size <= settings.engine.payload;
  };
  return settings.device == DeviceKind::cpu &&
         engine::CollectiveDataPlane::memory_of(collective) <= kMost &&
         std::ranges::all_of(steps.messages, fits);
}

}  // namespace

double CollectiveMeasurement::difference_percent() const {
  const auto expected = static_cast<double>(predicted.duration.count());
  return expected > 0 ? 100.0 * (summary.median / expected - 1.0) : 0.0;
}

CollectiveMeasurement measure_collective(const plan::Collective& collective,
                                         const Scenario& scenario, engine::Ranks& ranks,
                                         const CollectiveSettings& settings) {
  CollectiveMeasurement measured;
  measured.predicted = planner::play_collective(collective, scenario).or_throw();
  const Plan plan = plan::lower_collective(collective, scenario).or_throw();
  const SteppedCollective& stepped = plan.stepped.front();
  measured.adds_up = adds_up(collective, *stepped.steps, settings);
  const auto device = make_timed_device(settings.device, ranks, settings.engine.credit);
  std::unique_ptr<engine::DataPlane> data_plane;
  const engine::CollectiveDataPlane* numbers = nullptr;
  if (measured.adds_up) {
    auto made =
        std::make_unique<engine::CollectiveDataPlane>(stepped, collective.size, ranks.self());
    numbers = made.get();
    data_plane = std::move(made);
  } else {
    data_plane = make_data_plane(settings.device, ranks, plan, settings.engine);
  }
  ranks.watchdog().watch(&plan, measured.predicted.duration);
  engine::Engine engine{plan, ranks, *device, *data_plane, settings.engine};
  for (int iteration = -settings.warmup; iteration < settings.iterations; ++iteration) {
    const engine::IterationResult result = engine.run(iteration);
    measured.checks += result.checks;
    if (numbers != nullptr) measured.checks.wrong_tensors += numbers->wrong_items();
    const double duration = duration_of(ranks, span_of(plan, ranks.self(), result.times));
    if (iteration >= 0 && ranks.is_first()) measured.durations_ns.push_back(duration);
  }
  ranks.watchdog().watch(nullptr, {});
  engine::Checks all;
  all.messages = ranks.world().sum(measured.checks.messages);
  all.corrupted = ranks.world().sum(measured.checks.wrong());
  measured.checks = all;
  if (ranks.is_first()) measured.summary = summarize(measured.durations_ns);
  return measured;
}

CollectiveRates rates_of(const plan::Collective& collective, double duration_ns) {
  const auto members = static_cast<double>(collective.members.size());
  const auto bytes = static_cast<double>(collective.size.count());
  CollectiveRates rates;
  if (duration_ns <= 0) return rates;
  rates.algorithm = bytes / duration_ns * 1e9;
  const CollectiveFacts& facts = facts_of(collective.kind);
  const bool all_through_one =
      (facts.brings == Portion::whole_of_first && facts.gets == Portion::whole) ||
      (facts.brings == Portion::whole && facts.gets == Portion::whole_of_first);
  rates.bus = rates.algorithm * (all_through_one ? 1 : facts.rounds * (members - 1) / members);
  return rates;
}

}  // namespace longhaul::harness
