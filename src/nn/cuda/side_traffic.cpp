#include "nn/cuda/side_traffic.hpp"

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "cuda/handles.hpp"
#include "nn/cuda/cuda_tensor_ops.hpp"
#include "nn/cuda/kernels/kernels.hpp"

namespace longhaul::nn {
namespace {

/// Events of one stream, which are used again after clear().
class CudaMarks final : public WorkMarks {
public:
  explicit CudaMarks(CudaTensorOps& math) : math_{math} {}

  void enter() override { cuda::use_device(math_.device()); }
  void mark() override {
    if (used_ == events_.size()) events_.emplace_back(cuda::Timing::on);
    events_[used_++].record(math_.stream());
  }
  [[nodiscard]] std::size_t count() const override { return used_; }
  void wait_for(std::size_t number) override {
    LONGHAUL_ASSERT(number < used_, "mark {} of {}", number, used_);
    events_[number].wait_on_host();
  }
  [[nodiscard]] std::vector<double> seconds_since(const WorkMarks& origin) override {
    const cuda::Event& begin = dynamic_cast<const CudaMarks&>(origin).events_.at(0);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < used_; ++i) {
      events_[i].wait_on_host();
      float milliseconds = 0;
      cuda::check(cudaEventElapsedTime(&milliseconds, begin.get(), events_[i].get()));
      seconds.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    return seconds;
  }
  void clear() override { used_ = 0; }

private:
  CudaTensorOps& math_;
  std::vector<cuda::Event> events_;
  std::size_t used_ = 0;
};

/// Number i of what comes from the host has byte i % 251.
constexpr std::size_t kByteCycle = 251;

class CudaTraffic final : public SideTraffic {
public:
  CudaTraffic(CudaTensorOps& math, TrafficKind kind, std::size_t bytes)
      : math_{math}, kind_{kind}, bytes_{bytes}, to_{bytes} {
    const ArrayView target = view_of(to_);
    math_.zero(target);
    if (kind == TrafficKind::from_pinned) {
      pinned_.emplace(bytes);
      fill(pinned_->span());
    } else if (kind == TrafficKind::from_pageable) {
      pageable_.resize(bytes);
      fill(pageable_);
    } else {
      from_.emplace(bytes);
      math_.fill_random(1, 1, view_of(*from_));
    }
    math_.finish();
  }
  ~CudaTraffic() override {
    cuda::report(cudaStreamSynchronize(math_.stream()), "waiting for copies");
  }

  void pass() override {
    if (kind_ == TrafficKind::sum)
      return add_on_few(math_.stream(), kSumBlocks, view_of(to_), view_of(*from_), view_of(to_));
    const void* from = kind_ == TrafficKind::copy          ? from_->data()
                       : kind_ == TrafficKind::from_pinned ? pinned_->data()
                                                           : pageable_.data();
    cuda::check(cudaMemcpyAsync(
        to_.data(), from, bytes_,
        kind_ == TrafficKind::copy ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice,
        math_.stream()));
  }

  [[nodiscard]] std::vector<std::byte> arrived() override {
    std::vector<std::byte> bytes(bytes_);
    math_.finish();
    cuda::check(cudaMemcpy(bytes.data(), to_.data(), bytes_, cudaMemcpyDeviceToHost));
    return bytes;
  }

private:
  static void fill(std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(i % kByteCycle);
  }
  static ArrayView view_of(const cuda::DeviceBuffer& buffer) {
    return {buffer.data(), buffer.bytes() / 2, NumberType::bf16};
  }

  CudaTensorOps& math_;
  TrafficKind kind_;
  std::size_t bytes_;
  cuda::DeviceBuffer to_;
  std::optional<cuda::DeviceBuffer> from_;
  std::optional<cuda::PinnedMemory<std::byte>> pinned_;
  std::vector<std::byte> pageable_;
};

}  // namespace

std::unique_ptr<WorkMarks> make_work_marks(TensorOps& math) {
  if (auto* const gpu = dynamic_cast<CudaTensorOps*>(&math))
    return std::make_unique<CudaMarks>(*gpu);
  return make_host_marks(math);
}

std::unique_ptr<SideTraffic> make_side_traffic(TensorOps& math, TrafficKind kind,
                                               std::size_t bytes) {
  LONGHAUL_ASSERT(bytes > 0 && bytes % 2 == 0, "{} bytes of bf16", bytes);
  auto* const gpu = dynamic_cast<CudaTensorOps*>(&math);
  if (gpu == nullptr) fail("copies beside layers are a GPU's. Use --device cuda.");
  return std::make_unique<CudaTraffic>(*gpu, kind, bytes);
}

}  // namespace longhaul::nn
