#include "harness/prefill/prefill_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "device/cpu_devices.hpp"
#include "harness/prefill/live_pairs.hpp"
#include "harness/prefill/stopped_run.hpp"
#include "harness/session/link_conditions_run.hpp"
#include "prefill/service/socket_arrivals.hpp"

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

/// Receives of all ranks whose message came wrong; on rank 0.
std::vector<OpId> gather_wrong(const engine::Ranks& ranks, const engine::IterationResult& result) {
  std::vector<OpId> mine;
  for (const engine::WrongMessage& each : result.wrong) mine.push_back(each.recv);
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{mine}), counts);
  std::vector<OpId> all(bytes.size() / sizeof(OpId));
  if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// All ranks get the answers that one has.
std::vector<prefill::Decision> broadcast_answers(const engine::Ranks& ranks,
                                                 const std::vector<prefill::Decision>& mine,
                                                 int from) {
  nlohmann::json all = nlohmann::json::array();
  for (const prefill::Decision& each : mine)
    all.push_back({each.request, each.arrival.count(), each.tokens, each.model,
                   each.refused ? static_cast<int>(*each.refused) : -1, each.pipeline,
                   each.start.count(), each.end.count(), each.compute.count(), each.hops.count(),
                   each.lacks.count(), each.datacenter});
  const std::string text = ranks.world().broadcast(all.dump(), from);
  std::vector<prefill::Decision> answers;
  for (const auto& each : nlohmann::json::parse(text)) {
    const auto time = [&](std::size_t i) { return Duration{each[i].get<std::int64_t>()}; };
    const int refused = each[4];
    answers.push_back({.request = each[0], .arrival = time(1), .tokens = each[2]});
    answers.back().model = each[3];
    if (refused >= 0) answers.back().refused = static_cast<prefill::RefusalReason>(refused);
    answers.back().pipeline = each[5];
    answers.back().start = time(6);
    answers.back().end = time(7);
    answers.back().compute = time(8);
    answers.back().hops = time(9);
    answers.back().lacks = Bytes{each[10].get<std::int64_t>()};
    answers.back().datacenter = each[11];
  }
  return answers;
}

/// For so long nothing may move on a link.
Duration longest_outage(const Scenario& scenario) {
  Duration longest{};
  for (const Link& link : scenario.links)
    for (const Outage& outage : link.weather.outages) longest = std::max(longest, outage.length);
  return longest;
}

/// Stretches of this run on this rank.
class Playing {
public:
  Playing(engine::Ranks& ranks, const PlannedStretches& planned, const PrefillSettings& settings,
          Duration offset)
      : ranks_{ranks}, planned_{planned}, settings_{settings}, offset_{offset} {
    if (settings.compute.real) real_ = std::make_unique<RealStretches>(ranks, planned, settings);
  }

  /// `filled`: with prefill; nullptr: without. `live`: its plan, where a controller fills it.
  [[nodiscard]] engine::IterationResult play(const FilledStretch* filled, int number,
                                             const prefill::LivePlan* live) {
    const Plan& plan = filled != nullptr ? filled->filled.plan : planned_.training;
    const OpTimes& predicted = filled != nullptr ? filled->predicted.times : planned_.predicted;
    if (!real_) {
      engine::Engine engine{plan, ranks_, device_, settings_.engine};
      return play(engine, plan, predicted, number);
    }
    real_->begin(filled, live);
    engine::Engine engine{plan, ranks_, real_->device(), real_->data_plane(), settings_.engine};
    engine::IterationResult result = play(engine, plan, predicted, number);
    real_->end(result.checks);
    return result;
  }
  /// nullptr: blocks are timed.
  [[nodiscard]] RealStretches* real() { return real_.get(); }

private:
  [[nodiscard]] engine::IterationResult play(engine::Engine& engine, const Plan& plan,
                                             const OpTimes& predicted, int number) {
    const LinkConditionsRun weather{plan, planned_.scenario, settings_.engine.emulation};
    Duration longest = 2 * engine::longest_wait(plan, predicted, ranks_.self());
    engine::PlayedWeather played;
    if (weather.played() != nullptr) {
      // Both stretches of a pair meet the same.
      const Duration age = std::max(number, 0) * planned_.stretch_time();
      longest += kAfterYou + longest_outage(planned_.scenario);
      played = {weather.played(),
                number < 0 ? kNever : begin_weather(ranks_, {TimePoint{}, offset_, {}}, age)};
    }
    ranks_.watchdog().watch(&plan, longest);
    engine::IterationResult result = engine.run(number, played);
    ranks_.watchdog().watch(nullptr, {});
    return result;
  }

  engine::Ranks& ranks_;
  const PlannedStretches& planned_;
  const PrefillSettings& settings_;
  Duration offset_;
  device::TimedDevice device_;
  std::unique_ptr<RealStretches> real_;
};

