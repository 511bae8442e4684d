#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/payloads/data_plane.hpp"
#include "plan/stream_values.hpp"
#include "training/parts/replica_work.hpp"
#include "training/parts/stage_messages.hpp"

namespace longhaul::training {

/// Messages carry the sets of parts as they are encoded, nothing else: a receiver knows what the
/// payload says. Those of pipelines carry tensors between blocks.
class SetDataPlane final : public engine::DataPlane {
public:
  /// Both outlive this.
  /// `activations`: what tensors between stages travel as; none: as they are, bit for bit.
  SetDataPlane(const Plan& plan, ReplicaWork& work,
               const std::optional<ActivationCompression>& activations = std::nullopt)
      : plan_{plan}, work_{work}, sizes_{plan} {
    if (activations) activations_.emplace(*activations);
  }

  /// The next run begins with this iteration.
  void begin_at(int iteration) { first_ = iteration; }
  /// Nominal sizes from an iteration on that has not begun.
  void change(const plan::StreamSetting& setting) { sizes_.append(setting); }
  /// What messages between stages leave for those of later iterations. While no op runs.
  void save(StateWriter& to) const {
    if (activations_) activations_->save(to);
  }
  void load(StateReader& from) {
    if (activations_) activations_->load(from);
  }
  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] engine::Payload make(OpId send) override;
  [[nodiscard]] engine::Payload room(OpId recv) override;
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override;
  void deliver(OpId recv, engine::Payload payload) override;
  /// A set loses its last block, or its last number is another; it can be decoded all the same, and
  /// its envelope stays as it was.
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override;
  [[nodiscard]] bool exchanged(OpId collective) override;

  /// By this rank: of sets, and of the tensors of pipelines.
  struct Sent {
    std::int64_t messages = 0, payload_bytes = 0;  ///< of sets, as the transport carries them
    std::int64_t encoded_bytes = 0;                ///< of these, sets; the rest is envelopes
    std::int64_t between_stages = 0;               ///< of tensors
    /// Of both, between datacenters; `wan_between_stages`: of these, of tensors.
    std::int64_t wan_payload_bytes = 0, wan_encoded_bytes = 0, wan_nominal_bytes = 0;
    std::int64_t wan_between_stages = 0;
  };
  /// Where the engine carries payloads of its own, `most` bytes of each at most, in the place of
  /// sets and tensors: counts those that rank `self` sent in iterations `first` to `past` - 1, as
  /// the plan has them. Nothing of them is encoded.
  void count_planned(Rank self, int first, int past, Bytes most);
  /// Since the last call.
  [[nodiscard]] Sent take_sent() { return std::exchange(sent_, {}); }

private:
  struct Room {
    std::vector<std::byte> bytes;
    int iteration = 0;
  };

  /// A tensor that travels in another format than blocks have it in.
  struct CodedRoom {
    std::vector<std::byte> bytes;
    engine::Payload tensor;
  };

  [[nodiscard]] int next_iteration(OpId op);
  [[nodiscard]] engine::Payload tensor_to_send(OpId send);
  void count_tensor(OpId send, int iteration, std::int64_t carried);
  [[nodiscard]] engine::Payload room_for_tensor(OpId recv);

  const Plan& plan_;
  ReplicaWork& work_;
  std::optional<StageMessages> activations_;
  plan::StreamValues sizes_;
  int first_ = 0;
  std::unordered_map<OpId, int> iterations_;            ///< the next one of a send or receive
  std::unordered_map<OpId, std::size_t> coming_;        ///< numbers of a tensor, by receive
  std::unordered_map<OpId, std::vector<int>> awaited_;  ///< iterations of which room was asked for
  std::uint32_t run_ = 0;
  Sent sent_;
};

}  // namespace longhaul::training
