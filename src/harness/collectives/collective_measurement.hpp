#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/statistics/sample.hpp"
#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::harness {

struct CollectiveSettings {
  int iterations = 8;
  int warmup = 1;
  engine::EngineOptions engine;
  DeviceKind device = DeviceKind::cpu;
};

/// A collective played on ranks, message by message. All but `predicted` is complete on rank 0.
struct CollectiveMeasurement {
  planner::CollectiveTime predicted;
  /// Of each iteration: from the first message's start on any rank until the last has arrived.
  std::vector<double> durations_ns;
  SampleSummary summary;
  engine::Checks checks;  ///< of all ranks and iterations, warm-up included
  /// Numbers were sent whole, added up on arrival, and compared at the end. Otherwise payloads were
  /// cut, and say whose they are alone.
  bool adds_up = false;

  [[nodiscard]] double difference_percent() const;
};

/// Collective over the ranks, as many as the scenario has; all of them on one host, or their clocks
/// would be compared. `scenario` as it is played.
[[nodiscard]] CollectiveMeasurement measure_collective(const plan::Collective& collective,
                                                       const Scenario& scenario,
                                                       engine::Ranks& ranks,
                                                       const CollectiveSettings& settings);

/// Bytes per time that a member sees, and that its links carry: nccl-tests' algbw and busbw, in
/// bytes a second. docs/collectives.md.
struct CollectiveRates {
  double algorithm = 0, bus = 0;
};
[[nodiscard]] CollectiveRates rates_of(const plan::Collective& collective, double duration_ns);

/// A table for each kind and size, for people; times as played.
[[nodiscard]] std::string collective_tables(const std::vector<CollectiveMeasurement>& measured);
[[nodiscard]] nlohmann::ordered_json collectives_json(
    const std::vector<CollectiveMeasurement>& measured);

}  // namespace longhaul::harness
