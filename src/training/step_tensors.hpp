#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "nn/memory.hpp"
#include "plan/plan.hpp"

namespace longhaul::training {

/// The numbers that a rank's collectives exchange message by message (Plan::stepped). Each works in
/// a row of numbers of its stage. What comes takes its place there at once; what is to be added
/// waits for the message that carries the sum on, or for the end, and is then added in the order of
/// the collective's messages: two runs give the same bits.
class StepTensors {
public:
  /// `math` belongs to these numbers alone, and `memory` is of it: calls wait for it. All outlive
  /// this, and this outlives every payload.
  StepTensors(const Plan& plan, Rank self, nn::TensorOps& math, nn::DeviceMemory& memory);

  /// Where a collective of this rank works: all its numbers, in shards by member.
  void set_numbers(std::size_t collective, nn::ArrayView numbers);
  void begin_iteration();
  [[nodiscard]] engine::Payload make(OpId send);
  [[nodiscard]] engine::Payload room(OpId recv);
  void deliver(OpId recv, engine::Payload payload);
  /// Makes the payload's last number another.
  void corrupt(OpId send, const engine::Payload& payload);
  /// Adds what has come and was not sent on. After the last message.
  void finish();
  /// The same of one collective: after the last that comes here.
  void finish(std::size_t collective);

private:
  struct Pool;
  /// A range of numbers.
  struct Stretch {
    std::size_t first, count;
  };
  struct Mine {
    nn::ArrayView numbers;
    std::map<std::uint32_t, engine::Payload> to_add;  ///< by message
  };
  struct MessageRef {
    std::size_t collective;
    std::uint32_t message;
  };

  [[nodiscard]] const plan::StepMessage& message(MessageRef ref) const {
    return plan_.stepped[ref.collective].steps->messages[ref.message];
  }
  [[nodiscard]] std::vector<Stretch> stretches_of(MessageRef ref) const;
  [[nodiscard]] engine::Payload take_room(MessageRef ref);
  [[nodiscard]] nn::ArrayView view_of(MessageRef ref, const engine::Payload& payload) const;
  void put(MessageRef ref, const engine::Payload& payload);

  const Plan& plan_;
  nn::TensorOps& math_;
  nn::DeviceMemory& memory_;
  std::unordered_map<OpId, MessageRef> message_of_;  ///< by op of this rank
  std::map<std::size_t, Mine> mine_;                 ///< by collective
  std::shared_ptr<Pool> pool_;                       ///< rooms to use again
};

}  // namespace longhaul::training
