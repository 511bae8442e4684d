#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/task_trace.hpp"
#include "harness/profile/operator_probe.hpp"

namespace longhaul::harness {

/// A kernel, a copy or a fill of memory that an operator runs on a GPU. Medians over its samples.
struct TracedTask {
  std::string kernel;  ///< demangled, whole
  double median_ns = 0;
  double gap_ns = 0;  ///< after it, before the next one begins; of the last one 0
};

/// The tasks of an operator in the order of their starts. Samples that ran other ones than most did
/// (another number, other kernels) are left out, and counted.
struct TracedOperator {
  std::vector<TracedTask> tasks;
  std::size_t samples = 0, others = 0;
  std::string other{};  ///< of the first of `others`: "1 task instead of 2"
  [[nodiscard]] double sum_ns() const;
};

/// Tasks of the operators of a profile.
struct TaskProfile {
  std::vector<OperatorTimes> operators;  ///< their times under the trace
  std::vector<TracedOperator> traced;    ///< of each of these
  /// By name and shape, all blocks together: tasks.csv.
  std::vector<std::pair<std::string, TracedOperator>> table;
  std::size_t dropped = 0, unread_buffers = 0;
  std::size_t untimed = 0;  ///< tasks without times
  /// What the host takes to begin an operator and to see its end: the smallest operator's time
  /// without a trace, less its tasks.
  double host_ns = 0;
};

/// Gives records to the operators in whose ranges their launches lie; all others are left alone.
[[nodiscard]] TaskProfile task_profile(std::vector<OperatorTimes> operators,
                                       const cuda::ActivityRecords& records);

/// Runs operator_times() under the trace, after the timed ones: `samples` of each operator. On
/// ranks without a trace the same work, and nothing comes of it.
[[nodiscard]] TaskProfile trace_tasks(nn::TensorOps& math, const nn::ModelShape& shape, int samples,
                                      cuda::TaskTrace* trace);

/// "operator,kernel,position,median_ns,gap_ns": docs/profile.md.
[[nodiscard]] std::string tasks_csv(const TaskProfile& profile);

/// What was lost or left out of it, in words.
[[nodiscard]] std::vector<std::string> task_notes(const TaskProfile& profile);

/// An operator's tasks and the gaps between them against its own time, which was measured without a
/// trace.
struct TaskSum {
  const OperatorTimes* timed = nullptr;
  const TracedOperator* traced = nullptr;
  double traced_median_ns = 0;  ///< of the operator under the trace
  double median_ns = 0, sum_ns = 0;
  /// (sum + `extra_ns`) / median - 1.
  [[nodiscard]] double difference(double extra_ns = 0) const {
    return (sum_ns + extra_ns) / median_ns - 1;
  }
};
/// In the order of `timed`; both arguments outlive it.
[[nodiscard]] std::vector<TaskSum> task_sums(const std::vector<OperatorTimes>& timed,
                                             const TaskProfile& profile);

/// "rms_norm_rows" of "void longhaul::nn::(anonymous namespace)::rms_norm_rows<float>(float*)"; a
/// name without parameters as it is.
[[nodiscard]] std::string short_kernel_name(std::string_view name);

}  // namespace longhaul::harness
