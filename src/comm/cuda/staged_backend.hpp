#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "comm/cuda/staged_collectives.hpp"

namespace longhaul::comm {

/// Payloads over the host's transport, in pieces. What lies in a device's memory goes through
/// pinned memory on either side, so that copies and messages overlap; or as it is, where the host's
/// transport takes device memory (an MPI that is CUDA-aware).
class StagedBackend final : public PayloadBackend {
public:
  enum class DeviceMemory { through_pinned, as_it_is };
  /// On device `index`, which must be this thread's. `host` outlives this.
  StagedBackend(Transport& host, int index, DeviceMemory how);

  [[nodiscard]] bool send(const PayloadSend& payload, PayloadDetails& details) override;
  void receive(const PayloadReceive& payload, std::size_t announced,
               const PayloadDetails& details) override;
  void collective(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                  const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override { host_.prepare_group(members); }

  [[nodiscard]] int tags() const override { return kTags; }
  void use_tags(int first) override { first_tag_ = first; }
  [[nodiscard]] bool host_done(const Completion& completion,
                               std::vector<Completion>& done) override;
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool busy() const override;
  [[nodiscard]] TimePoint next_event() const override { return lanes_.next_event(); }

private:
  /// Pieces of a payload have a tag of their own, so that those of several never mix: more of them
  /// are never under way between two ranks.
  static constexpr int kTags = 4096;
  struct Moving;
  using MovingHandle = std::shared_ptr<Moving>;

  [[nodiscard]] bool is_staged(const void* data) const;
  void send_piece(const MovingHandle& moving, std::size_t at);
  void receive_piece(const MovingHandle& moving, std::size_t at);
  void take_piece(const MovingHandle& moving, std::size_t at);
  void finish_one(const MovingHandle& moving);

  Transport& host_;
  DeviceMemory how_;
  Lanes lanes_;
  PinnedPool pinned_;
  StagedCollectives collectives_;
  int first_tag_ = 0, next_tag_ = 0;
  std::unordered_map<RequestId, std::function<void()>> at_host_;
  /// Staged payloads whose pieces have not all left: their lane may be free before.
  std::unordered_map<RequestId, MovingHandle> leaving_;
};

}  // namespace longhaul::comm
