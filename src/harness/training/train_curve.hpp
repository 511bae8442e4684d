#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/group/clock_sync.hpp"
#include "engine/ranks.hpp"
#include "harness/training/train_method.hpp"
#include "harness/training/train_options.hpp"
#include "report/adapted_stream.hpp"
#include "training/data/training_data.hpp"

namespace longhaul::harness {

/// Weights of the whole model after an iteration's update, judged by what was held out.
struct TrainPoint {
  int iteration = 0;   ///< updates so far, local ones of a replica counted
  Duration elapsed{};  ///< since the first block, when all ranks had the update
  double train_loss = 0;
  double validation = 0;
};

struct ReplayResult {
  bool equal = false;
  bool losses_equal = false;      ///< of each iteration, bit for bit
  double largest_difference = 0;  ///< of weights and residuals, relative to the tensor's largest
};

/// A run of one method from one seed; on rank 0.
struct TrainCurve {
  std::string method;
  bool is_composed = false;  ///< see compose_curve()
  int seed = 0;
  double learning_rate = 0;
  /// Of each iteration, or of all local steps between two exchanges: mean of a token.
  std::vector<double> losses;
  /// Of each, since the first block: when the first one of it began, and when all ranks had its
  /// update.
  std::vector<Duration> starts, elapsed;
  std::vector<TrainPoint> points;
  std::optional<int> iterations_to_target;
  std::optional<Duration> time_to_target;
  Duration period{};  ///< see planner::period_of(), as predicted
  std::optional<Duration> predicted_period;
  /// How much longer the first iterations of a rival take, which send more (early_bits()):
  /// simulated, and added to the times of `points`, for emulated links have sizes of the long run.
  std::vector<Duration> longer_at_first;
  /// Parts that F met in iterations floor(N/2) to N - 3 of all N, over replicas, and those of them
  /// that were fresh.
  std::int64_t parts_met = 0, parts_fresh = 0;
  std::optional<double> predicted_fresh_share;
  bool diverged = false;                              ///< of a trial: a gradient was not finite
  std::int64_t payload_bytes = 0, encoded_bytes = 0;  ///< encoded: without envelopes
  std::int64_t between_stages = 0;                    ///< bytes of activations and their gradients
  /// Of sets and of what stages send each other; `wan_between_stages`: of these, the latter.
  std::int64_t wan_payload_bytes = 0, wan_encoded_bytes = 0, wan_nominal_bytes = 0;
  std::int64_t wan_between_stages = 0;
  std::int64_t ops = 0, overran = 0;  ///< that the plan gives a time, and those that took longer
  /// Of what a method means to send: of local steps their outer gradients, of dgc the gathered
  /// momentum (masked where it was sent), of onebit the replica's momentum against what the server
  /// has answered or still owes; what demo and sparseloco forget by their decay was never there.
  std::optional<double> lost_relative;
  std::optional<ReplayResult> replay;
  /// Of what is not replayed: do all replicas end with the same weights, bit for bit?
  std::optional<bool> replicas_equal;
  engine::Checks checks;
  std::optional<report::AdaptationReport> adaptation;  ///< with [train.adapt]
  /// By iteration, then replica, then part: iterations between the update that F used and its own;
  /// empty at staleness 0.
  std::vector<std::vector<std::vector<int>>> versions;

  /// nullopt: it has no such iterations.
  [[nodiscard]] std::optional<double> fresh_share() const;
  /// `period` of what `starts` has so far; zero: too little for one.
  [[nodiscard]] Duration mean_period() const;
};

/// Where a curve's checkpoints go; every call is collective.
class CurveStore {
public:
  CurveStore() = default;
  virtual ~CurveStore() = default;
  CurveStore(const CurveStore&) = delete;
  CurveStore& operator=(const CurveStore&) = delete;

  /// The iterations that an earlier part of the run has finished of this curve, with `curve` as it
  /// was then on rank 0 and this rank's state; 0: none.
  [[nodiscard]] virtual int load(TrainCurve& curve, std::vector<std::byte>& state) = 0;
  /// Replaces the one before.
  virtual void save(int iterations, const TrainCurve& curve, std::span<const std::byte> state) = 0;
};

/// What a curve is of.
struct TrainRequest {
  const TrainMethod* method = nullptr;
  std::string schedule;
  int seed = 1;
  double learning_rate = 0;
  int iterations = 0;
  std::shared_ptr<const training::TrainingData> data;
  comm::ClockOffset clock;      ///< of this host's clock from rank 0's
  CurveStore* store = nullptr;  ///< nullptr: no checkpoints
  bool is_trial = false;        ///< goes on where it diverges
  bool is_for_compose = false;  ///< its times stand for those of the rest
};

/// Collective over as many ranks as the scenario has. Validation and replay come after the run.
[[nodiscard]] TrainCurve run_curve(engine::Ranks& ranks, const TrainRequest& request,
                                   const TrainSettings& settings);

/// Collective: the numbers of a run without emulated links, each iteration as long as the mean of
/// TrainSettings::compose measured ones. Only of methods that do not depend on links.
[[nodiscard]] TrainCurve compose_curve(engine::Ranks& ranks, const TrainRequest& request,
                                       const TrainSettings& settings);

}  // namespace longhaul::harness
