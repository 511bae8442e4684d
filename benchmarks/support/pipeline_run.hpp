#pragma once

#include <functional>
#include <optional>

#include "cli/record.hpp"
#include "runtime/clock_sync.hpp"
#include "runtime/device/cpu/timed_device.hpp"
#include "runtime/engine/engine.hpp"
#include "schedule/memory.hpp"
#include "support/pipeline_input.hpp"
#include "trace/report.hpp"

namespace longhaul::bench {

/// What one schedule came to, over its iterations; complete on rank 0.
struct PipelineMeasurement {
  int first_iteration = 0;
  ScheduleRecord predicted;
  /// What the same orders are predicted to take with the slow devices of run.stragglers, which
  /// `predicted` knows nothing of; absent: there are none.
  std::optional<Duration> straggling{};
  ScheduleRecord measured;  ///< of the iteration whose makespan is the median
  std::vector<DeviceMemory> memory;
  std::vector<double> makespans_ns;
  SampleSummary summary;
  Checks checks;                            ///< of all ranks and iterations, warm-up included
  std::vector<std::string> wrong_messages;  ///< the first few that `checks` counts
  LeaseCost lease;
  std::int64_t transfers = 0;
  Duration transfer_total{}, transfer_longest{};

  [[nodiscard]] double difference_percent() const;
  /// To `straggling`, which must be there.
  [[nodiscard]] double straggling_difference_percent() const;
};

/// Where the rows of finished iterations go, and who hears of progress.
struct PipelineSinks {
  std::filesystem::path directory;  ///< empty: nowhere
  ClockOffset clock;
  std::function<void(const std::string& schedule)> iteration_done;
};

/// What is kept of an iteration.
struct IterationOutcome {
  IterationReport report;
  std::vector<ResourceUse> resources;  ///< all but devices
};

/// Runs one schedule on its links, iteration by iteration; collects what they say. Every call is
/// collective.
class ScheduleRun {
public:
  /// `planned` was lowered on `scenario`; both outlive this. `position` is its place in the run's
  /// list: it names the files of its iterations.
  ScheduleRun(Ranks& ranks, const PlannedSchedule& planned, const Scenario& scenario, int position,
              const EngineOptions& options, const PipelineSinks& sinks);

  /// Iterations below 0 warm up and leave nothing behind. Of the others rank 0 gets the times of
  /// all ranks' ops, from the first op's start on.
  OpTimes iterate(int iteration);
  /// Call once, behind the last iteration.
  [[nodiscard]] PipelineMeasurement conclude();

private:
  void add(const IterationResult& result);
  OpTimes keep(int iteration, OpTimes& times);
  void summarize_outcomes();

  Ranks& ranks_;
  const PlannedSchedule& planned_;
  const Scenario& scenario_;
  int position_;
  const PipelineSinks& sinks_;
  bool emulates_;
  TimedDevice device_;
  Engine engine_;
  Duration longest_wait_;
  PipelineMeasurement measurement_;
  std::vector<WrongMessage> wrong_;         ///< of this rank, the first few
  std::vector<IterationOutcome> outcomes_;  ///< on rank 0
};

}  // namespace longhaul::bench
