#include "cuda/accelerator.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::nn {

std::unique_ptr<TensorOps> make_cuda_tensor_ops(int /*index*/) { cuda::refuse_without_cuda(); }

std::unique_ptr<TensorOps> make_urgent_cuda_tensor_ops(int /*index*/) {
  cuda::refuse_without_cuda();
}

std::string accelerator_notes(const TensorOps& /*math*/) { return {}; }

}  // namespace longhaul::nn
