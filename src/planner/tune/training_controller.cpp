#include "planner/tune/training_controller.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

constexpr double kMomentum = 0.9;      // of a batch's throughput, as the public code has it
constexpr double kPassedRate = 0.999;  // largest rate of the paper's profile
constexpr double kBusy = 0.05;

/// Seconds of an iteration that a rank waits.
double wait_of(const RankTelemetry& rank) {
  return rank.seconds * rank.idle_share / (1 - rank.idle_share);
}

/// The share of time that all ranks wait, which none of them is the cause of.
double network_idle(std::span<const RankTelemetry> ranks) {
  double least = wait_of(ranks.front()), mean = 0;
  for (const RankTelemetry& rank : ranks) {
    least = std::min(least, wait_of(rank));
    mean += rank.seconds / static_cast<double>(ranks.size());
  }
  return least / (least + mean);
}

double mean_period(std::span<const RankTelemetry> ranks) {
  double sum = 0;
  for (const RankTelemetry& rank : ranks) sum += rank.seconds + wait_of(rank);
  return sum / static_cast<double>(ranks.size());
}

}  // namespace

TrainingController::TrainingController(ControllerSettings settings, Surrogate surrogate)
    : settings_{std::move(settings)}, surrogate_{std::move(surrogate)} {
  TuneProblem& problem = settings_.problem;
  problem.lambda = settings_.adapt.lambda.value_or(problem.lambda);
  setting_ = choice_at(problem, surrogate_, settings_.batch, settings_.compression_rate);
  throughput_.resize(problem.gpus.size());
}

std::optional<int> TrainingController::window(int done) const {
  const TrainingAdaptation& adapt = settings_.adapt;
  if (adapt.every == 0 || adapt.changes == AdaptedSettings::nothing) return std::nullopt;
  if ((done + 1) % adapt.every != 0) return std::nullopt;
  const int steady = since_ + 1 + settings_.staleness;
  const int first = std::max(done + 1 - std::max(adapt.every, 2), steady);
  return first < done ? std::optional{first} : std::nullopt;
}

void TrainingController::fit(std::span<const RankTelemetry> ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double now = ranks[r].batch / ranks[r].seconds;
    const auto [known, is_new] = throughput_[r].try_emplace(ranks[r].batch, now);
    if (!is_new) known->second = kMomentum * known->second + (1 - kMomentum) * now;
    std::vector<ThroughputSample> samples;
    for (const auto& [batch, throughput] : throughput_[r])
      samples.push_back({static_cast<double>(batch), throughput});
    GpuSpeed& speed = settings_.problem.gpus[r];
    speed = fit_throughput(samples, speed);
  }
}

TrainingController::Belief TrainingController::estimate(
    std::span<const RankTelemetry> ranks) const {
  const double idle = network_idle(ranks);
  Belief belief;
  if (!believed_)
    belief = {(1 - setting_.compression_rate) * model_bits() / mean_period(ranks),
              AdaptationReason::first};
  else if (idle < kBusy && setting_.binding == TuneBinding::surrogate)
    belief = {*believed_, AdaptationReason::unused};
  else
    belief = {adapted_bandwidth(*believed_, idle),
              idle < kBusy ? AdaptationReason::busy : AdaptationReason::idle};
  const auto [fastest, slowest] = std::ranges::minmax(ranks, {}, &RankTelemetry::seconds);
  belief.bits_per_second =
      std::clamp(belief.bits_per_second, (1 - kPassedRate) * model_bits() / slowest.seconds,
                 model_bits() / fastest.seconds);
  return belief;
}

std::vector<TrainingController::Learned> TrainingController::learned() const {
  std::vector<Learned> all;
  for (std::size_t r = 0; r < throughput_.size(); ++r)
    all.push_back({settings_.problem.gpus[r], throughput_[r]});
  return all;
}

void TrainingController::resume(const Adaptation& last, std::vector<Learned> learned) {
  for (std::size_t r = 0; r < learned.size(); ++r) {
    settings_.problem.gpus[r] = learned[r].speed;
    throughput_[r] = std::move(learned[r].by_batch);
  }
  setting_ = last.setting;
  believed_ = last.bandwidth.bits_per_second();
  since_ = last.iteration;
}

Adaptation TrainingController::decide(int done, std::span<const RankTelemetry> ranks,
                                      std::optional<Bandwidth> measured) {
  LONGHAUL_ASSERT(ranks.size() == settings_.problem.gpus.size(), "telemetry of {} ranks, not {}",
                  ranks.size(), settings_.problem.gpus.size());
  const bool by_links = settings_.adapt.estimate == BandwidthEstimate::links;
  LONGHAUL_ASSERT(measured.has_value() || !by_links, "links measured nothing up to {}", done);
  fit(ranks);
  const Belief belief =
      by_links ? Belief{measured->bits_per_second(), AdaptationReason::links} : estimate(ranks);
  believed_ = belief.bits_per_second;
  const Bandwidth bandwidth{belief.bits_per_second};
  setting_ = settings_.adapt.changes == AdaptedSettings::rate
                 ? tune_rate(settings_.problem, surrogate_, setting_.batch, bandwidth)
                 : tune(settings_.problem, surrogate_, bandwidth);
  since_ = first_open(done, settings_.staleness);
  return {since_, bandwidth, setting_, belief.reason};
}

}  // namespace longhaul::planner
