#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "cuda/device_clock.hpp"
#include "cuda/handles.hpp"
#include "cuda/spin.hpp"
#include "engine/device.hpp"

namespace longhaul::device {

/// Blocks on a stream, stamped by the device before and after each. The host looks at pinned
/// memory alone; nothing waits. Belongs to the thread that makes it.
class QueueDevice : public engine::Device {
public:
  [[nodiscard]] int depth() const final { return depth_; }
  void begin_iteration(int iteration) override;
  void start(OpId op, TimePoint begin, Duration duration) final;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) final;
  [[nodiscard]] TimePoint next_event() const final;
  [[nodiscard]] Duration poll_interval() const final;

protected:
  struct Block {
    OpId op{};
    std::uint64_t not_before = 0;  ///< device time
    Duration duration{};
  };
  QueueDevice(int index, int depth);
  /// Gives the block to `stream`, between stamps.
  virtual void enqueue(const Block& block, cuda::Stamps& stamps) = 0;
  /// The block's stamps are there.
  virtual void ended(OpId /*op*/) {}
  /// Is `duration` how long the block will take?
  [[nodiscard]] virtual bool is_timed() const = 0;
  [[nodiscard]] virtual cudaStream_t stream() const = 0;
  /// Before what blocks write to goes away: a run that ends early leaves some on the device.
  void wait_for_all() const {
    if (!given_.empty()) cuda::report(cudaStreamSynchronize(stream()), "ending blocks");
  }

private:
  struct QueuedBlock {
    OpId op{};
    std::size_t slot = 0;
    TimePoint expected = kNever;  ///< end
    Duration duration{};
  };
  void look_for_errors(OpId op, TimePoint at);

  int index_, depth_;
  cuda::DeviceClock& clock_;
  cuda::PinnedMemory<cuda::Stamps> stamps_;
  std::size_t next_slot_ = 0;
  std::deque<QueuedBlock> given_;
  bool overdue_ = false;  ///< the first of them
  TimePoint looked_for_errors_{};
};

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
