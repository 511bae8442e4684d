#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "engine/payloads/relay_buffers.hpp"
#include "training/layer_work.hpp"
#include "training/step_tensors.hpp"

namespace longhaul::training {

/// Messages carry the tensors that blocks make and need, whole; collectives sum gradients and
/// gather weights. Which message one is stands in its header; that its content is right is what the
/// gradients prove (gradient_check.hpp).
class TensorDataPlane final : public engine::DataPlane {
public:
  /// All outlive this. `fault`: what this rank's payloads may be asked to suffer. `step_math`
  /// and its `memory`: for collectives that are messages, and for nothing else.
  TensorDataPlane(const Plan& plan, Rank self, LayerWork& work, nn::TensorOps& step_math,
                  nn::DeviceMemory& memory, std::optional<engine::Fault> fault = {});

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] engine::Payload make(OpId send) override;
  [[nodiscard]] engine::Payload room(OpId recv) override;
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override;
  void deliver(OpId recv, engine::Payload payload) override;
  [[nodiscard]] std::vector<engine::LateVerdict> end_iteration() override;
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

private:
  [[nodiscard]] nn::ArrayView view_of(const engine::Payload& payload) const;
  [[nodiscard]] std::vector<float> numbers_of(const engine::Payload& payload);

  const Plan& plan_;
  LayerWork& work_;
  engine::RelayTable forwards_;
  StepTensors steps_;
  bool swaps_ = false;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  std::unordered_map<OpId, std::size_t> room_bytes_;  ///< by receive
  /// Where payloads are to be swapped: what each lane sent last, and before that.
  struct Sent {
    std::vector<float> last, before;
  };
  std::unordered_map<LaneId, Sent> sent_;
};

}  // namespace longhaul::training
