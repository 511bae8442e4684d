#include "harness/training/train_curve.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/held_out.hpp"
#include "harness/training/train_replay.hpp"
#include "report/stream_report.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

/// Sums of all numbers of a run are compared up to here: 8 bytes a number and rank on one rank.
constexpr std::size_t kMostAccounted = 10'000'000;
constexpr Duration kJudgingPatience = std::chrono::hours{2};

/// When all ranks had the update of each iteration, since the first block; on rank 0.
std::vector<Duration> updates_since_start(const engine::Ranks& ranks, const TrainRank& rank,
                                          Duration offset) {
  std::vector<std::int64_t> mine{(rank.began() + offset).count()};
  for (const TimePoint end : rank.ends()) mine.push_back((end + offset).count());
  const auto all = gather_vectors<std::int64_t>(ranks.world(), mine);
  std::vector<Duration> elapsed;
  if (all.empty()) return elapsed;
  std::int64_t began = all.front().front();
  for (const auto& one : all) began = std::min(began, one.front());
  for (std::size_t i = 1; i < all.front().size(); ++i) {
    std::int64_t last = 0;
    for (const auto& one : all) last = std::max(last, one[i]);
    elapsed.emplace_back(last - began);
  }
  return elapsed;
}

/// Of each iteration, added in order of rank; on rank 0.
std::vector<double> losses_of_all(const engine::Ranks& ranks, const TrainRank& rank) {
  const auto all = gather_vectors<double>(ranks.world(), rank.work().losses());
  std::vector<double> losses(all.empty() ? 0 : all.front().size());
  for (const auto& one : all)
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i] += one[i];
  return losses;
}

/// |gradients - sent - what waits| / |gradients|, of all replicas and numbers; on rank 0.
std::optional<double> lost_share(const engine::Ranks& ranks, const TrainRank& rank,
                                 const WholeModel& whole) {
  const training::ReplicaWork& work = rank.work();
  std::vector<double> seen, sums;
  std::int64_t accounts = 1;
  for (std::size_t p = 0; p < work.ranges().size(); ++p) {
    const training::PartMethod& method = work.method(p);
    if (method.gradients_seen().empty()) accounts = 0;
    const auto range = work.ranges()[p];
    seen.resize(range.first + range.count);
    sums.resize(seen.size());
    for (std::size_t i = 0; i < method.gradients_seen().size(); ++i) {
      const double waits =
          method.residual().empty() ? 0 : static_cast<double>(method.residual()[i]);
      seen[range.first + i] = method.gradients_seen()[i] - waits;
      sums[range.first + i] = method.sums_seen()[i];
    }
  }
  if (seen.size() > kMostAccounted) accounts = 0;
  if (ranks.world().minimum(accounts) == 0) return std::nullopt;
  std::vector<double> missing = whole.join<double>(sums, ReplicaId{0});
  double size = 0, lost = 0;
  for (const double sum : missing) size += sum * sum;
  for (double& sum : missing) sum = -sum;
  for (const ReplicaId replica : rank.plan().replica_ids()) {
    const auto of_one = whole.join<double>(seen, replica);
    for (std::size_t i = 0; i < of_one.size(); ++i) missing[i] += of_one[i];
  }
  for (const double each : missing) lost += each * each;
  return size > 0 ? std::sqrt(lost / size) : 0;
}

void add_counts(engine::Ranks& ranks, const TrainRank& rank, TrainCurve& curve) {
  const auto sum = [&](std::int64_t mine) { return ranks.world().sum(mine); };
  const training::SetDataPlane::Sent& sent = rank.sets().sent();
  curve.payload_bytes = sum(sent.payload_bytes);
  curve.wan_payload_bytes = sum(sent.wan_payload_bytes);
  curve.wan_nominal_bytes = sum(sent.wan_nominal_bytes);
  curve.ops = sum(rank.overruns().ops);
  curve.overran = sum(rank.overruns().longer);
  for (auto field : {&engine::Checks::messages, &engine::Checks::blocks, &engine::Checks::lost,
                     &engine::Checks::mixed_up, &engine::Checks::corrupted,
                     &engine::Checks::out_of_order, &engine::Checks::unclaimed})
    curve.checks.*field = sum(rank.checks().*field);
}

