#include "harness/training/train_curve.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/held_out.hpp"
#include "harness/training/train_mass.hpp"
#include "harness/training/train_replay.hpp"
#include "planner/tune/stream_period.hpp"
#include "report/stream_report.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

constexpr Duration kJudgingPatience = std::chrono::hours{2};

/// When the first block of each iteration began on any rank, and when all ranks had its update,
/// since the first block; on rank 0. Stretches follow each other without a gap.
void add_times(const engine::Ranks& ranks, const TrainRank::Stretch& stretch, Duration offset,
               TrainCurve& curve) {
  std::vector<std::int64_t> mine;
  for (const auto* const stamps : {&stretch.starts, &stretch.ends})
    for (const TimePoint at : *stamps) mine.push_back((at + offset).count());
  auto all = gather_vectors<std::int64_t>(ranks.world(), mine);
  std::erase_if(all, [](const auto& one) { return one.empty(); });  // the controller's
  if (all.empty()) return;
  const std::size_t iterations = all.front().size() / 2;
  std::vector<std::int64_t> starts = all.front(), ends = all.front();
  for (const auto& one : all)
    for (std::size_t i = 0; i < one.size(); ++i) {
      starts[i] = std::min(starts[i], one[i]);
      ends[i] = std::max(ends[i], one[i]);
    }
  const Duration before = curve.elapsed.empty() ? Duration::zero() : curve.elapsed.back();
  for (std::size_t i = 0; i < iterations; ++i) {
    curve.starts.push_back(before + Duration{starts[i] - starts.front()});
    curve.elapsed.push_back(before + Duration{ends[iterations + i] - starts.front()});
  }
}

/// Of each iteration, added in order of rank; on rank 0.
void add_losses(const engine::Ranks& ranks, const TrainRank::Stretch& stretch, TrainCurve& curve) {
  const auto all = gather_vectors<double>(ranks.world(), stretch.losses);
  for (std::size_t i = 0; i < (all.empty() ? 0 : all.front().size()); ++i) {
    double loss = 0;
    for (const auto& one : all)
      if (!one.empty()) loss += one[i];
    curve.losses.push_back(loss);
  }
}

/// Sums of the same sets in the same order leave no difference; on rank 0.
bool replicas_are_equal(const TrainRank& rank, const WholeModel& whole) {
  const auto weights = whole.join_all<float>(rank.weights());
  return std::ranges::all_of(weights, [&](const auto& one) { return one == weights.front(); });
}

void add_counts(engine::Ranks& ranks, const TrainRank::Stretch& stretch, TrainCurve& curve) {
  const auto sum = [&](std::int64_t mine) { return ranks.world().sum(mine); };
  curve.payload_bytes += sum(stretch.sent.payload_bytes);
  curve.encoded_bytes += sum(stretch.sent.encoded_bytes);
  curve.diverged = curve.diverged || sum(stretch.diverged ? 1 : 0) > 0;
  curve.wan_payload_bytes += sum(stretch.sent.wan_payload_bytes);
  curve.between_stages += sum(stretch.sent.between_stages);
  curve.wan_between_stages += sum(stretch.sent.wan_between_stages);
  curve.wan_encoded_bytes += sum(stretch.sent.wan_encoded_bytes);
  curve.wan_nominal_bytes += sum(stretch.sent.wan_nominal_bytes);
  curve.ops += sum(stretch.overruns.ops);
  curve.overran += sum(stretch.overruns.longer);
  for (auto field : {&engine::Checks::messages, &engine::Checks::blocks, &engine::Checks::lost,
                     &engine::Checks::mixed_up, &engine::Checks::corrupted,
                     &engine::Checks::out_of_order, &engine::Checks::unclaimed})
    curve.checks.*field += sum(stretch.checks.*field);
}

/// How old the weights were that were used, on rank 0: by the number of the part in the model.
/// Iterations floor(N/2) to N - 3 count for the share that is fresh, as predictions have it.
void add_versions(const engine::Ranks& ranks, const TrainRank& rank,
                  const TrainRank::Stretch& stretch, int iterations, TrainCurve& curve) {
  std::vector<std::int32_t> mine, numbers;
  for (const auto& iteration : stretch.ages)
    mine.insert(mine.end(), iteration.begin(), iteration.end());
  if (rank.work() != nullptr)
    for (const training::PlannedPart& part : rank.work()->part_ops().parts())
      numbers.push_back(part.trained.number);
  const auto all = gather_vectors<std::int32_t>(ranks.world(), mine);
  const auto number_of = gather_vectors<std::int32_t>(ranks.world(), numbers);
  if (all.empty()) return;
  for (std::size_t i = 0; i < stretch.ages.size(); ++i) {  // rank 0 trains
    std::vector<std::vector<int>> of_replicas;
    for (const ReplicaId replica : rank.plan().replica_ids()) {
      std::map<std::int32_t, int> parts;
      for (const Rank each : ranks_of_replica(rank.plan(), replica)) {
        const std::vector<std::int32_t>& held = number_of[index(each)];
        for (std::size_t p = 0; p < held.size(); ++p)
          parts[held[p]] = all[index(each)][i * held.size() + p];
      }
      std::vector<int>& in_order = of_replicas.emplace_back();
      for (const auto& [part, age] : parts) in_order.push_back(age);
    }
    const int iteration = stretch.first + static_cast<int>(i);
    if (iteration >= iterations / 2 && iteration <= iterations - 3)
      for (const std::vector<int>& parts : of_replicas) {
        curve.parts_met += std::ssize(parts);
        curve.parts_fresh += std::ranges::count_if(parts, [](int age) { return age <= 1; });
      }
    if (rank.scenario().train.staleness > 0) curve.versions.push_back(std::move(of_replicas));
  }
}

