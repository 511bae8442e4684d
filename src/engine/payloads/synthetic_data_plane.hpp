#pragma once

#include <unordered_map>
#include <vector>

#include "engine/payloads/collective_data_plane.hpp"
#include "engine/payloads/data_plane.hpp"

namespace longhaul::engine {

/// Payloads that follow from seed and id (Payloads), capped; collectives of synthetic numbers, as
/// one call or as messages (CollectiveDataPlane). Every byte is checked where it arrives, sums at
/// the end of the iteration.
class SyntheticDataPlane final : public DataPlane {
public:
  /// `plan` outlives this. `largest`: cap on the bytes really sent.
  SyntheticDataPlane(const Plan& plan, Rank self, std::uint64_t seed, Bytes largest);

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

private:
  using Room = std::vector<std::byte>;
  struct Numbers {
    std::vector<std::int64_t> mine, result;
  };
  [[nodiscard]] Payload take_room(std::size_t size);
  /// nullptr: the message is no step of a collective.
  [[nodiscard]] CollectiveDataPlane* plane_of(OpId message) const;
  [[nodiscard]] std::int64_t contribution(OpId collective, Rank member, std::size_t at) const;
  /// Position of this rank among the collective's members.
  [[nodiscard]] std::size_t place_of(OpId collective) const;
  [[nodiscard]] bool is_side_by_side(OpId collective,
                                     const std::vector<std::int64_t>& result) const;
  [[nodiscard]] bool is_transposed(OpId collective, const std::vector<std::int64_t>& result) const;
  [[nodiscard]] bool is_sum(OpId collective, const std::vector<std::int64_t>& result) const;

  const Plan& plan_;
  Rank self_;
  std::uint64_t seed_;
  Payloads payloads_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  /// Rooms to use again. Shared: payloads may outlive this.
  std::shared_ptr<std::vector<std::unique_ptr<Room>>> free_;
  std::unordered_map<OpId, Numbers> numbers_;  ///< by collective
  /// By collective that is messages; nullptr where this rank is no member.
  std::vector<std::unique_ptr<CollectiveDataPlane>> in_steps_;
};

}  // namespace longhaul::engine
