#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/cluster/cluster.hpp"

namespace longhaul::planner {

/// Jobs with the rates of their models, and what a reader of the result should know of them.
struct ClusterInput {
  std::vector<ClusterJob> jobs;
  std::vector<std::string> notes;  ///< counts that are slower than fewer GPUs, or do not run
};

/// `jobs`: CSV with columns job, submit_s, model, global_batch, iterations, and deadline_s
/// (absolute as submit_s; empty: best effort) in any order. `table`: model, global_batch, gpus,
/// iterations_per_second; a rate of 0 says that it does not run there. Throws Error
/// "source:line: ..." for what is neither, for a job whose model and batch are not in the table or
/// need more than `gpus`, and for a deadline that is not after the submission.
[[nodiscard]] ClusterInput read_cluster_input(std::string_view jobs, const std::string& jobs_source,
                                              std::string_view table,
                                              const std::string& table_source, int gpus);

}  // namespace longhaul::planner