std::vector<Duration> longer_at_first(const TrainRank& rank, const TrainRequest& request,
                                      Duration period) {
  std::vector<Duration> longer;
  if (!request.method->rival) return longer;
  const std::vector<double> early = training::early_bits(*request.method->rival);
  if (early.empty()) return longer;
  std::map<double, Duration> by_bits;
  const double in_the_long_run = training::bits_per_number(*request.method->rival);
  constexpr double kFloat = 32;  // what resize_sets() takes sets for
  for (const double bits : early) {
    const auto [known, is_new] = by_bits.try_emplace(bits);
    if (is_new) {
      Plan plan = rank.plan();
      training::resize_sets(plan, [&](int /*part*/) { return kFloat * bits / in_the_long_run; });
      constexpr int kIterations = 8;
      known->second =
          report::stream_report(plan, rank.scenario(), kIterations).period.value() - period;
    }
    longer.push_back(known->second);
  }
  return longer;
}

void lengthen(TrainCurve& curve) {
  if (curve.longer_at_first.empty()) return;
  curve.is_composed = true;
  for (TrainPoint& point : curve.points)
    for (std::size_t i = 0; i < std::min(to_size(point.iteration), curve.longer_at_first.size());
         ++i)
      point.elapsed += curve.longer_at_first[i];
}

void judge(const std::optional<TrainingTarget>& target, TrainCurve& curve) {
  curve.iterations_to_target.reset();
  curve.time_to_target.reset();
  if (!target) return;
  for (const TrainPoint& point : curve.points) {
    if (!(point.validation <= target->value)) continue;  // nor of what diverged
    curve.iterations_to_target = point.iteration;
    curve.time_to_target = point.elapsed;
    return;
  }
}

/// A curve while it is run: stretch by stretch, with a checkpoint after each but the last.
class CurveRun {
public:
  CurveRun(engine::Ranks& ranks, const TrainRequest& request, const TrainSettings& settings)
      : ranks_{ranks},
        request_{request},
        settings_{settings},
        rank_{ranks, request, settings},
        whole_{ranks.world(), rank_} {
    curve_.method = request.method->name;
    curve_.seed = request.seed;
    curve_.learning_rate = request.learning_rate;
    if (ranks.is_first() && settings.compute == TrainCompute::real)
      held_out_.emplace(*request.data, training::model_shape(rank_.scenario()), settings.held_out);
  }

  TrainCurve run() {
    int first = load();
    const bool keeps = request_.store != nullptr && settings_.checkpoint_every > 0;
    while (first < request_.iterations) {
      const int past = keeps ? std::min(request_.iterations, first + settings_.checkpoint_every)
                             : request_.iterations;
      rank_.run(first, past, curve_.elapsed.empty() ? Duration::zero() : curve_.elapsed.back());
      with_patience([&] { take_stretch(first, past); });
      first = past;
      if (keeps && past < request_.iterations) save(past);
    }
    with_patience([this] { finish(); });
    return std::move(curve_);
  }

private:
  template <typename Work>
  void with_patience(Work&& work) {
    const Duration patience = ranks_.watchdog().patience();
    ranks_.watchdog().set_patience(kJudgingPatience);
    work();
    ranks_.world().barrier();
    ranks_.watchdog().set_patience(patience);
  }

  [[nodiscard]] int load() {
    if (request_.store == nullptr) return 0;
    std::vector<std::byte> state;
    const int iterations = request_.store->load(curve_, state);
    if (iterations == 0) return 0;
    training::StateReader reader{state};
    rank_.load(reader, iterations);
    if (!reader.is_over())
      fail("a checkpoint is longer than its run's (it is of another run). Begin anew.");
    return iterations;
  }
  void save(int iterations) {
    training::StateWriter writer;
    rank_.save(writer);
    request_.store->save(iterations, curve_, writer.bytes());
  }

