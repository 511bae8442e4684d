#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "harness/collectives/member_numbers.hpp"

namespace longhaul::harness {

/// A member's part of a collective among ranks of one host, message by message, where members read
/// each other's numbers from memory that they share: a message is announced by a word, and its
/// receiver adds up (or takes over) from where the sender has it. Nothing is copied on the way, as
/// with XPMEM or between GPUs of a node, but where two members swap what they add up: each then
/// keeps a copy until its own has left. Numbers are f32.
class SharedRunner {
public:
  /// Collective over the members, ranks of `world` on one host. `collective` and `steps` outlive
  /// it; `self` is a member, and the collective's size is size_in_numbers(). Throws Error where the
  /// host has no room.
  SharedRunner(const plan::Collective& collective, const plan::CollectiveSteps& steps, int self,
               BufferUse use, const comm::Communicator& world);

  /// Fills in what this member brings.
  void begin_iteration(int iteration);
  /// All members together. Gives its core to others while it waits, and tells `waiting` of it.
  void run(const WhileWaiting& waiting);
  /// Items that this member should have got, and did not, in the last iteration.
  [[nodiscard]] std::int64_t wrong_items() const { return numbers_.wrong_items(); }

private:
  struct Send {
    std::uint32_t message = 0;
    std::vector<ItemPart> parts;
    bool left = false;
  };
  struct Receive {
    std::uint32_t message = 0;
    std::vector<ItemPart> parts;
    PlaceAfter after{};
    std::vector<float> kept{};  ///< what came while own numbers at its place were still to leave
    bool taken = false, placed = false;
  };
  struct Stream {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::size_t next_send = 0, first_to_leave = 0, first_open = 0;
  };
  /// On a line of its own: what has become of a message. See state_of().
  struct alignas(64) Word {
    std::atomic<std::uint64_t> state;
  };
  enum class State : std::uint64_t { in_input = 1, in_work = 2, taken = 3 };

  [[nodiscard]] float* memory_of(int member, bool is_input) const;
  [[nodiscard]] std::uint64_t state_of(State state) const;
  void add_streams();
  bool announce(Stream& stream);
  bool see_left(Stream& stream);
  bool take_arrivals(Stream& stream);
  bool take(Stream& stream, Receive& receive);
  void keep(Receive& receive, const float* memory);
  void place(Receive& receive, const float* memory);

  const plan::CollectiveSteps& steps_;
  int self_;
  std::size_t count_;  ///< numbers of one memory
  comm::Communicator members_;
  comm::SharedMemory memory_;
  MemberNumbers numbers_;
  std::vector<Stream> streams_;
  MessageProgress progress_;
  std::uint64_t epoch_ = 0;  ///< iterations begun; the same on all members
  std::size_t unfinished_ = 0;
};

}  // namespace longhaul::harness
