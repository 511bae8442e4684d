#pragma once

#include <algorithm>
#include <vector>

#include "planner/tune/tune.hpp"

namespace longhaul::planner {

inline constexpr double kLargestRate = 0.999;  ///< of the paper's profile

/// The rates that a setting is chosen from, besides its least: from 0 to the largest.
inline constexpr int kRates = 101;
[[nodiscard]] constexpr double rate_at(int i) { return kLargestRate * i / (kRates - 1); }

/// Replicas with one kind of GPU have one batch.
struct GpuKind {
  GpuSpeed speed;
  std::vector<std::size_t> replicas;
};

/// The batches that may be chosen: those that probes cover, and memory holds.
class TuneSpace {
public:
  TuneSpace(const TuneProblem& problem, const Surrogate& surrogate, Bandwidth bandwidth);

  [[nodiscard]] const std::vector<GpuKind>& kinds() const { return kinds_; }
  [[nodiscard]] int most(std::size_t kind) const { return most_[kind]; }
  [[nodiscard]] double samples(const std::vector<int>& by_kind) const;
  [[nodiscard]] bool allows(const std::vector<int>& by_kind) const;
  /// Every kind's largest batch within a time; empty where that allows none.
  [[nodiscard]] std::vector<int> within(double seconds) const;
  /// Of all replicas.
  [[nodiscard]] double most_samples() const { return std::min(most_samples_, samples(most_)); }
  [[nodiscard]] const std::vector<int>& most_of_all() const { return most_; }

  /// Times of an iteration: the fastest and the slowest replica's, and equation 3.
  struct Timing {
    double samples = 0, fastest = 0, slowest = 0, spread = 0;
  };
  [[nodiscard]] Timing timing_of(const std::vector<int>& by_kind) const;

  /// Equation 1 at the best of the least rate and of every rate_at above it.
  [[nodiscard]] TuneChoice best_at(const std::vector<int>& by_kind) const;
  /// For a search: at the rate that is best of `rates` + 1 from the least to the largest.
  [[nodiscard]] TuneChoice roughly_best_at(const std::vector<int>& by_kind, int rates) const;
  /// Its objective for batches that are no whole numbers; infinite where they are not allowed.
  [[nodiscard]] double objective(const std::vector<double>& by_kind, int rates) const;
  [[nodiscard]] double least_rate_of(double fastest_seconds) const;

  const TuneProblem& problem;
  const Surrogate& surrogate;
  Bandwidth bandwidth;

private:
  struct RateChoice {
    double rate = 0, g = 0;
  };
  [[nodiscard]] TuneChoice choice_of(const std::vector<int>& by_kind, const Timing& timing,
                                     const RateChoice& chosen) const;
  [[nodiscard]] RateChoice roughly_best_rate(double samples, double least, int rates) const;

  std::vector<GpuKind> kinds_;
  std::vector<int> most_;
  double least_samples_ = 0, most_samples_ = 0;
};

}  // namespace longhaul::planner
