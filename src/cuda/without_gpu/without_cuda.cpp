#include "base/error.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul::cuda {

bool built_with_cuda() { return false; }

std::vector<AcceleratorInfo> accelerators() { return {}; }

std::string why_no_accelerator() { return "built without CUDA"; }

void refuse_without_cuda() {
  fail(
      "no CUDA device can be used ({}). Configure with -DLONGHAUL_WITH_CUDA=ON where nvcc is, or "
      "use --device cpu.",
      why_no_accelerator());
}

Mark begin_mark(const std::string& /*name*/) { return {}; }

void end_mark(Mark /*mark*/) {}

}  // namespace longhaul::cuda
