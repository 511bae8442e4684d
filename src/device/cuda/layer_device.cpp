#include "device/cuda/layer_device.hpp"

namespace longhaul::cuda {

LayerDevice::LayerDevice(int index, BlockWork& work, cudaStream_t compute, int depth)
    : QueueDevice{index, depth}, work_{work}, compute_{compute} {}

/// Spins for the rest of a message's latency, after the block before (appendix F.1).
void LayerDevice::enqueue(const Block& block, Stamps& stamps) {
  spin_until(block.not_before, compute_);
  stamp(&stamps.begin, compute_);
  work_.run(block.op);
  stamp(&stamps.end, compute_);
}

}  // namespace longhaul::cuda
