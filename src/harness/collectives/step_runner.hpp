#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/transport.hpp"
#include "harness/collectives/step_numbers.hpp"
#include "plan/steps/collective_steps.hpp"

namespace longhaul::harness {

/// A member's part of a collective, played message by message over a transport as fast as that
/// carries them: no link is emulated, nothing is checked meanwhile. Numbers are f32.
///
/// A message whose numbers lie together is sent from where they are. What takes over goes where it
/// belongs, what adds goes to a memory of its own first.
class StepRunner {
public:
  /// Both outlive it; `self` is a member, and the collective's size is size_in_numbers().
  StepRunner(const plan::Collective& collective, const plan::CollectiveSteps& steps, int self,
             BufferUse use);
  /// Memory that it takes on a rank, without messages on their way.
  [[nodiscard]] static Bytes memory_of(const plan::Collective& collective, BufferUse use);

  /// Fills in what this member brings.
  void begin_iteration(int iteration);
  /// All members together.
  void run(comm::Transport& transport);
  /// Items that this member should have got, and did not, in the last iteration.
  [[nodiscard]] std::int64_t wrong_items() const;

private:
  /// Numbers of one item in one piece, where they lie.
  struct Part {
    std::uint32_t item = 0;
    std::size_t first = 0, size = 0;
  };
  struct Send {
    std::uint32_t message = 0;
    std::vector<Part> parts;
    std::vector<float> packed{};
  };
  struct Receive {
    std::uint32_t message = 0;
    std::vector<Part> parts;
    bool together = false;  ///< its numbers lie together
    /// Own messages that must have left, arrivals that must be in place before it: they touch the
    /// same items.
    std::vector<std::uint32_t> left_before{}, placed_before{};
    std::vector<float> scratch{};
    bool direct = false;  ///< on its way to where it belongs
    bool posted = false, arrived = false, placed = false;
  };
  struct Stream {
    std::vector<Send> sends;
    std::vector<Receive> receives;
    std::size_t next_send = 0, first_open = 0;
  };
  struct Request {
    std::uint32_t stream = 0, index = 0;
    bool is_send = false;
  };

  [[nodiscard]] std::vector<Part> parts_of(const plan::StepMessage& message) const;
  void add_constraints(const Stream& stream, Receive& receive) const;
  void reset();
  [[nodiscard]] bool is_ready(const Send& send) const;
  [[nodiscard]] bool is_free(const Receive& receive) const;
  bool post_sends(comm::Transport& transport, std::uint32_t stream);
  bool post_receives(comm::Transport& transport, std::uint32_t stream);
  bool place_arrivals(Stream& stream);
  [[nodiscard]] std::span<const float> numbers_of(Send& send);
  [[nodiscard]] std::vector<float> take_memory(std::size_t size);
  void place(Receive& receive);
  void take_over_own();
  [[nodiscard]] char& in_work(const Part& part, int piece);
  [[nodiscard]] const float* source_of(const Part& part, int piece);

  const plan::Collective& collective_;
  const plan::CollectiveSteps& steps_;
  int self_;
  BufferUse use_;
  int iteration_ = 0;
  std::size_t count_;  ///< numbers of the memory
  std::unique_ptr<float[]> input_, work_;
  std::vector<Stream> streams_;
  std::vector<char> in_work_;               ///< by piece, item: `work_` has it; otherwise `input_`
  std::vector<char> sent_, left_, placed_;  ///< by message
  std::unordered_map<comm::RequestId, Request> requests_;
  std::vector<std::vector<float>> memories_;  ///< of messages that are over, for the next
  std::size_t unfinished_ = 0;
};

}  // namespace longhaul::harness
