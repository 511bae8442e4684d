#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "training/operators/operator_work.hpp"

namespace longhaul::training {

/// Messages of an iteration with its collectives: activations and gradients between stages, whole,
/// and the numbers of collectives. That their content is right is what the gradients prove
/// (operator_check.hpp).
class OperatorDataPlane final : public engine::DataPlane {
public:
  /// Both outlive this. `fault`: what this rank's payloads may be asked to suffer.
  OperatorDataPlane(const Plan& plan, OperatorWork& work,
                    const std::optional<engine::Fault>& fault = {});

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] engine::Payload make(OpId send) override;
  [[nodiscard]] engine::Payload room(OpId recv) override;
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override;
  void deliver(OpId recv, engine::Payload payload) override;
  /// Makes numbers others that are as likely: what is wrong here must show in the gradients.
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

private:
  using Numbers = std::vector<float>;
  void keep(OpId send, const engine::Payload& payload);
  [[nodiscard]] Numbers numbers_in(OpId message, const engine::Payload& payload) const;
  [[nodiscard]] const Numbers& kept(OpId send, engine::FaultKind how);

  const Plan& plan_;
  OperatorWork& work_;
  bool keeps_by_lane_, keeps_by_send_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  std::unordered_map<OpId, std::size_t> room_bytes_;  ///< by receive
  struct Sent {
    Numbers last, before;
  };
  std::unordered_map<LaneId, Sent> sent_on_;  ///< where payloads are to be swapped
  std::unordered_map<OpId, Sent> sent_by_;    ///< where one is to be that of the iteration before
};

}  // namespace longhaul::training
