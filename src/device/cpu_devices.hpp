#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/group/host_ranks.hpp"
#include "engine/device.hpp"

namespace longhaul::device {

/// Blocks that take their modelled time and no processor: the engine sleeps until they are over.
class TimedDevice final : public engine::Device {
public:
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override { return running_ ? running_->due : kNever; }

private:
  std::optional<engine::FinishedBlock> running_;
};

/// Computes blocks on a thread of its own, for as long as they take. At the end of a block it rings
/// this rank's doorbell, so that the engine wakes at once.
class LayerDevice final : public engine::Device {
public:
  /// Both outlive this.
  LayerDevice(engine::BlockWork& work, const comm::HostRanks& host_ranks);
  ~LayerDevice() override;

  /// The plan's duration is ignored.
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override { return kNever; }

private:
  enum class State { idle, running, done };
  void work(const std::stop_token& stop);

  engine::BlockWork& work_;
  const comm::HostRanks& host_ranks_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  State state_ = State::idle;
  OpId op_{};
  TimePoint due_{};
  std::exception_ptr problem_;
  std::jthread thread_;  ///< last: it uses the others
};

}  // namespace longhaul::device
