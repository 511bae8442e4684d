#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/transport.hpp"
#include "harness/collectives/member_numbers.hpp"
#include "plan/steps/collective_steps.hpp"

namespace longhaul::harness {

/// A member's part of a collective, played message by message over a transport as fast as that
/// carries them: no link is emulated, nothing is checked meanwhile. Numbers are f32.
///
/// A message travels in segments that fit into a core's cache. Where its numbers lie together it is
/// sent from where they are; what takes over goes where it belongs; what adds goes to a small
/// memory of its own, segment by segment, and is added up from there at once, or as a whole where
/// the numbers below it are still to leave.
class StepRunner {
public:
  /// Both outlive it; `self` is a member, and the collective's size is size_in_numbers().
  StepRunner(const plan::Collective& collective, const plan::CollectiveSteps& steps, int self,
             BufferUse use);
  /// Memory that it takes on a rank, without messages on their way.
  [[nodiscard]] static Bytes memory_of(const plan::Collective& collective, BufferUse use);

  /// Fills in what this member brings.
  void begin_iteration(int iteration);
  /// All members together. `waiting` is told of what has not come.
  void run(comm::Transport& transport, const WhileWaiting& waiting);
  /// Items that this member should have got, and did not, in the last iteration.
  [[nodiscard]] std::int64_t wrong_items() const { return numbers_.wrong_items(); }

private:
  struct Send {
    std::uint32_t message = 0;
    std::vector<ItemPart> parts;
    std::vector<float> packed{};
    std::size_t under_way = 0;  ///< segments
  };
  /// What becomes of arriving segments.
  enum class Arrival : std::uint8_t { to_its_place, added_at_once, kept };
  struct Receive {
    std::uint32_t message = 0;
    std::vector<ItemPart> parts;
    bool together = false;  ///< its numbers lie together
    PlaceAfter after{};
    std::vector<float> scratch{};
    std::size_t size = 0, segments = 0, posted_segments = 0, arrived_segments = 0;
    Arrival how = Arrival::kept;
    bool placed = false;
  };
  struct Stream {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::size_t next_send = 0, first_open = 0;
  };
  struct Request {
    std::uint32_t stream = 0, index = 0, segment = 0;
    bool is_send = false;
  };

  void add_streams();
  void settle_shape(Receive& receive) const;
  void reset();
  [[nodiscard]] bool is_free(const Receive& receive) const;
  bool post_sends(comm::Transport& transport, std::uint32_t stream);
  bool post_receives(comm::Transport& transport, std::uint32_t stream);
  void prepare(Receive& receive);
  void post_segment(comm::Transport& transport, const Request& request);
  void arrive(comm::Transport& transport, const Request& request);
  bool place_arrivals(Stream& stream);
  [[nodiscard]] std::span<const float> numbers_of(Send& send);
  [[nodiscard]] std::vector<float> take_memory(std::size_t size);
  void place(Receive& receive);

  const plan::Collective& collective_;
  const plan::CollectiveSteps& steps_;
  int self_;
  std::unique_ptr<float[]> input_, work_;
  MemberNumbers numbers_;
  std::vector<Stream> streams_;
  MessageProgress progress_;
  std::unordered_map<comm::RequestId, Request> requests_;
  std::vector<std::vector<float>> memories_;  ///< of messages that are over, for the next
  std::size_t unfinished_ = 0;
};

}  // namespace longhaul::harness
