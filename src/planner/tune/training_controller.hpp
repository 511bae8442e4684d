#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/listed_enum.hpp"
#include "planner/tune/tune.hpp"
#include "scenario/training.hpp"

namespace longhaul::planner {

/// What a rank says of some iterations (StellaTrain, section 4.1).
struct RankTelemetry {
  int batch = 0;          ///< samples of an iteration
  double seconds = 0;     ///< F and B of an iteration, mean
  double idle_share = 0;  ///< of the time of its device: from 0, below 1
};

/// On what ground a bandwidth is believed: it is that of the traffic so far; ranks were busy; they
/// waited; they were busy, but the setting did not use the link to the full, so that this says
/// nothing of it; links measured it.
#define LONGHAUL_ADAPTATION_REASONS(X) \
  X(first, "first") X(busy, "busy") X(idle, "idle") X(unused, "unused") X(links, "links")
LONGHAUL_LISTED_ENUM(AdaptationReason, LONGHAUL_ADAPTATION_REASONS);

/// A decision of the controller.
struct Adaptation {
  int iteration = 0;  ///< from which on the setting is used
  Bandwidth bandwidth;
  TuneChoice setting;
  AdaptationReason reason = AdaptationReason::first;
};

/// What a controller knows before its ranks begin.
struct ControllerSettings {
  /// `gpus`: as profiled; `model_bytes`: what an iteration without compression would send over the
  /// link that has most to carry.
  TuneProblem problem;
  TrainingAdaptation adapt;
  int staleness = 0;
  std::vector<int> batch;  ///< that replicas begin with
  double compression_rate = 0;
};

/// The central controller of StellaTrain (sections 4.1 and 4.2), which sees nothing but telemetry:
/// it fits alpha and beta of each GPU, estimates the bandwidth of the link, and chooses batches and
/// rate by equations 1 to 6 (tune()). The same code decides in the simulator and beside ranks.
///
/// With `estimate = "idle"` the first estimate is the rate of the traffic so far, as the public
/// code has it; then adapted_bandwidth() of the share of time that all ranks wait: the least wait
/// over itself and the mean time of F and B. An estimate is no less than what a rate of 0.999
/// passes within the slowest replica's time, and no more than what all numbers pass within the
/// fastest's: beyond, rates say nothing.
class TrainingController {
public:
  TrainingController(ControllerSettings settings, Surrogate surrogate);

  /// The first iteration that no rank can have begun when `done` is complete on all, so that a
  /// setting from there on is new to all of them. F of iteration n + 1 + s needs an update of n,
  /// and so B of n on all replicas, for which all updates of n - 1 - s are in place; thus F of n +
  /// 2 + 2 s begins after n is complete.
  [[nodiscard]] static int first_open(int done, int staleness) { return done + 2 + 2 * staleness; }

  /// Is a decision due when `done` is complete on all ranks? The first of the iterations up to
  /// `done`, two at least, that telemetry is to be of. Decisions are due every `every` iterations,
  /// where two have run with the last setting, those left out that still wait for older exchanges.
  [[nodiscard]] std::optional<int> window(int done) const;

  /// `ranks`: one a replica. `measured`: with `estimate = "links"` the bandwidth that they saw.
  Adaptation decide(int done, std::span<const RankTelemetry> ranks,
                    std::optional<Bandwidth> measured = {});

  /// What it has found out of a replica: its throughput, in samples/s, by batch.
  struct Learned {
    GpuSpeed speed;
    std::map<int, double> by_batch;
  };
  [[nodiscard]] std::vector<Learned> learned() const;
  /// As if it had made this decision, the last of those before.
  void resume(const Adaptation& last, std::vector<Learned> learned);

  [[nodiscard]] const TuneChoice& setting() const { return setting_; }
  /// Of an iteration's gradients, uncompressed, over the link.
  [[nodiscard]] double model_bits() const { return 8 * settings_.problem.model_bytes; }
  /// As fitted by now.
  [[nodiscard]] const GpuSpeed& speed(std::size_t replica) const {
    return settings_.problem.gpus[replica];
  }

private:
  struct Belief {
    double bits_per_second = 0;
    AdaptationReason reason = AdaptationReason::first;
  };
  void fit(std::span<const RankTelemetry> ranks);
  [[nodiscard]] Belief estimate(std::span<const RankTelemetry> ranks) const;

  ControllerSettings settings_;
  Surrogate surrogate_;
  TuneChoice setting_;
  std::vector<std::map<int, double>> throughput_;  ///< of each replica, by batch: samples/s
  std::optional<double> believed_;                 ///< bits per second
  int since_ = 0;                                  ///< the iteration that began with setting_
};

}  // namespace longhaul::planner
