#include "planner/tune/tune_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

/// Standard deviation over mean of the replicas' times, which kinds share. The paper's equation 3
/// lacks the 1 / n of both sums; its code has them.
template <typename Number>
double spread_of(const std::vector<GpuKind>& kinds, const std::vector<Number>& by_kind) {
  double n = 0, sum = 0, squares = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const auto replicas = static_cast<double>(kinds[k].replicas.size());
    const double time = kinds[k].speed.seconds(static_cast<double>(by_kind[k]));
    n += replicas;
    sum += replicas * time;
    squares += replicas * time * time;
  }
  const double mean = sum / n;
  return std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean;
}

template <typename Number>
std::pair<double, double> times_of(const std::vector<GpuKind>& kinds,
                                   const std::vector<Number>& by_kind) {
  double fastest = std::numeric_limits<double>::infinity(), slowest = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const double time = kinds[k].speed.seconds(static_cast<double>(by_kind[k]));
    fastest = std::min(fastest, time);
    slowest = std::max(slowest, time);
  }
  return {fastest, slowest};
}

}  // namespace

TuneSpace::TuneSpace(const TuneProblem& asked, const Surrogate& probes, Bandwidth link)
    : problem{asked}, surrogate{probes}, bandwidth{link} {
  if (problem.gpus.empty()) fail("there is no replica to tune. Give at least one GPU.");
  for (std::size_t r = 0; r < problem.gpus.size(); ++r) {
    const auto known = std::ranges::find(kinds_, problem.gpus[r], &GpuKind::speed);
    if (known != kinds_.end())
      known->replicas.push_back(r);
    else
      kinds_.push_back({problem.gpus[r], {r}});
  }
  const auto replicas = static_cast<double>(problem.gpus.size());
  most_samples_ = std::floor(surrogate.largest_batch());
  for (const GpuKind& kind : kinds_) {
    const auto own = static_cast<double>(kind.replicas.size());
    double most = std::floor((most_samples_ - (replicas - own)) / own);
    if (problem.most_samples) most = std::min<double>(most, *problem.most_samples);
    if (most < 1)
      fail(
          "{} replicas have no batch that the probes cover (up to {} samples in all). Probe larger "
          "ones.",
          replicas, most_samples_);
    most_.push_back(static_cast<int>(most));
  }
  double reachable = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    reachable += most_[k] * static_cast<double>(kinds_[k].replicas.size());
  least_samples_ = std::min(std::ceil(surrogate.least_batch()), reachable);
}

double TuneSpace::samples(const std::vector<int>& by_kind) const {
  double sum = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    sum += by_kind[k] * static_cast<double>(kinds_[k].replicas.size());
  return sum;
}

bool TuneSpace::allows(const std::vector<int>& by_kind) const {
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (by_kind[k] < 1 || by_kind[k] > most_[k]) return false;
  const double sum = samples(by_kind);
  return sum >= least_samples_ && sum <= most_samples_;
}

std::vector<int> TuneSpace::within(double seconds) const {
  constexpr double kRounding = 1e-9;
  std::vector<int> by_kind;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    by_kind.push_back(
        std::min(most_[k], static_cast<int>(seconds * kinds_[k].speed.beta * (1 + kRounding))));
  return allows(by_kind) ? by_kind : std::vector<int>{};
}

TuneSpace::Timing TuneSpace::timing_of(const std::vector<int>& by_kind) const {
  const auto [fastest, slowest] = times_of(kinds_, by_kind);
  return {samples(by_kind), fastest, slowest, spread_of(kinds_, by_kind)};
}

double TuneSpace::least_rate_of(double fastest_seconds) const {
  const double bytes_a_second = bandwidth.bits_per_second() / 8;
  return std::max(0.0, 1 - bytes_a_second / problem.model_bytes * fastest_seconds);
}

TuneSpace::RateChoice TuneSpace::roughly_best_rate(double samples, double least, int rates) const {
  RateChoice best{least, surrogate.g(samples, least)};
  for (int i = 1; i <= rates; ++i) {
    const double rate = least + (kLargestRate - least) * i / rates;
    if (rate <= least) break;
    const double g = surrogate.g(samples, rate);
    if (g < best.g) best = {rate, g};
  }
  return best;
}