/// Ages of the weights that were used, on rank 0; with one chunk a rank, parts are in the order of
/// the model.
void add_versions(const engine::Ranks& ranks, const TrainRank& rank, TrainCurve& curve) {
  if (rank.scenario().train.staleness == 0) return;
  std::vector<std::int32_t> mine;
  for (const auto& iteration : rank.ages())
    mine.insert(mine.end(), iteration.begin(), iteration.end());
  const auto all = gather_vectors<std::int32_t>(ranks.world(), mine);
  if (all.empty()) return;
  const auto iterations = static_cast<int>(rank.ages().size());
  std::int64_t seen = 0, fresh = 0;
  for (int i = 0; i < iterations; ++i) {
    auto& of_replicas = curve.versions.emplace_back();
    for (const ReplicaId replica : rank.plan().replica_ids()) {
      std::vector<int>& parts = of_replicas.emplace_back();
      for (const Rank each : ranks_of_replica(rank.plan(), replica)) {
        const std::vector<std::int32_t>& ages = all[index(each)];
        const std::size_t of_one = ages.size() / to_size(iterations);
        const auto begin = ages.begin() + static_cast<std::ptrdiff_t>(to_size(i) * of_one);
        parts.insert(parts.end(), begin, begin + static_cast<std::ptrdiff_t>(of_one));
      }
      if (i < iterations / 2 || i > iterations - 3) continue;
      seen += std::ssize(parts);
      fresh += std::ranges::count(parts, 1);
    }
  }
  if (seen > 0) curve.fresh_share = static_cast<double>(fresh) / static_cast<double>(seen);
}

void judge(const std::optional<TrainingTarget>& target, TrainCurve& curve) {
  curve.iterations_to_target.reset();
  curve.time_to_target.reset();
  if (!target) return;
  for (const TrainPoint& point : curve.points) {
    if (point.validation > target->value) continue;
    curve.iterations_to_target = point.iteration;
    curve.time_to_target = point.elapsed;
    return;
  }
}

}  // namespace

TrainCurve run_curve(engine::Ranks& ranks, const TrainRequest& request,
                     const TrainSettings& settings) {
  TrainRank rank{ranks, request, settings};
  rank.run();
  const Duration patience = ranks.watchdog().patience();
  ranks.watchdog().set_patience(kJudgingPatience);
  TrainCurve curve;
  curve.method = request.method->name;
  curve.seed = request.seed;
  curve.learning_rate = request.learning_rate;
  const WholeModel whole{ranks.world(), rank};
  const std::vector<Duration> elapsed = updates_since_start(ranks, rank, request.clock.offset);
  curve.losses = losses_of_all(ranks, rank);
  add_counts(ranks, rank, curve);
  add_versions(ranks, rank, curve);
  curve.lost_relative = lost_share(ranks, rank, whole);
  if (settings.replay && settings.compute == TrainCompute::real)
    curve.replay = replay_curve(ranks, rank, request, whole, curve);
  std::optional<HeldOut> held_out;
  if (ranks.is_first() && settings.compute == TrainCompute::real)
    held_out.emplace(*request.data, training::model_shape(rank.scenario()), settings.held_out);
  for (int i = settings.point_every - 1; i < request.iterations; i += settings.point_every) {
    const auto kept = rank.work().kept().find(i);
    const std::vector<float> weights = whole.join<float>(
        kept == rank.work().kept().end() ? std::span<const float>{} : kept->second, ReplicaId{0});
    if (!held_out) continue;
    curve.points.push_back(
        {i + 1, elapsed[to_size(i)], curve.losses[to_size(i)], held_out->loss(weights)});
  }
  if (ranks.is_first()) {
    const int half = std::max(0, request.iterations / 2 - 1);
    if (request.iterations > 1)
      curve.period = (elapsed.back() - elapsed[to_size(half)]) / (request.iterations - 1 - half);
    if (settings.engine.emulation == engine::Emulation::on) {
      const report::StreamReport predicted =
          report::stream_report(rank.plan(), rank.scenario(), request.iterations);
      curve.predicted_period = predicted.period;
      curve.predicted_fresh_share = predicted.fresh_share;
    }
    judge(settings.target, curve);
  }
  ranks.world().barrier();
  ranks.watchdog().set_patience(patience);
  return curve;
}

TrainCurve compose_curve(engine::Ranks& ranks, const TrainRequest& request,
                         const TrainSettings& settings) {
  LONGHAUL_ASSERT(!request.method->depends_on_links(), "{} is stale", request.method->name);
  TrainSettings numbers = settings;
  numbers.engine.emulation = engine::Emulation::off;
  numbers.pace = device::Pace::real;
  TrainCurve curve = run_curve(ranks, request, numbers);
  TrainRequest timed = request;
  timed.iterations = std::min(request.iterations, settings.compose);
  TrainSettings short_run = settings;
  short_run.replay = false;
  short_run.point_every = timed.iterations;
  const TrainCurve measured = run_curve(ranks, timed, short_run);
  curve.is_composed = true;
  curve.period = measured.period;
  curve.predicted_period = measured.predicted_period;
  curve.ops = measured.ops;
  curve.overran = measured.overran;
  for (TrainPoint& point : curve.points) point.elapsed = point.iteration * measured.period;
  curve.checks += measured.checks;
  if (ranks.is_first()) judge(settings.target, curve);
  return curve;
}

}  // namespace longhaul::harness
