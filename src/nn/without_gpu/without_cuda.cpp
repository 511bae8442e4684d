#include "cuda/accelerator.hpp"
#include "nn/cuda/factory.hpp"
#include "nn/cuda/side_traffic.hpp"

namespace longhaul::nn {

std::unique_ptr<TensorOps> make_cuda_tensor_ops(int /*index*/, cuda::Urgency /*urgency*/) {
  cuda::refuse_without_cuda();
}

std::string accelerator_notes(const TensorOps& /*math*/) { return {}; }

std::unique_ptr<WorkMarks> make_work_marks(TensorOps& math) { return make_host_marks(math); }

std::unique_ptr<SideTraffic> make_side_traffic(TensorOps& /*math*/, TrafficKind /*kind*/,
                                               std::size_t /*bytes*/) {
  cuda::refuse_without_cuda();
}

}  // namespace longhaul::nn