TuneChoice TuneSpace::roughly_best_at(const std::vector<int>& by_kind, int rates) const {
  const Timing timing = timing_of(by_kind);
  const double least = least_rate_of(timing.fastest);
  return choice_of(by_kind, timing, roughly_best_rate(timing.samples, least, rates));
}

TuneChoice TuneSpace::best_at(const std::vector<int>& by_kind) const {
  const Timing timing = timing_of(by_kind);
  const double least = least_rate_of(timing.fastest);
  RateChoice best{least, surrogate.g(timing.samples, least)};
  for (int i = 0; i < kRates; ++i) {
    if (rate_at(i) <= least) continue;
    const double g = surrogate.g(timing.samples, rate_at(i));
    if (g < best.g) best = {rate_at(i), g};
  }
  return choice_of(by_kind, timing, best);
}

TuneChoice TuneSpace::choice_of(const std::vector<int>& by_kind, const Timing& timing,
                                const RateChoice& chosen) const {
  TuneChoice choice;
  choice.batch.resize(problem.gpus.size());
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    for (const std::size_t replica : kinds_[k].replicas) choice.batch[replica] = by_kind[k];
  choice.compression_rate = chosen.rate;
  choice.seconds = timing.slowest;
  choice.g = chosen.g;
  choice.seconds_per_sample = (1 + chosen.g) * timing.slowest / timing.samples;
  choice.spread = timing.spread;
  choice.objective = choice.seconds_per_sample + problem.lambda * choice.spread;
  choice.binding =
      chosen.rate > least_rate_of(timing.fastest) ? TuneBinding::surrogate : TuneBinding::bandwidth;
  return choice;
}

TuneChoice choice_at(const TuneProblem& problem, const Surrogate& surrogate,
                     const std::vector<int>& batch, double rate) {
  LONGHAUL_ASSERT(batch.size() == problem.gpus.size(), "{} batches of {} replicas", batch.size(),
                  problem.gpus.size());
  std::vector<GpuKind> each;
  for (std::size_t r = 0; r < batch.size(); ++r) each.push_back({problem.gpus[r], {r}});
  const double samples = std::accumulate(batch.begin(), batch.end(), 0.0);
  TuneChoice choice;
  choice.batch = batch;
  choice.compression_rate = rate;
  choice.seconds = times_of(each, batch).second;
  choice.g = surrogate.g(samples, rate);
  choice.seconds_per_sample = (1 + choice.g) * choice.seconds / samples;
  choice.spread = spread_of(each, batch);
  choice.objective = choice.seconds_per_sample + problem.lambda * choice.spread;
  return choice;
}

TuneChoice tune_rate(const TuneProblem& problem, const Surrogate& surrogate,
                     const std::vector<int>& batch, Bandwidth bandwidth) {
  const double least = least_rate(problem, batch, bandwidth);
  TuneChoice best = choice_at(problem, surrogate, batch, least);
  for (int i = 0; i < kRates; ++i) {
    if (rate_at(i) <= least) continue;
    TuneChoice choice = choice_at(problem, surrogate, batch, rate_at(i));
    if (!(choice.objective < best.objective)) continue;
    best = std::move(choice);
    best.binding = TuneBinding::surrogate;
  }
  return best;
}

double TuneSpace::objective(const std::vector<double>& by_kind, int rates) const {
  double sum = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (by_kind[k] < 1 || by_kind[k] > most_[k]) return std::numeric_limits<double>::infinity();
    sum += by_kind[k] * static_cast<double>(kinds_[k].replicas.size());
  }
  if (sum < least_samples_ || sum > most_samples_) return std::numeric_limits<double>::infinity();
  const auto [fastest, slowest] = times_of(kinds_, by_kind);
  const RateChoice chosen = roughly_best_rate(sum, least_rate_of(fastest), rates);
  return (1 + chosen.g) * slowest / sum + problem.lambda * spread_of(kinds_, by_kind);
}

}  // namespace longhaul::planner
