#include "device/cuda/cuda_timed_device.hpp"

namespace longhaul::device {

CudaTimedDevice::CudaTimedDevice(int index, Duration credit, int depth)
    : QueueDevice{index, depth}, credit_{credit}, free_since_{sizeof(std::uint64_t)} {
  cuda::check(cudaMemsetAsync(free_since_.data(), 0, free_since_.bytes(), stream_.get()));
}

void CudaTimedDevice::enqueue(const Block& block, cuda::Stamps& stamps) {
  cuda::timed_block({block.not_before, static_cast<std::uint64_t>(block.duration.count()),
                     static_cast<std::uint64_t>(credit_.count())},
                    free_since_.as<std::uint64_t>(), &stamps, stream_.get());
}

}  // namespace longhaul::device
