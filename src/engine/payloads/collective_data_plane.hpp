#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// The numbers of a collective that is played message by message: a vector of bytes that members
/// bring, and that arriving messages are added to (modulo 256) or take over. A payload says which
/// message of which iteration it is, and whose contributions each of its items holds; receivers
/// check that, and after an iteration every byte that the member was to get.
///
/// What arrives is put in place when the member's own messages of that step have been made, in the
/// order in which it came: sums of whole numbers are the same in any order.
class CollectiveDataPlane final : public DataPlane {
public:
  /// `stepped` outlives this; its vector is kept with `size` bytes. A rank that is no member brings
  /// and gets nothing.
  CollectiveDataPlane(const SteppedCollective& stepped, Bytes size, Rank self);
  /// Memory that it takes on a rank.
  [[nodiscard]] static Bytes memory_of(const plan::Collective& collective);

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] std::vector<LateVerdict> end_iteration() override;
  [[nodiscard]] Payload make(OpId send) override;
  [[nodiscard]] Payload room(OpId recv) override;
  [[nodiscard]] Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                        PayloadId& found) override;
  void deliver(OpId recv, Payload payload) override;
  void corrupt(OpId send, FaultKind how, Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

  /// Items of the last iteration that this rank should have got and did not, or with wrong numbers.
  [[nodiscard]] std::int64_t wrong_items() const { return wrong_items_; }

private:
  struct Label;
  struct Arrival {
    std::uint32_t message;
    Payload payload;
  };
  struct Place {
    std::size_t first, size;
  };
  /// Where an item of one piece lies in `numbers_`; the whole item where piece is -1.
  [[nodiscard]] Place place_of(std::uint32_t item, int piece) const;
  template <typename Visit>
  void for_each_item(const plan::StepMessage& message, Visit&& visit) const;
  [[nodiscard]] std::size_t payload_size(const plan::StepMessage& message) const;
  [[nodiscard]] Label label_of(std::uint32_t message) const;
  /// What a member brings of an item are the bytes along its numbers, each with this in exclusive
  /// or.
  [[nodiscard]] std::uint8_t mask_of(int member, std::uint32_t item) const;
  void put_in_place(std::int32_t stream);
  void put_in_place(const Arrival& arrival);
  [[nodiscard]] bool is_right(std::uint32_t item) const;

  plan::Collective collective_;  ///< of the size that is kept
  std::shared_ptr<const plan::CollectiveSteps> shared_steps_;
  const plan::CollectiveSteps& steps_;
  int self_ = -1;                                       ///< member
  std::unordered_map<OpId, std::uint32_t> message_of_;  ///< by op of this member
  std::vector<std::vector<std::uint32_t>> own_;  ///< by stream: messages that this member sends
  std::size_t words_;                            ///< of a set of members
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  std::vector<std::uint8_t> along_;  ///< of the largest item, the first
  std::vector<std::uint8_t> numbers_;
  std::vector<std::uint64_t> holds_;           ///< by piece, item: whose contributions
  std::vector<std::size_t> made_;              ///< by stream: of `own_`
  std::vector<std::vector<Arrival>> waiting_;  ///< by stream
  std::int64_t wrong_items_ = 0;
};

}  // namespace longhaul::engine
