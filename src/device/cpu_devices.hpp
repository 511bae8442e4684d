#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "device/slowed_time.hpp"
#include "engine/device.hpp"

namespace longhaul::device {

/// Blocks that take their modelled time and no processor: the engine sleeps until they are over.
/// Those of several lanes run beside each other.
class TimedDevice final : public engine::Device {
public:
  void begin_iteration(int iteration) override;
  [[nodiscard]] bool slow_by(const plan::Overlap& overlap) override;
  void message_holds(NetworkLevel level, TimePoint from, TimePoint to) override;
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override;
  [[nodiscard]] bool runs_several() const override { return true; }

private:
  struct Running {
    engine::FinishedBlock block;
    Duration work{};  ///< at full speed
  };
  void add(const Running& running);

  std::vector<Running> running_;  ///< by when they are due, the last first
  plan::Overlap overlap_;
  std::optional<SlowedTime> slowed_;  ///< of this iteration; where blocks slow beside messages
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