/// Pairs, planned or live.
class PairsOnRanks {
public:
  PairsOnRanks(engine::Ranks& ranks, const PlannedStretches& planned,
               const PrefillSettings& settings, Duration offset)
      : ranks_{ranks},
        planned_{planned},
        settings_{settings},
        offset_{offset},
        playing_{ranks, planned, settings, offset} {}

  /// Without a value: not played, for the run was told to drain.
  struct Results {
    std::optional<engine::IterationResult> with, without;
    OpResults on, off;
    std::vector<OpId> wrong;  ///< of the stretch with prefill
    [[nodiscard]] bool is_whole() const { return with && without; }
  };

  ~PairsOnRanks() { ranks_.watchdog().before_end({}); }
  PairsOnRanks(const PairsOnRanks&) = delete;
  PairsOnRanks& operator=(const PairsOnRanks&) = delete;

  /// `pair` below 0: not measured, with the first one's prompts. Where the stretch with prefill was
  /// not played, nothing that could be used.
  [[nodiscard]] FilledStretch play(int pair, bool prefill_first, Results& results) {
    const bool live = settings_.controller == PrefillController::live;
    if (live && (pair <= 0 || !live_)) begin_live(pair);
    FilledStretch filled = live ? live_->open() : planned_.fill(std::max(pair, 0), settings_);
    for (const bool now_with : {prefill_first, !prefill_first}) {
      if (is_told_to_drain()) break;
      (now_with ? results.with : results.without) =
          playing_.play(now_with ? &filled : nullptr, pair, live ? &live_->plan() : nullptr);
    }
    if (results.without)
      results.off = gather_results(ranks_, planned_.training, offset_, *results.without);
    if (!results.with) return filled;
    results.on = gather_results(ranks_, filled.filled.plan, offset_, *results.with);
    results.wrong = gather_wrong(ranks_, *results.with);
    return live ? live_->close(ranks_, results.on) : filled;
  }

  /// nullptr: blocks are timed.
  [[nodiscard]] RealStretches* real() { return playing_.real(); }

  /// All ranks get what the controller answered, and whose sender had gone.
  void add_answers(PrefillRun& run) {
    if (!live_) {
      run.answers = planned_.decisions;
      return;
    }
    std::vector<prefill::Decision> mine, cancelled, failed;
    nlohmann::json offered = nlohmann::json::array();
    if (is_controller()) {
      mine = live_->answers();
      cancelled = live_->cancelled();
      failed = live_->failed();
      offered = live_->offered();
      if (socket_) socket_->fail_open();
    }
    const int controller = planned_.scenario.training_ranks();
    run.answers = broadcast_answers(ranks_, mine, controller);
    run.cancelled = broadcast_answers(ranks_, cancelled, controller);
    run.failed = broadcast_answers(ranks_, failed, controller);
    run.offered = nlohmann::json::parse(ranks_.world().broadcast(offered.dump(), controller))
                      .get<std::vector<std::int64_t>>();
  }

private:
  [[nodiscard]] bool is_controller() const {
    return index(ranks_.self()) == to_size(planned_.scenario.training_ranks());
  }
  /// On some rank: signals do not reach all at once.
  [[nodiscard]] bool is_told_to_drain() const {
    return ranks_.world().maximum(ranks_.watchdog().is_told_to_drain() ? 1 : 0) > 0;
  }
  /// Clients are heard in the stretches that are measured.
  void begin_live(int pair) {
    if (pair >= 0 && settings_.listen && is_controller() && !socket_) {
      std::vector<std::string> models;
      std::set<prefill::SocketArrivals::PipelineName> pipelines;
      for (const prefill::Served& each : planned_.served) {
        for (const prefill::Pipeline& own : each.serving.pipelines)
          pipelines.emplace(models.size(), own.number);
        models.push_back(each.model.name);
      }
      socket_.emplace(*settings_.listen, models, pipelines);
    }
    if (pair >= 0 && is_controller()) ranks_.watchdog().before_end([this] { fail_open(); });
    live_.emplace(planned_, settings_, socket_ ? &*socket_ : nullptr,
                  real() != nullptr ? &real()->listener() : nullptr,
                  [&watchdog = ranks_.watchdog()] { return watchdog.is_told_to_drain(); });
  }

  /// The run ends by a rank that is gone, or for another reason: requests that are open have
  /// failed, those on that rank by its name.
  void fail_open() {
    for (const Rank rank : ranks_.watchdog().gone_ranks()) {
      const auto open = live_ ? live_->open_on(rank) : std::vector<std::int64_t>{};
      if (open.empty()) continue;
      const std::string why = fmt::format("rank {} is gone", index(rank));
      fmt::print(stderr, "longhaul: {}: its requests have failed: {}\n", why,
                 fmt::join(open, ", "));
      for (const std::int64_t request : open)
        if (socket_)
          socket_->tell({.kind = prefill::NewsKind::failed, .request = request, .why = why});
    }
    if (socket_) socket_->fail_open();
  }

