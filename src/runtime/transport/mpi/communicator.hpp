#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

namespace longhaul::mpi {

/// Owns one communicator. Move-only; a moved-from Communicator holds MPI_COMM_NULL. Its errors are
/// returned, not fatal: calls go through check(). The blocking operations sleep while they wait
/// (more ranks than cores), and tell `on_wait` how long they have waited, so that a watchdog can
/// end the run.
class Communicator {
public:
  /// Collective over `parent`. Never adopts MPI_COMM_WORLD itself, so freeing is always legal.
  [[nodiscard]] static Communicator duplicate(MPI_Comm parent);
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  /// Collective over `*this`. Ranks with one `color` share a communicator, ordered by `key`.
  [[nodiscard]] Communicator split(int color, int key) const;
  /// Collective over `*this`: the ranks that share memory with this one, in order of rank.
  [[nodiscard]] Communicator split_by_host() const;
  /// Collective over `members` (ranks of `*this`, ascending) alone.
  [[nodiscard]] Communicator subgroup(std::span<const int> members, int tag) const;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] MPI_Comm get() const { return comm_; }  ///< ownership stays here

  /// Called while a blocking operation below sleeps; may throw or end the run.
  void on_wait(std::function<void(std::chrono::nanoseconds)> callback) {
    on_wait_ = std::move(callback);
  }

  void barrier() const;
  /// Everyone gets root's text.
  [[nodiscard]] std::string broadcast(std::string text, int root = 0) const;
  /// Root gets every rank's bytes, one behind the other in order of rank; `counts` says how many.
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> mine,
                                              std::vector<int>& counts, int root = 0) const;
  /// Everyone gets one number of each rank, in order of rank.
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::int64_t mine) const;
  [[nodiscard]] std::int64_t sum(std::int64_t mine) const;
  [[nodiscard]] std::int64_t maximum(std::int64_t mine) const;
  [[nodiscard]] std::int64_t minimum(std::int64_t mine) const;

private:
  explicit Communicator(MPI_Comm comm);
  void wait(MPI_Request request) const;
  [[nodiscard]] std::int64_t reduce(std::int64_t mine, MPI_Op operation) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::function<void(std::chrono::nanoseconds)> on_wait_;
};

}  // namespace longhaul::mpi
