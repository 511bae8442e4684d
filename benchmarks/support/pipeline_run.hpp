#pragma once

#include <functional>
#include <optional>

#include "cli/record.hpp"
#include "runtime/clock_sync.hpp"
#include "schedule/memory.hpp"
#include "support/pipeline_input.hpp"
#include "trace/report.hpp"

namespace longhaul::bench {

/// What one schedule came to, over its iterations; complete on rank 0.
struct PipelineMeasurement {
  ScheduleRecord predicted;
  ScheduleRecord measured;  ///< of the iteration whose makespan is the median
  std::vector<DeviceMemory> memory;
  std::vector<double> makespans_ns;
  SampleSummary summary;
  Checks checks;  ///< of all ranks and iterations, warm-up included
  LeaseCost lease;
  std::int64_t transfers = 0;
  Duration transfer_total{}, transfer_longest{};

  [[nodiscard]] double difference_percent() const;
};

/// Where the rows of finished iterations go, and who hears of progress.
struct PipelineSinks {
  std::filesystem::path directory;  ///< empty: nowhere
  ClockOffset clock;
  std::function<void(const std::string& schedule)> iteration_done;
};

/// Collective: warm-up, then the iterations of schedule `position` of the input.
[[nodiscard]] PipelineMeasurement run_schedule(Ranks& ranks, const PipelineInput& input,
                                               std::size_t position, const EngineOptions& options,
                                               const PipelineSinks& sinks);

}  // namespace longhaul::bench
