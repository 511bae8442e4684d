#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/listed_enum.hpp"
#include "comm/group/host_ranks.hpp"
#include "engine/device.hpp"

namespace longhaul::device {

/// How long what a StreamDevice computes takes: as long as it does, or, where its plan says more,
/// as long as that.
#define LONGHAUL_PACES(X) X(real, "real") X(modelled, "modelled")
LONGHAUL_LISTED_ENUM(Pace, LONGHAUL_PACES);

/// Computes the blocks and host tasks of a rank in a stream, each on a thread that is free: as many
/// threads as have run at a time. At the end of one it rings this rank's doorbell.
class StreamDevice final : public engine::Device {
public:
  /// Both outlive this.
  StreamDevice(engine::StreamWork& work, const comm::HostRanks& host_ranks, Pace pace);
  ~StreamDevice() override;

  [[nodiscard]] bool runs_several() const override { return true; }
  void meets(OpId op, int version) override { versions_[op] = version; }
  void start(OpId op, TimePoint begin, Duration duration) override;
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override;
  [[nodiscard]] TimePoint next_event() const override;

  /// Ops with a time of their plan that have ended since the last call, and those of them whose
  /// work took longer.
  struct Overruns {
    std::int64_t ops = 0, longer = 0;
  };
  [[nodiscard]] Overruns take_overruns() { return std::exchange(overruns_, {}); }
  /// What is started next is of this iteration. While nothing runs.
  void begin_at(int iteration) {
    first_ = iteration;
    iterations_.clear();
  }

private:
  struct Job {
    OpId op{};
    int iteration = 0, version = -1;
    TimePoint begin{};
    Duration duration{};
    TimePoint computed{};  ///< when its work was over
    std::exception_ptr problem;
  };
  void work_on(const std::stop_token& stop);
  [[nodiscard]] TimePoint due(const Job& job) const;

  engine::StreamWork& work_;
  const comm::HostRanks& host_ranks_;
  Pace pace_;
  std::unordered_map<OpId, int> versions_;  ///< told, of ops that have not started
  int first_ = 0;
  std::unordered_map<OpId, int> iterations_;  ///< by op: the next one
  std::vector<Job> computed_;                 ///< their work is over, and they were not told
  Overruns overruns_;

  mutable std::mutex mutex_;  ///< of what follows
  std::condition_variable_any changed_;
  std::deque<Job> waiting_, done_;
  std::size_t idle_ = 0;
  std::vector<std::jthread> threads_;  ///< last: they use the others
};

}  // namespace longhaul::device