  void take_stretch(int first, int past) {
    const TrainRank::Stretch stretch = rank_.take_stretch();
    add_times(ranks_, stretch, request_.clock.offset, curve_);
    add_losses(ranks_, stretch, curve_);
    add_counts(ranks_, stretch, curve_);
    add_versions(ranks_, rank_, stretch, request_.iterations, curve_);
    const int every = settings_.point_every;
    const auto judged = [&](int i) { return (i + 1) % every == 0 || i + 1 == request_.iterations; };
    const TargetKind kind = settings_.target ? settings_.target->kind : TargetKind::loss;
    for (int i = first; i < past; ++i) {
      if (!judged(i)) continue;
      const auto kept = stretch.kept.find(i);
      const std::vector<float> weights = whole_.join<float>(
          kept == stretch.kept.end() ? std::span<const float>{} : kept->second, ReplicaId{0});
      if (!held_out_) continue;
      curve_.points.push_back({(i + 1) * request_.method->local_steps(), curve_.elapsed[to_size(i)],
                               curve_.losses[to_size(i)], held_out_->judge(kind, weights)});
    }
  }

  void finish() {
    rank_.finish();
    if (rank_.control() != nullptr)
      curve_.adaptation = rank_.control()->report_of(request_.iterations);
    curve_.lost_relative = lost_share(ranks_, rank_, whole_);
    const bool computes = settings_.compute == TrainCompute::real;
    if (computes) curve_.replicas_equal = replicas_are_equal(rank_, whole_);
    if (computes && settings_.replay)
      curve_.replay = replay_curve(ranks_, rank_, request_, whole_, curve_);
    if (!ranks_.is_first()) return;
    curve_.period = curve_.mean_period();
    if (settings_.engine.emulation == engine::Emulation::on) {
      const report::StreamReport predicted =
          report::stream_report(rank_.plan(), rank_.scenario(), request_.iterations,
                                rank_.control() != nullptr ? rank_.control()->settings()
                                                           : std::vector<plan::StreamSetting>{});
      curve_.predicted_period = predicted.period;
      curve_.predicted_fresh_share = predicted.fresh_share;
      if (predicted.period)
        curve_.longer_at_first = longer_at_first(rank_, request_, *predicted.period);
      lengthen(curve_);
    }
    judge(settings_.target, curve_);
  }

  engine::Ranks& ranks_;
  const TrainRequest& request_;
  const TrainSettings& settings_;
  TrainRank rank_;
  WholeModel whole_;
  TrainCurve curve_;
  std::optional<HeldOut> held_out_;  ///< on rank 0
};

}  // namespace

std::optional<double> TrainCurve::fresh_share() const {
  if (parts_met == 0) return std::nullopt;
  return static_cast<double>(parts_fresh) / static_cast<double>(parts_met);
}

Duration TrainCurve::mean_period() const {
  return planner::period_of(starts).value_or(Duration::zero());
}

TrainCurve run_curve(engine::Ranks& ranks, const TrainRequest& request,
                     const TrainSettings& settings) {
  return CurveRun{ranks, request, settings}.run();
}

TrainCurve compose_curve(engine::Ranks& ranks, const TrainRequest& request,
                         const TrainSettings& settings) {
  LONGHAUL_ASSERT(!request.method->depends_on_links(), "{} is stale", request.method->name);
  if (request.iterations < 2 || settings.compose < 2)
    return run_curve(ranks, request, settings);  // no time between two updates to compose of
  TrainRequest timed = request;
  timed.store = nullptr;
  timed.is_for_compose = true;
  timed.iterations = std::min(request.iterations, settings.compose);
  TrainSettings short_run = settings;
  short_run.replay = false;
  short_run.point_every = timed.iterations;
  const TrainCurve measured = run_curve(ranks, timed, short_run);
  TrainSettings numbers = settings;
  numbers.engine.emulation = engine::Emulation::off;
  numbers.pace = device::Pace::real;
  TrainCurve curve = run_curve(ranks, request, numbers);
  curve.is_composed = true;
  curve.period = measured.period;
  curve.predicted_period = measured.predicted_period;
  curve.predicted_fresh_share = measured.predicted_fresh_share;
  curve.parts_met = measured.parts_met;
  curve.parts_fresh = measured.parts_fresh;
  curve.ops = measured.ops;
  curve.overran = measured.overran;
  for (TrainPoint& point : curve.points)
    point.elapsed = point.iteration / request.method->local_steps() * measured.period;
  curve.longer_at_first = measured.longer_at_first;
  lengthen(curve);
  curve.checks += measured.checks;
  if (ranks.is_first()) judge(settings.target, curve);
  return curve;
}

}  // namespace longhaul::harness
