#include "base/error.hpp"
#include "runtime/accelerator.hpp"

namespace longhaul {
namespace {

constexpr const char* kReason = "built without CUDA";

[[noreturn]] void refuse() {
  fail(
      "no CUDA device can be used ({}). Configure with -DLONGHAUL_WITH_CUDA=ON where nvcc is, or "
      "use --device cpu.",
      kReason);
}

}  // namespace

bool built_with_cuda() { return false; }

std::vector<AcceleratorInfo> accelerators() { return {}; }

std::string why_no_accelerator() { return kReason; }

std::unique_ptr<Math> make_cuda_math(int /*index*/) { refuse(); }

}  // namespace longhaul
