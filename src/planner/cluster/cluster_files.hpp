#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/cluster/cluster.hpp"

namespace longhaul::planner {

/// A datacenter whose GPUs jobs hold.
struct ClusterSite {
  std::string name;
  int gpus = 0;
};

/// What jobs share: GPUs of one pool, or of sites.
struct ClusterGpus {
  int count = 0;                     ///< of all sites together
  std::vector<ClusterSite> sites{};  ///< empty: one pool
};

/// "east:8+west:4": how a table of rates names GPUs of sites; those with none are left out.
[[nodiscard]] std::string place_text(const SiteGpus& place, const std::vector<ClusterSite>& sites);

/// Jobs with the rates of their models, and what a reader of the result should know of them.
struct ClusterInput {
  std::vector<ClusterJob> jobs;
  std::vector<std::string> notes;  ///< counts that are slower than fewer GPUs, or do not run
};

/// `jobs`: CSV with columns job, submit_s, model, global_batch, iterations, and deadline_s
/// (absolute as submit_s; empty: best effort) in any order. `table`: model, global_batch, gpus,
/// iterations_per_second; a rate of 0 says that it does not run there; with sites also `sites`, as
/// place_text() has them: where the GPUs lie, or nothing for any one of the sites. Throws Error
/// "source:line: ..." for what is neither, for a job whose model and batch are not in the table or
/// need more than there is, and for a deadline that is not after the submission.
[[nodiscard]] ClusterInput read_cluster_input(std::string_view jobs, const std::string& jobs_source,
                                              std::string_view table,
                                              const std::string& table_source,
                                              const ClusterGpus& gpus);

}  // namespace longhaul::planner
