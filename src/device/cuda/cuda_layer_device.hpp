#pragma once

#include "device/cuda/queue_device.hpp"
#include "engine/block_work.hpp"

namespace longhaul::device {

/// Real blocks: what their work gives to the compute stream runs between two stamps.
class CudaLayerDevice final : public QueueDevice {
public:
  /// `work` gives its calls to `compute`; both outlive this.
  CudaLayerDevice(int index, engine::BlockWork& work, cudaStream_t compute, int depth = 2);
  ~CudaLayerDevice() override { wait_for_all(); }

private:
  void enqueue(const Block& block, cuda::Stamps& stamps) override;
  void ended(OpId op) override { work_.ended(op); }
  [[nodiscard]] bool is_timed() const override { return false; }
  [[nodiscard]] cudaStream_t stream() const override { return compute_; }

  engine::BlockWork& work_;
  cudaStream_t compute_;
};

}  // namespace longhaul::device
