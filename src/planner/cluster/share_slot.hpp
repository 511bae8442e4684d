#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cluster/free_gpus.hpp"

namespace longhaul::planner {

/// A job that was admitted and has not ended.
struct RunningJob {
  std::size_t job = 0;                 ///< of the list
  std::optional<Duration> deadline{};  ///< none: best effort
  double left = 0;                     ///< iterations
  std::vector<GpuRate> rates{};        ///< that the policy takes
  int gpus = 0;                        ///< that it holds now
  Duration idle_until{};               ///< it restarts until then
  GpuPlan plan{};                      ///< elasticflow: that meets its deadline
};

[[nodiscard]] double rate_of(const RunningJob& job, int gpus);

/// Does every running job still meet its deadline with this one among them?
[[nodiscard]] bool admit(const std::vector<RunningJob>& running, const RunningJob& added,
                         const ClusterOptions& options, std::int64_t slot);

/// Sets what each job holds from the slot on. Gives the slot in which the plan of one changes;
/// one that never comes where there is none.
[[nodiscard]] std::int64_t share_slot(std::vector<RunningJob>& running,
                                      const ClusterOptions& options, std::int64_t slot);

}  // namespace longhaul::planner
