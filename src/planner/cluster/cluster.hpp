#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/units.hpp"

namespace longhaul::planner {

/// Who gets GPUs when; docs/jobs.md has each.
#define LONGHAUL_CLUSTER_POLICIES(X) \
  X(elasticflow, "elasticflow")      \
  X(edf, "edf")                      \
  X(fifo, "fifo")                    \
  X(srtf, "srtf")                    \
  X(least_laxity, "least-laxity")
LONGHAUL_LISTED_ENUM(ClusterPolicy, LONGHAUL_CLUSTER_POLICIES);

/// Which numbers of GPUs a policy takes: `best`: those of which each is faster than all smaller
/// ones; `largest`: all that the table has, though more may be slower.
#define LONGHAUL_GPU_COUNTS(X) X(best, "best") X(largest, "largest")
LONGHAUL_LISTED_ENUM(GpuCounts, LONGHAUL_GPU_COUNTS);

/// What ElasticFlow does with a curve, and what schedulers without one do.
[[nodiscard]] constexpr GpuCounts usual_counts(ClusterPolicy policy) {
  return policy == ClusterPolicy::elasticflow ? GpuCounts::best : GpuCounts::largest;
}

[[nodiscard]] constexpr double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

/// A number of GPUs that a job may hold, and its iterations a second with them.
struct GpuRate {
  int gpus = 0;
  double rate = 0;
};

/// GPUs of each site that a job holds together; index: as ClusterOptions::sites.
using SiteGpus = std::vector<int>;

struct ClusterJob {
  std::string name;
  Duration submit{};
  std::optional<Duration> deadline;  ///< as submit; none: best effort
  double iterations = 0;
  std::vector<GpuRate> rates;  ///< ascending GPUs, at least one; all rates above 0
  /// Where the GPUs of each rate lie. Empty: in the one pool, where each number stands once.
  std::vector<SiteGpus> places{};
};

struct ClusterOptions {
  int gpus = 0;              ///< of all sites together
  std::vector<int> sites{};  ///< GPUs of each; empty: one pool
  ClusterPolicy policy = ClusterPolicy::elasticflow;
  GpuCounts counts = GpuCounts::best;
  Duration slot = std::chrono::seconds{240};  ///< GPUs are handed out at multiples of it
  Duration restart{};     ///< no progress after each change of a job's GPUs but the first
  bool deadlines = true;  ///< false: of no job
};

/// GPUs that a job holds from a time on.
struct GpuGrant {
  Duration from{};
  int gpus = 0;
  SiteGpus at{};  ///< of sites
};

struct JobOutcome {
  bool admitted = false;
  bool met = false;  ///< finished, within its deadline if it has one
  std::optional<Duration> start;
  std::optional<Duration> end;   ///< finished, or ended at its deadline
  std::vector<GpuGrant> grants;  ///< of changing GPUs; the last gives all back
};

struct ClusterOutcome {
  std::vector<JobOutcome> jobs;        ///< as the jobs
  std::optional<double> met_ratio;     ///< of the jobs with deadlines; none: no such job
  std::optional<double> mean_seconds;  ///< from submission to the end, of those that finished
  Duration makespan{};                 ///< from the first submission to the last end
  double utilization = 0;              ///< GPU time that jobs held, of all in the makespan
};

/// Plays jobs that are submitted over time on a cluster of equal GPUs. A job holds 0 GPUs or a
/// number of its rates, changed at multiples of the slot alone; GPUs of one that ends between two
/// of them are free from the next on. Jobs past their deadline are ended.
///
/// elasticflow (Gu et al., ASPLOS 2023): a job is admitted where progressive filling gives all
/// admitted ones enough GPUs in time: in the order of deadlines, each the least number that its
/// deadline allows in what the others leave, as late as possible. What is left of a slot goes, a
/// step at a time, to who has none, then to who saves most GPU time by a GPU more. Without
/// `restart` an admitted job does not miss its deadline.
///
/// edf, fifo, srtf (shortest remaining time), least_laxity: in that order each takes the largest of
/// its numbers that is free; all are admitted. With sites, of the places whose GPUs are free: with
/// GpuCounts::best the fastest (then that of fewest GPUs, then where it is), otherwise that of most
/// GPUs (then the fastest). elasticflow fills what is free of each site: in each slot the fastest
/// place of at most so many GPUs; in a slot that fails to be filled anew what was planned stays.
///
/// Each job must have a number of at most `options.gpus`, and its deadline after its submission.
[[nodiscard]] ClusterOutcome play_cluster(const std::vector<ClusterJob>& jobs,
                                          const ClusterOptions& options);

/// The rates that raise the rate: each faster than all with fewer GPUs.
[[nodiscard]] std::vector<GpuRate> rising(const std::vector<GpuRate>& rates);

}  // namespace longhaul::planner
