#pragma once

#include <utility>

#include "comm/group/group_backend.hpp"

namespace longhaul::comm {

/// Owns one group of ranks: processes, over a communicator of MPI, or threads of this process
/// (comm/group/thread_group.hpp). Move-only; a moved-from Communicator holds none. Errors of MPI
/// are returned, not fatal: calls go through check(). The blocking operations sleep while they wait
/// (more ranks than cores), and tell `on_wait` how long they have waited, so that a watchdog can
/// end the run.
class Communicator {
public:
  /// Collective over all ranks of this run: those of MPI_COMM_WORLD, or the threads that this one
  /// was started with.
  [[nodiscard]] static Communicator world();
  /// Collective over `*this`.
  [[nodiscard]] Communicator duplicate() const { return adopt(backend_->duplicate(on_wait_)); }

  /// Collective over `*this`. Ranks with one `color` share a communicator, ordered by `key`.
  [[nodiscard]] Communicator split(int color, int key) const {
    return adopt(backend_->split(color, key, on_wait_));
  }
  /// Collective over `*this`: the ranks that share memory with this one, in order of rank.
  [[nodiscard]] Communicator split_by_host() const {
    return adopt(backend_->split_by_host(on_wait_));
  }
  /// Collective over `members` (ranks of `*this`, ascending) alone.
  [[nodiscard]] Communicator subgroup(std::span<const int> members, int tag) const {
    return adopt(backend_->subgroup(members, tag));
  }

  [[nodiscard]] int rank() const { return backend_->rank(); }
  [[nodiscard]] int size() const { return backend_->size(); }
  /// Ownership stays here. MPI_COMM_NULL where the ranks are threads.
  [[nodiscard]] MPI_Comm get() const { return backend_->comm(); }
  /// The ranks are threads of this process.
  [[nodiscard]] bool is_of_threads() const { return get() == MPI_COMM_NULL; }

  /// Called while a blocking operation below sleeps; may throw or end the run.
  void on_wait(OnWait callback) { on_wait_ = std::move(callback); }

  void barrier() const { backend_->barrier(on_wait_); }
  /// Everyone gets root's text.
  [[nodiscard]] std::string broadcast(std::string text, int root = 0) const {
    return backend_->broadcast(std::move(text), root, on_wait_);
  }
  /// Root gets every rank's bytes, concatenated in order of rank; `counts` says how many.
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> mine,
                                              std::vector<int>& counts, int root = 0) const {
    return backend_->gather(mine, counts, root, on_wait_);
  }
  /// Everyone gets one number of each rank, in order of rank.
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::int64_t mine) const {
    return backend_->all_gather(mine, on_wait_);
  }
  [[nodiscard]] std::int64_t sum(std::int64_t mine) const {
    return backend_->reduce(mine, Reduction::sum, on_wait_);
  }
  [[nodiscard]] std::int64_t maximum(std::int64_t mine) const {
    return backend_->reduce(mine, Reduction::maximum, on_wait_);
  }
  [[nodiscard]] std::int64_t minimum(std::int64_t mine) const {
    return backend_->reduce(mine, Reduction::minimum, on_wait_);
  }

  /// One word to a rank, and from one, in order: the shortest way there is, which does not sleep
  /// where it waits inside MPI and tells no one that it waits.
  void send(std::int64_t word, int to) const { backend_->send(word, to); }
  [[nodiscard]] std::int64_t receive(int from) const { return backend_->receive(from); }

  /// Collective over threads: everyone gets what rank 0 made. Null where the ranks are processes.
  [[nodiscard]] std::shared_ptr<void> share(std::shared_ptr<void> of_first) const {
    return backend_->share(std::move(of_first), on_wait_);
  }

private:
  explicit Communicator(GroupBackend::Handle backend) : backend_{std::move(backend)} {}
  [[nodiscard]] static Communicator adopt(GroupBackend::Handle backend) {
    return Communicator{std::move(backend)};
  }

  GroupBackend::Handle backend_;
  OnWait on_wait_;
};

}  // namespace longhaul::comm
