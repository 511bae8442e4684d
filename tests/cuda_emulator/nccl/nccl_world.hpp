#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <sys/types.h>

namespace longhaul::on_host {

constexpr int kMostRanks = 64;
constexpr std::size_t kChunk = 64U << 10U;

/// A message on its way from one rank to another, chunk by chunk. Idle, until the sender announces
/// it; the receiver takes it up, and says when it has all.
struct Box {
  enum State : std::uint32_t { idle, announced, taken_up, done };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint64_t> bytes, filled, emptied;
  alignas(64) std::array<std::byte, kChunk> data;
};

/// Memory that the ranks of a communicator share, a file without a name. Begins as zeros.
struct World {
  std::atomic<std::int32_t> joined, arrived, round;
  std::array<std::atomic<std::int32_t>, kMostRanks> process, device, gone;
  alignas(64) std::array<std::array<std::byte, kChunk>, kMostRanks> stage;
  Box boxes[1];  ///< ranks * ranks of them
};

/// This process's view of a World.
class SharedWorld {
public:
  /// Address of a world, as part of ncclUniqueId.
  struct Id {
    pid_t process;
    int file;
    std::uint64_t number;  ///< of this process: numbers of files come again
  };
  [[nodiscard]] static Id make_id();
  /// Throws nothing; is_open() says whether it worked.
  SharedWorld(const Id& id, int ranks);
  ~SharedWorld();
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  [[nodiscard]] bool is_open() const { return world_ != nullptr; }
  [[nodiscard]] World& operator*() const { return *world_; }
  [[nodiscard]] World* operator->() const { return world_; }
  [[nodiscard]] Box& box(int from, int to) const { return world_->boxes[from * ranks_ + to]; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// All have come: the file needs to be found no more.
  static void close_id(const Id& id);
  /// Has this rank left, or its process died?
  [[nodiscard]] bool is_gone(int rank) const;

private:
  int ranks_;
  std::size_t bytes_;
  World* world_ = nullptr;
};

}  // namespace longhaul::on_host
