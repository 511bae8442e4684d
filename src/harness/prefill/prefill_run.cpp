#include "harness/prefill/prefill_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/index.hpp"
#include "device/cpu_devices.hpp"

namespace longhaul::harness {
namespace {

/// Rank 0 gets what all ranks say of their ops; the others nothing. A rank's ops lie together and
/// ranks ascend, so the parts make up the whole.
template <typename Value>
std::vector<Value> gather_ops(const engine::Ranks& ranks, const Plan& plan,
                              std::span<const Value> mine) {
  const OpRange range = ops_of_rank(plan, ranks.self());
  std::vector<int> counts;
  const auto bytes =
      ranks.world().gather(std::as_bytes(mine.subspan(range.first, range.count)), counts);
  if (!ranks.is_first()) return {};
  std::vector<Value> all(bytes.size() / sizeof(Value));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// Times of all ranks' ops from the first one's start on; on rank 0.
OpResults gather_results(const engine::Ranks& ranks, const Plan& plan, Duration offset,
                         const engine::IterationResult& result) {
  std::vector<Outcome> outcomes = result.outcomes;
  outcomes.resize(plan.ops.size(), Outcome::ran);
  OpTimes times = result.times;
  times.resize(plan.ops.size());
  OpResults all{
      gather_ops<OpTime>(ranks, plan, times), gather_ops<Outcome>(ranks, plan, outcomes), {}};
  Duration begin = Duration::max();
  const auto ran = [&](std::size_t i) { return has_run(all.outcomes[i]); };
  const auto offsets = std::vector<std::int64_t>{ranks.world().all_gather(offset.count())};
  for (std::size_t i = 0; i < all.times.size(); ++i) {
    if (!ran(i)) continue;
    const Duration shift{offsets[index(plan.rank_of(OpId{static_cast<std::uint32_t>(i)}))]};
    for (Duration* stamp : {&all.times[i].ready, &all.times[i].start, &all.times[i].end})
      *stamp += shift;
    begin = std::min(begin, all.times[i].start);
  }
  for (std::size_t i = 0; i < all.times.size(); ++i)
    for (Duration* stamp : {&all.times[i].ready, &all.times[i].start, &all.times[i].end})
      if (ran(i)) *stamp -= begin;
  return all;
}

/// Stretches of this run on this rank.
class Playing {
public:
  Playing(engine::Ranks& ranks, const PlannedStretches& planned, const PrefillSettings& settings)
      : ranks_{ranks}, planned_{planned}, settings_{settings} {}

  [[nodiscard]] engine::IterationResult play(const Plan& plan, const OpTimes& predicted,
                                             int number) {
    const Duration longest = 2 * engine::longest_wait(plan, predicted, ranks_.self());
    engine::Engine engine{plan, ranks_, device_, settings_.engine};
    ranks_.watchdog().watch(&plan, longest);
    engine::IterationResult result = engine.run(number);
    ranks_.watchdog().watch(nullptr, {});
    return result;
  }

private:
  engine::Ranks& ranks_;
  const PlannedStretches& planned_;
  const PrefillSettings& settings_;
  device::TimedDevice device_;
};

}  // namespace

PrefillRun run_pairs(engine::Ranks& ranks, const PlannedStretches& planned,
                     const PrefillSettings& settings, Duration offset, const StretchKeeper& keep,
                     const std::function<void()>& pair_done) {
  PrefillRun run;
  Playing playing{ranks, planned, settings};
  engine::Checks mine;
  const int pairs = settings.warmup + settings.pairs;
  for (int i = 0; i < pairs; ++i) {
    const int pair = i - settings.warmup;  // below 0: not measured, with the first one's prompts
    const FilledStretch filled = planned.fill(std::max(pair, 0), settings.manners);
    const bool prefill_first = planned.prefill_first[to_size(i)];
    engine::IterationResult with, without;
    for (const bool now_with : {prefill_first, !prefill_first})
      (now_with ? with : without) =
          now_with ? playing.play(filled.filled.plan, filled.predicted.times, pair)
                   : playing.play(planned.training, planned.predicted, pair);
    mine += with.checks;
    mine += without.checks;
    if (pair >= 0 && keep) {
      keep(false, pair, planned.training, without);
      keep(true, pair, filled.filled.plan, with);
    }
    const OpResults on = gather_results(ranks, filled.filled.plan, offset, with);
    const OpResults off = gather_results(ranks, planned.training, offset, without);
    if (pair >= 0 && ranks.is_first())
      run.pairs.push_back({prefill_first, outcome_of_filled(planned, filled, on),
                           outcome_of_training(planned.training, off.times),
                           outcome_of_filled(planned, filled, filled.predicted)});
    if (pair_done) pair_done();
  }
  run.wrong = ranks.world().sum(mine.wrong());
  run.messages = ranks.world().sum(mine.messages);
  run.blocks = ranks.world().sum(mine.blocks);
  return run;
}

}  // namespace longhaul::harness
