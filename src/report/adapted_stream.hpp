#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"
#include "planner/tune/training_controller.hpp"
#include "scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace longhaul::report {

/// What the controller of [train.adapt] did in a stream, and what the stream is worth by its
/// probes.
struct AdaptationReport {
  std::vector<planner::Adaptation> decisions;  ///< those that were applied, by iteration
  std::int64_t samples = 0;                    ///< of all replicas and iterations
  double effective_samples = 0;  ///< each iteration's over 1 + g: what they bring nearer to a loss
};

/// `first`: the setting that the stream begins with.
[[nodiscard]] AdaptationReport adaptation_report(const planner::TuneChoice& first,
                                                 std::vector<planner::Adaptation> decisions,
                                                 int iterations);

/// Times of iterations of a stream as its ranks know them: blocks, and messages between
/// datacenters.
class StreamTelemetry {
public:
  /// What one rank that trains knows of one iteration.
  struct OfRank {
    Duration start{}, busy{};    ///< of its blocks: of the first, by its clock; of all together
    std::vector<Duration> held;  ///< by links(): by its messages
  };

  explicit StreamTelemetry(const Plan& plan);
  /// Of a rank that has ops.
  [[nodiscard]] OfRank seen_by(Rank rank, const OpTimes& times) const;
  /// Ranks in any order, each of them in order of iteration.
  void add(int iteration, Rank rank, OfRank seen);
  void add(const sim::StreamedIteration& done);
  /// Between datacenters, that messages hold.
  [[nodiscard]] const std::vector<ResourceId>& links() const { return links_; }
  /// Of iterations `first` to `last` - 1, up to the first block of `last`. `batch`: of each
  /// replica.
  [[nodiscard]] std::vector<planner::RankTelemetry> of(int first, int last,
                                                       const std::vector<int>& batch) const;
  /// How long messages held the link between datacenters that was held longest, of an iteration.
  [[nodiscard]] Duration longest_hold(int first, int last) const;
  void forget_before(int iteration);

private:
  const Plan& plan_;
  std::vector<LaneId> compute_;                    ///< of each replica, in their order
  std::vector<ResourceId> links_;                  ///< ascending
  std::vector<OpId> sends_;                        ///< between datacenters
  std::map<int, std::vector<OfRank>> iterations_;  ///< of each replica
};

/// Bytes that an iteration would send uncompressed over the link between datacenters that its
/// messages hold longest: m of equation 6, of what this exchange sends. Throws Error where none is
/// held.
[[nodiscard]] double uncompressed_bytes(const Plan& plan, double keep);

/// The batches that replicas begin with: of [train] batch, or alpha of their GPUs.
[[nodiscard]] std::vector<int> first_batches(const Scenario& scenario,
                                             const planner::TuneProblem& problem);

/// The controller of a scenario with [train.adapt], before its first iteration. Throws Error where
/// nothing can be adapted: no sparse method, sizes or times of blocks that are given, no link.
[[nodiscard]] planner::TrainingController controller_of(const Scenario& scenario, const Plan& plan);

/// What a link between datacenters passed in the time that an iteration's messages held it.
[[nodiscard]] Bandwidth bandwidth_of(const planner::TrainingController& controller, Duration held);

/// The scenario with train.hetero (planner::kHetero): its batches divided by the throughput of the
/// replicas, and times of blocks that follow them. Without a controller. Throws Error where they
/// cannot be divided.
[[nodiscard]] Scenario by_throughput(const Scenario& scenario);
/// The scenario with other batches, and times of blocks that follow them, and another rate.
[[nodiscard]] Scenario with_setting(const Scenario& scenario, const planner::TuneChoice& setting);

/// [{"iteration", "bandwidth_bits_per_second", "batch", "compression_rate", "reason"}]
[[nodiscard]] nlohmann::ordered_json adaptation_json(const AdaptationReport& adaptation);
/// For people: a line for each decision; begins with an empty line. Empty where there is none.
[[nodiscard]] std::string adaptation_text(const std::string& schedule,
                                          const AdaptationReport& adaptation);

}  // namespace longhaul::report
