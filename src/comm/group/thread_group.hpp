#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/group/group_backend.hpp"

namespace longhaul::comm {

/// Set when one of the threads that are ranks cannot go on: the others wait for it no longer.
using RanksFailed = std::atomic<bool>;

/// Threads of this process that act together: what all of them share. Members are numbered from 0.
/// Waits sleep, tell `on_wait` about it, and throw Error once one of the ranks has failed.
class ThreadGroup {
public:
  ThreadGroup(int size, std::shared_ptr<RanksFailed> failed)
      : size_{size}, failed_{std::move(failed)} {}

  [[nodiscard]] int size() const { return size_; }

  /// A member's part of a round.
  struct Part {
    std::vector<std::byte> bytes;
    std::shared_ptr<void> object;
  };
  struct Round {
    std::uint64_t number = 0;
    std::vector<Part> parts;  ///< index: member
    int missing = 0;
  };
  /// Collective: everyone brings a part and gets all of them, which no one changes any more.
  [[nodiscard]] std::shared_ptr<const Round> exchange(int member, Part mine, const OnWait& on_wait);

  /// The new group of those `size` members that ask with the same key: made by the first, forgotten
  /// by the last. Does not wait.
  using Key = std::vector<std::int64_t>;
  [[nodiscard]] std::shared_ptr<ThreadGroup> found(const Key& key, int size);

  void send(int from, int to, std::int64_t word);
  [[nodiscard]] std::int64_t receive(int from, int to);

private:
  struct Founded {
    std::shared_ptr<ThreadGroup> group;
    int missing = 0;
  };
  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, const OnWait& on_wait, Done done);

  const int size_;
  const std::shared_ptr<RanksFailed> failed_;
  std::mutex mutex_;  ///< of all below
  std::condition_variable changed_;
  std::shared_ptr<Round> round_;
  std::uint64_t rounds_ = 0;
  std::map<Key, Founded> founded_;
  std::map<std::pair<int, int>, std::deque<std::int64_t>> words_;
};

/// This thread's place among the threads that are ranks.
struct ThreadRank {
  std::shared_ptr<ThreadGroup> group;  ///< of all of them
  int rank = 0;
};
/// Null where this thread is no such rank: then the process is one, over MPI.
[[nodiscard]] const ThreadRank* this_thread_rank();
/// This process has ranks that are threads now.
[[nodiscard]] bool has_thread_ranks();

/// Runs `body` once on each of `ranks` threads, of which the caller is the first: within it
/// mpi::Communicator::world() are these. Returns when all have ended. What one of them throws ends
/// the waits of the others, and is thrown here: the first that came.
void run_thread_ranks(int ranks, const std::function<void()>& body);

/// `rank` of `group` as a Communicator sees it.
[[nodiscard]] GroupBackend::Handle make_thread_backend(std::shared_ptr<ThreadGroup> group,
                                                       int rank);

}  // namespace longhaul::comm
