#pragma once

#include "device/cuda/queue_device.hpp"

namespace longhaul::device {

/// Blocks that take their modelled time on the device: one thread of it looks at its clock.
class CudaTimedDevice final : public QueueDevice {
public:
  /// `credit`: a block that begins later than it could have is shorter by that, up to here.
  CudaTimedDevice(int index, Duration credit, int depth = 2);
  ~CudaTimedDevice() override { wait_for_all(); }

private:
  void enqueue(const Block& block, cuda::Stamps& stamps) override;
  [[nodiscard]] bool is_timed() const override { return true; }
  [[nodiscard]] cudaStream_t stream() const override { return stream_.get(); }

  Duration credit_;
  cuda::Stream stream_;
  cuda::DeviceBuffer free_since_;
};

}  // namespace longhaul::device
