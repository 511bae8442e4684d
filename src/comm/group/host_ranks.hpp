#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/index.hpp"
#include "base/listed_enum.hpp"
#include "comm/group/communicator.hpp"

namespace longhaul::comm {

/// Zeroed memory that the ranks of one host share. Its name is gone before the constructor returns,
/// so nothing is left over however the ranks end. Ranks that are threads share their process's.
class SharedMemory {
public:
  /// Collective over `host`, the communicator of one host's ranks.
  SharedMemory(const Communicator& host, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }

private:
  std::shared_ptr<void> of_threads_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Phase of its run that a rank is in, as the other ranks of its host see it. The names are for
/// reports.
#define LONGHAUL_PHASES(X) \
  X(set_up, "setting up")  \
  X(barrier, "at the barrier of") X(running, "in") X(between, "behind") X(finished, "finished")
LONGHAUL_LISTED_ENUM(Phase, LONGHAUL_PHASES);
/// The last event of a rank's op.
#define LONGHAUL_OP_EVENTS(X) \
  X(none, "nothing yet") X(posted, "posted") X(started, "started") X(ended, "ended")
LONGHAUL_LISTED_ENUM(OpEvent, LONGHAUL_OP_EVENTS);

/// A rank's state as the others of its host see it: a doorbell, and what it is doing, so that a
/// dead rank's last op is known too. Plain atomics, each written by its own rank (the doorbell by
/// anyone).
struct alignas(64) RankStatus {
  std::atomic<std::uint32_t> doorbell;
  std::atomic<std::uint32_t> asleep;
  std::atomic<std::uint32_t> alerts;            ///< how often a message was announced
  std::atomic<std::uint32_t> unfinished_sends;  ///< the rank wants to know of completed receives
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> rank;
  std::atomic<Phase> phase;
  std::atomic<std::int32_t> schedule;
  std::atomic<std::int32_t> iteration;
  std::atomic<std::int64_t> progress;  ///< stamp of the last progress
  std::atomic<std::uint32_t> last_op;
  std::atomic<OpEvent> last_event;
  std::atomic<std::uint32_t> waits_for;  ///< the op without which its next block cannot start
  std::atomic<std::uint32_t> unposted;   ///< that op is a receive which the rank has not posted
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The ranks of one host: their slots in shared memory, and their doorbells. A rank reads its
/// doorbell, looks for work, and sleeps until the doorbell is not what it read: no ring is lost.
///     const std::uint32_t seen = host_ranks.doorbell();
///     if (!find_work()) host_ranks.sleep(seen, now() + 20ms);  // here
///     host_ranks.ring_doorbell(Rank{0});                       // on another rank of the host
class HostRanks {
public:
  /// Collective over `world`. `ranks_per_host` above 0 pretends that so many ranks are on a host,
  /// one host after the other: to try out several hosts on one machine.
  explicit HostRanks(const Communicator& world, int ranks_per_host = 0);

  [[nodiscard]] const Communicator& host() const { return host_; }
  /// As for Communicator, while the ranks of this host wait for each other.
  void on_wait(std::function<void(Duration)> callback) { host_.on_wait(std::move(callback)); }
  [[nodiscard]] Rank self() const { return self_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(local_of_.size()); }
  [[nodiscard]] int local_ranks() const { return host_.size(); }
  [[nodiscard]] bool is_local(Rank rank) const { return local_of_[index(rank)] >= 0; }
  /// Lowest rank of the host that `rank` is on: names the host.
  [[nodiscard]] Rank host_of(Rank rank) const { return host_of_[index(rank)]; }
  [[nodiscard]] bool all_local() const { return local_ranks() == ranks(); }
  /// The status of a rank; `rank` must be one of this host.
  [[nodiscard]] RankStatus& slot(Rank rank) const { return slots_[at(local_of_[index(rank)])]; }
  [[nodiscard]] RankStatus& mine() const { return slot(self_); }
  /// Ranks of this host, ascending.
  [[nodiscard]] const std::vector<Rank>& local() const { return local_; }

  /// Wakes a rank of this host; nothing for others.
  void ring_doorbell(Rank rank) const;
  /// Announces a message that is about to leave, so that the rank is awake when it comes.
  void alert(Rank rank) const;
  /// Wakes it only if it waits for sends of its own to be taken.
  void ring_doorbell_if_sending(Rank rank) const;
  [[nodiscard]] std::uint32_t doorbell() const;
  /// Sleeps until `until`, a ring after `seen` was read, or a signal.
  void sleep(std::uint32_t seen, TimePoint until) const;

  /// True for the first rank of this host that asks: it is the one to report why the run ends.
  [[nodiscard]] bool claim_report() const;

private:
  Communicator host_;
  Rank self_;
  std::vector<int> local_of_;  ///< index: rank; -1 on other hosts
  std::vector<Rank> local_;
  std::vector<Rank> host_of_;  ///< index: rank
  SharedMemory memory_;
  RankStatus* slots_ = nullptr;
  std::atomic<std::uint32_t>* reporter_ = nullptr;
};

}  // namespace longhaul::comm
