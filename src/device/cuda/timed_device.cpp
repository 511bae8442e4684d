#include "device/cuda/timed_device.hpp"

namespace longhaul::cuda {

TimedDevice::TimedDevice(int index, Duration credit, int depth)
    : QueueDevice{index, depth}, credit_{credit}, free_since_{sizeof(std::uint64_t)} {
  check(cudaMemsetAsync(free_since_.data(), 0, free_since_.bytes(), stream_.get()));
}

void TimedDevice::enqueue(const Block& block, Stamps& stamps) {
  timed_block({block.not_before, static_cast<std::uint64_t>(block.duration.count()),
               static_cast<std::uint64_t>(credit_.count())},
              free_since_.as<std::uint64_t>(), &stamps, stream_.get());
}

}  // namespace longhaul::cuda