  engine::Ranks& ranks_;
  const PlannedStretches& planned_;
  const PrefillSettings& settings_;
  Duration offset_;
  Playing playing_;
  std::optional<prefill::SocketArrivals> socket_;
  std::optional<LivePairs> live_;
};

engine::Checks own_checks(const PairsOnRanks::Results& results) {
  engine::Checks mine;
  for (const auto* const each : {&results.with, &results.without})
    if (*each) mine += (*each)->checks;
  return mine;
}

PairChecks checks_of(const engine::Ranks& ranks, const PairsOnRanks::Results& results) {
  const engine::Checks mine = own_checks(results);
  return {ranks.world().sum(mine.wrong()), ranks.world().sum(mine.messages),
          ranks.world().sum(mine.blocks)};
}

void add(const PairChecks& checks, PrefillRun& run) {
  run.wrong += checks.wrong;
  run.messages += checks.messages;
  run.blocks += checks.blocks;
}

/// On rank 0: the pairs that an earlier part of the run has finished, and what their plan predicts.
void take_earlier(const PlannedStretches& planned, const PrefillSettings& settings,
                  const EarlierPairs& earlier, PrefillRun& run) {
  for (std::size_t i = 0; i < earlier.pairs.size(); ++i) {
    const FilledStretch filled = planned.fill(static_cast<int>(i), settings);
    run.pairs.push_back(earlier.pairs[i]);
    run.pairs.back().predicted = outcome_of_filled(planned, filled, filled.predicted);
    add(earlier.pairs[i].checks, run);
  }
}

/// Of wrong messages and blocks of all ranks, in words.
std::string wrong_kinds_of(const engine::Ranks& ranks, const engine::Checks& mine) {
  std::string kinds;
  for (const auto& [name, own] : {std::pair{"lost", mine.lost},
                                  {"mixed up", mine.mixed_up},
                                  {"corrupted", mine.corrupted},
                                  {"out of order", mine.out_of_order},
                                  {"unclaimed", mine.unclaimed},
                                  {"tensors", mine.wrong_tensors}})
    if (const std::int64_t all = ranks.world().sum(own); all > 0)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", name, all);
  return kinds;
}

}  // namespace

PrefillRun run_pairs(engine::Ranks& ranks, const PlannedStretches& planned,
                     const LivePrediction& predicted, const PrefillSettings& settings,
                     Duration offset, const EarlierPairs& earlier, const StretchKeeper& keep,
                     const PairListener& pair_done) {
  PrefillRun run;
  take_earlier(planned, settings, earlier, run);
  engine::Checks mine;  // of the pairs of this part
  PairsOnRanks pairs{ranks, planned, settings, offset};
  int measured = earlier.count;  // stretches with prefill
  for (int i = 0; i < settings.warmup + settings.pairs && !run.is_stopped; ++i) {
    const int pair = i - settings.warmup;
    if (pair >= 0 && pair < earlier.count) continue;
    const bool prefill_first = planned.prefill_first[to_size(i)];
    PairsOnRanks::Results results;
    ranks.watchdog().drain_on_signal(settings.deadline + 2 * planned.stretch_time());
    const FilledStretch filled = pairs.play(pair, prefill_first, results);
    ranks.watchdog().drained();
    run.is_stopped = !results.is_whole();
    mine += own_checks(results);
    const PairChecks checks = checks_of(ranks, results);
    add(checks, run);
    if (!results.with) break;
    if (pair >= 0) ++measured;
    if (pair >= 0 && keep) {
      if (results.without) keep(false, pair, planned.training, *results.without);
      keep(true, pair, filled.filled.plan, *results.with);
    }
    if (pair >= 0 && ranks.is_first()) {
      const auto& stretches = predicted.stretches;
      const FilledStretch& of = stretches.empty() ? filled : stretches[to_size(pair)];
      run.pairs.push_back(
          {prefill_first, outcome_of_filled(planned, filled, results.on, results.wrong),
           results.without ? outcome_of_training(planned.training, results.off.times)
                           : StretchOutcome{},
           outcome_of_filled(planned, of, of.predicted), checks, results.is_whole()});
    }
    if (pair >= 0 && pairs.real() != nullptr)
      pairs.real()->check_prompts(filled, ranks.is_first() ? &run.pairs.back().with : nullptr);
    if (pair_done && results.is_whole()) pair_done(run.pairs);
  }
  pairs.add_answers(run);
  if (run.is_stopped && measured == 0) ranks.watchdog().end_drained();
  if (pairs.real() != nullptr) {
    RealStretches::Results real = pairs.real()->finish();
    if (ranks.is_first()) run.real = std::move(real);
  }
  run.predicted_answers =
      settings.controller == PrefillController::live ? predicted.answers : planned.decisions;
  if (settings.controller == PrefillController::planned && ranks.is_first())
    run.offered = offered_to_plan(planned, settings, std::ssize(run.pairs));
  if (run.is_stopped && ranks.is_first()) cut_short(run, settings);
  run.wrong_kinds = wrong_kinds_of(ranks, mine);
  return run;
}

}  // namespace longhaul::harness
