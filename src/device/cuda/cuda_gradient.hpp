#pragma once

#include "cuda/handles.hpp"
#include "device/cuda/select_blocks.hpp"
#include "device/device_gradient.hpp"

namespace longhaul::device {

/// DeviceGradient on one GPU: 16 bytes of its memory and 8 of pinned memory for each number, and 16
/// for each of `room` numbers that may be taken.
class CudaGradient final : public DeviceGradient {
public:
  CudaGradient(int index, std::int64_t count, std::int64_t room);
  ~CudaGradient() override;

  void load(std::span<const float> gradient) override;
  void restart() override;
  void select(const GradientChoice& choice) override;
  void copy_within() override;
  void copy_out() override;
  void copy_in() override;
  void finish() override;
  [[nodiscard]] double seconds_of(const std::function<void()>& work) override;
  [[nodiscard]] TakenBlocks taken() override;
  [[nodiscard]] std::vector<float> left() override;
  [[nodiscard]] std::span<float> pinned() override { return out_.span(); }

private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(float); }
  [[nodiscard]] const float* next_gradient();
  [[nodiscard]] SelectedVector vector_of(const GradientChoice& choice, const float* gradient) const;
  [[nodiscard]] SelectionRoom room_for(int block) const;
  void copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) const;
  [[nodiscard]] compress::SparseSet set_of(std::size_t blocks) const;

  int index_;
  std::size_t count_, room_;  ///< numbers
  cuda::Stream stream_;
  cuda::Event begin_{cuda::Timing::on}, end_{cuda::Timing::on};
  cuda::DeviceBuffer gradient_, opposite_, residual_, copy_;
  cuda::DeviceBuffer sums_, tiles_, brought_values_, values_, brought_blocks_, blocks_;
  cuda::PinnedMemory<float> out_, in_;
  GradientChoice choice_;
  bool opposite_is_next_ = false;
};

}  // namespace longhaul::device
