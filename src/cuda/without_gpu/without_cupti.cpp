#include "base/error.hpp"
#include "cuda/accelerator.hpp"
#include "cuda/task_trace.hpp"

namespace longhaul::cuda {

TaskTrace::TaskTrace() {
  fail("no tasks can be traced ({}). Configure where cupti.h lies beside CUDA, or trace no tasks.",
       built_with_cuda() ? "built without CUPTI" : why_no_accelerator());
}

TaskTrace::~TaskTrace() = default;

// Never reached: there is no object.
void TaskTrace::start() { recording_ = true; }

std::uint64_t TaskTrace::begin_range() { return recording_ ? 1 : 0; }

void TaskTrace::end_range() { recording_ = false; }

ActivityRecords TaskTrace::stop() {
  recording_ = false;
  return {};
}

}  // namespace longhaul::cuda
