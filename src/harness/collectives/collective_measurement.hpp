#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/statistics/sample.hpp"
#include "base/table.hpp"
#include "engine/credit/shadow_time.hpp"
#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "harness/collectives/timed_runs.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/tie_range.hpp"

namespace longhaul::harness {

/// A pipeline on the same ranks, an iteration of which begins when the collective may begin.
struct BesideWork {
  std::string schedule;
  Plan plan;
};

struct CollectiveSettings {
  Repetitions repetitions;
  engine::EngineOptions engine;  ///< emulation off: the machine as it is, whole messages
  DeviceKind device = DeviceKind::cpu;
  CollectiveCalls calls = CollectiveCalls::messages;
  std::optional<OwnCalls> own = OwnCalls::mpi;  ///< timed beside; see own_calls_of()
  std::optional<BesideWork> beside{};           ///< where links are emulated
  planner::TieDraws ties{};                     ///< no draws: none are made

  /// Otherwise the machine is measured as it is.
  [[nodiscard]] bool emulates() const {
    return engine.emulation == engine::Emulation::on && calls == CollectiveCalls::messages;
  }
};

/// Whose own calls are timed: MPI's of numbers in the hosts' memory, NCCL's where it carries what
/// lies on GPUs; nullopt: no one's. Throws Error, the same on all ranks, where they alone are asked
/// for.
[[nodiscard]] std::optional<OwnCalls> own_calls_of(const CollectiveSettings& settings,
                                                   const comm::TransportChoice& transport);

/// A pipeline that was played beside a collective, and what the collective would take by itself.
struct BesideTimes {
  std::string schedule;
  Duration alone{};      ///< simulated: the collective without the pipeline
  Duration predicted{};  ///< of the iteration, from the first start to the last end of all
  std::vector<double> durations_ns{};
  SampleSummary summary{};

  [[nodiscard]] double difference_percent() const;
};

/// A collective played on ranks, message by message. All but `predicted` is complete on rank 0.
struct CollectiveMeasurement {
  planner::CollectiveTime predicted;
  /// Of the same, where messages that ask for a resource at once come in any order; emulated alone.
  std::optional<planner::TieRange> over_ties{};
  /// Of each iteration: from the first message's start on any rank until the last has arrived; at
  /// full speed those of `out_of_place`. Of native ones those of the one call.
  std::vector<double> durations_ns;
  SampleSummary summary;
  /// Where links are emulated and nothing is beside it: had no op been given credit for lateness.
  std::vector<double> without_credit_ns{};
  engine::CreditUse credit{};  ///< of all ranks and iterations, warm-up included
  Duration processor_time{};   ///< of the same, everything that ranks do between their barriers
  engine::Checks checks;       ///< of all ranks and iterations, warm-up included
  /// Numbers were sent whole, added up on arrival, and compared at the end. Otherwise payloads were
  /// cut, and say whose they are alone.
  bool adds_up = false;
  Bytes largest_message, largest_sent;
  /// Without emulation alone.
  std::optional<TimedRuns> out_of_place{}, in_place{};
  /// One call of MPI or NCCL on these ranks, on the machine as it is.
  std::optional<TimedRuns> own_out_of_place{}, own_in_place{};
  OwnCalls own_by = OwnCalls::mpi;
  std::optional<BesideTimes> beside{};

  [[nodiscard]] double difference_percent() const;
  /// Of the median: plan::late_per_message().
  [[nodiscard]] std::optional<Duration> late_per_message() const;
  [[nodiscard]] double difference_without_credit_percent() const;
  /// From the median over ties.
  [[nodiscard]] double difference_over_ties_percent() const;
  /// Processor time for each side of a message.
  [[nodiscard]] Duration processor_time_of_side() const;
  /// Wrong messages and items.
  [[nodiscard]] std::int64_t wrong() const;
};

/// Collective over the ranks, as many as the scenario has; where links are emulated all of them on
/// one host, or their clocks would be compared. `scenario` as it is played. Without MPI's own. The
/// collective's time is from the start of its first message until the last has arrived.
[[nodiscard]] CollectiveMeasurement measure_collective(const plan::Collective& collective,
                                                       const Scenario& scenario,
                                                       engine::Ranks& ranks,
                                                       const CollectiveSettings& settings);

/// Each of them, and the own call of the same kind, group and size beside it. `after_each` is
/// called on every rank.
[[nodiscard]] std::vector<CollectiveMeasurement> measure_collectives(
    const std::vector<plan::Collective>& collectives, const Scenario& scenario,
    engine::Ranks& ranks, const CollectiveSettings& settings,
    const std::function<void(const CollectiveMeasurement&)>& after_each);

/// Bytes per time that a member sees, and that its links carry: nccl-tests' algbw and busbw, in
/// bytes a second. docs/collectives.md.
struct CollectiveRates {
  double algorithm = 0, bus = 0;
};
[[nodiscard]] CollectiveRates rates_of(const plan::Collective& collective, double duration_ns);

/// For people, times as played: a table for each kind, group and size; at full speed one for each
/// kind and group, with nccl-tests' columns, and one that holds it against prediction and MPI.
[[nodiscard]] std::string collective_tables(const std::string& scenario,
                                            const CollectiveSettings& settings,
                                            const std::vector<CollectiveMeasurement>& measured,
                                            TableWidth width);
[[nodiscard]] std::string emulated_tables(const std::vector<CollectiveMeasurement>& measured,
                                          TableWidth width);
[[nodiscard]] std::string full_speed_tables(const std::vector<CollectiveMeasurement>& measured,
                                            TableWidth width);
[[nodiscard]] nlohmann::ordered_json collectives_json(
    const std::vector<CollectiveMeasurement>& measured);

}  // namespace longhaul::harness
