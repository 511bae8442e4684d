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
  std::vector<SiteGpus> places{};      ///< of each rate; empty: one pool
  int gpus = 0;                        ///< that it holds now
  int choice = -1;                     ///< the rate that it has now; -1: it holds no GPU
  Duration idle_until{};               ///< it restarts until then
  GpuPlan plan{};                      ///< elasticflow: that meets its deadline
};

[[nodiscard]] inline GpuChoices choices_of(const RunningJob& job) {
  return {job.rates, job.places};
}

/// Iterations a second with what it holds, which must be some.
[[nodiscard]] inline double rate_of(const RunningJob& job) {
  return job.rates[static_cast<std::size_t>(job.choice)].rate;
}

/// Those of a job's rates that the policy takes: that the cluster has GPUs for, and with
/// GpuCounts::best no place that another of no more GPUs anywhere is as fast as.
void take_rates(RunningJob& running, const ClusterJob& job, const ClusterOptions& options);

/// Does every running job still meet its deadline with this one among them?
[[nodiscard]] bool admit(const std::vector<RunningJob>& running, const RunningJob& added,
                         const ClusterOptions& options, std::int64_t slot);

/// Sets what each job holds from the slot on. Gives the slot in which the plan of one changes;
/// one that never comes where there is none.
[[nodiscard]] std::int64_t share_slot(std::vector<RunningJob>& running,
                                      const ClusterOptions& options, std::int64_t slot);

}  // namespace longhaul::planner
