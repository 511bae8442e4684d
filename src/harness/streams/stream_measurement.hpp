#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "plan/plan.hpp"

namespace longhaul::harness {

/// A stream to measure: replicas in two sites, half of them in each, of three parts with F and B.
/// After its B each part is exchanged with the replica's partner in the other site, over a link of
/// each direction that all share and that serves by deadline: part 0 first. F of a part waits for
/// its exchange `1 + stale` iterations before.
struct StreamSettings {
  Duration forward{std::chrono::milliseconds{10}};
  Duration latency{std::chrono::milliseconds{5}};
  Bytes size{25'000'000};  ///< of each exchange, one way
  int iterations = 20;
  int warmup = 5;  ///< of these iterations: not measured
  Duration credit{std::chrono::milliseconds{1}};
  /// With ops that may not run and versions: each rank has two host tasks after its last B, of
  /// which one can never end by its deadline, and F of part 0 notes which exchange of the last part
  /// it met.
  bool extras = false;
  std::optional<engine::Fault> fault;
};

struct StreamCase {
  Bandwidth rate;
  int stale = 0;
};

/// One stream's: of the iterations from `first` on.
struct StreamMeasurement {
  StreamCase of;
  int first = 0;
  int periods = 0;       ///< that were measured; 0: too few iterations were left to run
  Duration predicted{};  ///< between the starts of two iterations, mean
  Duration measured{};   ///< the same, of the slowest rank
  double messages = 0;   ///< on the predicted critical path, of an iteration
  std::size_t live = 0;  ///< iterations in memory at a time
  /// plan::late_per_message(); nullopt also where nothing was measured.
  [[nodiscard]] std::optional<Duration> late_per_message() const;
  [[nodiscard]] double difference() const {
    if (periods == 0) return 0;
    return static_cast<double>(measured.count()) / static_cast<double>(predicted.count()) - 1;
  }
};

/// A plan, and from which iteration on its stream is to be run.
struct PlannedStream {
  Plan plan;
  int first = 0;
  /// Called with each iteration of this rank; empty: with none.
  std::function<void(const engine::IterationResult&)> keep{};
};

[[nodiscard]] Plan plan_of_exchange(int ranks, const StreamCase& of,
                                    const StreamSettings& settings);
/// The rows of all iterations, as simulated.
void append_predicted(Timeline& timeline, const Plan& plan, int iterations);
/// Collective over an even number of ranks.
[[nodiscard]] StreamMeasurement measure_stream(const StreamCase& of, const PlannedStream& planned,
                                               engine::Ranks& ranks, const StreamSettings& settings,
                                               engine::Checks& checks);
/// What an op costs that is told to ranks of the same host, without waking them.
struct PublishingCost {
  double publish_ns = 0, read_ns = 0;  ///< of the first rank; of the slowest of the others
};
/// Collective.
[[nodiscard]] PublishingCost measure_publishing(engine::Ranks& ranks);

/// "40Gbps,10Gbps". Throws Error where that is no list of rates.
[[nodiscard]] std::vector<Bandwidth> parse_rates(const std::string& list);
[[nodiscard]] std::string stream_table(const std::vector<StreamMeasurement>& measurements);

}  // namespace longhaul::harness
