#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace longhaul::comm {

/// A virtual clock for threads that are ranks. One of them runs at a time; when all of them sleep
/// and no one's doorbell has rung, the arbiters decide what was asked for in this instant, and when
/// they have nothing left to decide, time moves to the earliest wake-up. So a run is the same every
/// time, and takes as long as its ranks compute.
///     comm::VirtualTime time{ranks, 1s};
///     comm::run_thread_ranks(ranks, [&] {
///       ...                                          // set up, by the host's clock
///       const comm::VirtualTime::Member member{time, rank};
///       engine.run(0);                               // by the virtual one
///     });
class VirtualTime {
public:
  /// Begins at `start`. Which rank runs first in an instant: the lowest (seed 0), or one drawn.
  VirtualTime(int ranks, TimePoint start, std::uint64_t seed = 0);
  ~VirtualTime();
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  /// While it exists, this thread lives by the clock. It waits for all ranks to have come, and may
  /// wait for the others in no other way than HostRanks::sleep().
  class Member {
  public:
    Member(VirtualTime& time, int rank);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

  private:
    VirtualTime& time_;
    std::size_t rank_;
  };

  [[nodiscard]] TimePoint now() const { return now_; }
  /// How often a rank was given its turn.
  [[nodiscard]] std::int64_t turns() const { return turns_; }

private:
  class Clock;
  struct RankState {
    std::unique_ptr<Clock> clock;
    std::condition_variable turn;
    bool here = false;
    const std::atomic<std::uint32_t>* word = nullptr;  ///< that it sleeps for
    std::uint32_t seen = 0;
    TimePoint until{};
  };
  static constexpr std::size_t kNoOne = ~std::size_t{0};

  void enter(std::size_t rank);
  void leave(std::size_t rank);
  void sleep(std::size_t rank, const std::atomic<std::uint32_t>& word, std::uint32_t seen,
             TimePoint until);
  void pass_turn();
  void wait_for_turn(std::size_t rank, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::size_t pick();
  bool decide();
  [[nodiscard]] TimePoint next_wake_up() const;
  [[nodiscard]] bool can_run(const RankState& state) const;

  std::mutex mutex_;  ///< of all below; `now_` and the arbiters are the running rank's
  std::vector<std::unique_ptr<RankState>> ranks_;
  std::vector<Arbiter*> arbiters_;
  std::size_t running_ = kNoOne;
  std::size_t missing_;
  TimePoint now_;
  Random random_;
  bool drawn_;
  std::int64_t turns_ = 0;
};

}  // namespace longhaul::comm
