#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What a GPU ran, task by task, by the activity records of CUPTI. src/cuda/cupti_trace.cpp answers
/// where CUDA and CUPTI were built in, src/cuda/without_gpu/without_cupti.cpp where not.
namespace longhaul::cuda {

/// A kernel, a copy or a fill of memory. Times are of CUPTI's clock, ns.
struct TaskActivity {
  std::uint32_t launch = 0;               ///< the call that began it: CUPTI's correlation id
  std::string name;                       ///< as the compiler spelt it; "memcpy DtoD", "memset"
  std::int64_t start_ns = 0, end_ns = 0;  ///< both 0: the GPU had no room to note them
};

/// A call of CUDA, and the range of TaskTrace that it was made in: CUPTI's external correlation.
struct LaunchInRange {
  std::uint32_t launch = 0;
  std::uint64_t range = 0;
};

/// Records as CUPTI hands them out: in no order.
struct ActivityRecords {
  std::vector<TaskActivity> tasks;
  std::vector<LaunchInRange> launches;
  std::size_t dropped = 0;         ///< that CUPTI had no room for
  std::size_t unread_buffers = 0;  ///< of CUPTI's that could not be read to their end
};

/// Records what the GPU of the calling thread does between start() and stop(). One at a time in a
/// process. Calls of CUDA take longer while it records, kernels do not.
class TaskTrace {
public:
  /// Loads CUPTI and records a task, as a trial. Throws Error that names what is missing: CUPTI,
  /// its permission, a GPU; or what else has the GPU (exit code 3; 2 where it is not built in).
  TaskTrace();
  ~TaskTrace();
  TaskTrace(const TaskTrace&) = delete;
  TaskTrace& operator=(const TaskTrace&) = delete;

  void start();
  /// The calls of this thread until end_range() are in the range that it returns, never 0.
  [[nodiscard]] std::uint64_t begin_range();
  void end_range();
  /// Waits for the device.
  [[nodiscard]] ActivityRecords stop();

private:
  bool recording_ = false;
};

}  // namespace longhaul::cuda
