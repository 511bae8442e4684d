#include "cuda/accelerator.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul {

std::unique_ptr<Math> make_cuda_math(int /*index*/) { refuse_without_cuda(); }

std::string accelerator_notes(const Math& /*math*/) { return {}; }

}  // namespace longhaul
