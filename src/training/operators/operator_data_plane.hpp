#pragma once

#include <unordered_map>

#include "engine/payloads/data_plane.hpp"
#include "training/operators/operator_work.hpp"

namespace longhaul::training {

/// Messages of an iteration with its collectives: activations and gradients between stages, whole,
/// and the numbers of collectives. That their content is right is what the gradients prove
/// (operator_check.hpp).
class OperatorDataPlane final : public engine::DataPlane {
public:
  /// Both outlive this.
  OperatorDataPlane(const Plan& plan, OperatorWork& work) : plan_{plan}, work_{work} {}

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] engine::Payload make(OpId send) override;
  [[nodiscard]] engine::Payload room(OpId recv) override;
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override;
  void deliver(OpId recv, engine::Payload payload) override;
  /// Makes numbers others that are as likely, so that only gradients tell.
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

private:
  const Plan& plan_;
  OperatorWork& work_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  std::unordered_map<OpId, std::size_t> room_bytes_;  ///< by receive
};

}  // namespace longhaul::training
