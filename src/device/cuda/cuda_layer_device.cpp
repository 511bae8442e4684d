#include "device/cuda/cuda_layer_device.hpp"

namespace longhaul::device {

CudaLayerDevice::CudaLayerDevice(int index, engine::BlockWork& work, cudaStream_t compute,
                                 int depth)
    : QueueDevice{index, depth}, work_{work}, compute_{compute} {}

/// Spins for the rest of a message's latency, after the block before (appendix F.1).
void CudaLayerDevice::enqueue(const Block& block, cuda::Stamps& stamps) {
  cuda::spin_until(block.not_before, compute_);
  cuda::stamp(&stamps.begin, compute_);
  work_.run(block.op);
  cuda::stamp(&stamps.end, compute_);
}

}  // namespace longhaul::device
