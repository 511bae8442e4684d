#include "device/cuda/cuda_devices.hpp"

#include <algorithm>
#include <atomic>

#include "base/index.hpp"
#include "engine/options.hpp"

namespace longhaul::device {
namespace {

using namespace std::chrono_literals;

/// Between two looks at a block that may end at any time.
constexpr Duration kPoll = 20us;
/// Between two questions to the driver whether a block has failed: each costs about a microsecond.
constexpr Duration kErrorLook = 1ms;
/// Clocks drift apart by less than a microsecond meanwhile.
constexpr Duration kClockAge = 20ms;

std::uint64_t read(std::uint64_t& stamp) {
  return std::atomic_ref{stamp}.load(std::memory_order_acquire);
}

}  // namespace

QueueDevice::QueueDevice(int index, int depth)
    : index_{index},
      depth_{depth},
      clock_{cuda::DeviceClock::of(index)},
      stamps_{to_size(depth) + 1} {
  cuda::use_device(index);
  cuda::load_spin_kernels();
}

void QueueDevice::begin_iteration(int /*iteration*/) {
  cuda::use_device(index_);
  clock_.refresh(kClockAge);
}

void QueueDevice::start(OpId op, TimePoint begin, Duration duration) {
  cuda::Stamps& stamps = stamps_[next_slot_];
  stamps = {};
  TimePoint expected = kNever;
  if (is_timed()) {
    expected = begin + duration;
    if (!given_.empty()) expected = std::max(expected, given_.back().expected + duration);
  }
  try {
    enqueue({op, clock_.to_device(begin), duration}, stamps);
  } catch (const engine::DeviceError&) {
    throw;
  } catch (const std::exception& error) {
    throw engine::DeviceError{op, error.what()};
  }
  given_.push_back({op, next_slot_, expected, duration});
  next_slot_ = (next_slot_ + 1) % stamps_.size();
}

std::optional<engine::FinishedBlock> QueueDevice::finished(TimePoint at) {
  if (given_.empty()) return std::nullopt;
  const QueuedBlock first = given_.front();
  cuda::Stamps& stamps = stamps_[first.slot];
  const std::uint64_t end = read(stamps.end);
  if (end == 0) {
    overdue_ = !is_timed() || at >= first.expected;
    look_for_errors(first.op, at);
    return std::nullopt;
  }
  given_.pop_front();
  overdue_ = !is_timed();
  try {
    ended(first.op);
  } catch (const std::exception& error) {
    throw engine::DeviceError{first.op, error.what()};
  }
  // The host has seen it: where it does not seem so, the clocks are that far apart.
  const TimePoint over = std::min(clock_.to_host(end), now());
  return engine::FinishedBlock{first.op, over, std::min(clock_.to_host(stamps.begin), over),
                               is_timed() ? over - first.duration : kNever};
}

/// Errors of kernels stick to the device: a failed one never stamps.
void QueueDevice::look_for_errors(OpId op, TimePoint at) {
  if (at - looked_for_errors_ < kErrorLook) return;
  looked_for_errors_ = at;
  const cudaError_t code = cudaStreamQuery(stream());
  if (code == cudaErrorNotReady) return;
  try {
    cuda::check(code);
  } catch (const Error& error) {
    throw engine::DeviceError{op, error.what()};
  }
}

/// A block that is overdue gives no time: the watchdog counts from its last progress then.
TimePoint QueueDevice::next_event() const {
  return given_.empty() || overdue_ ? kNever : given_.front().expected;
}

Duration QueueDevice::poll_interval() const {
  return !given_.empty() && (overdue_ || !is_timed()) ? kPoll : Duration::zero();
}

CudaTimedDevice::CudaTimedDevice(int index, Duration credit, int depth)
    : QueueDevice{index, depth}, credit_{credit}, free_since_{sizeof(std::uint64_t)} {
  cuda::check(cudaMemsetAsync(free_since_.data(), 0, free_since_.bytes(), stream_.get()));
}

void CudaTimedDevice::enqueue(const Block& block, cuda::Stamps& stamps) {
  cuda::timed_block(
      {block.not_before, static_cast<std::uint64_t>(block.duration.count()),
       static_cast<std::uint64_t>(engine::most_credit(credit_, block.duration).count())},
      free_since_.as<std::uint64_t>(), &stamps, stream_.get());
}

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
