#pragma once

#include <map>

#include "comm/cuda/ipc_slots.hpp"
#include "comm/cuda/staged_collectives.hpp"

namespace longhaul::comm {

/// Between ranks of one host, on one GPU or several: the sender copies into a slot, and its
/// receiver, in this process or another, from there, after the event that says that the slot has
/// been written. Both on their lane's stream. Collectives go through the host.
class CudaIpcBackend final : public PayloadBackend {
public:
  /// Collective over the ranks of this host. On device `index`, which must be this thread's.
  CudaIpcBackend(Transport& host, const HostRanks& host_ranks, int index);
  ~CudaIpcBackend() override;

  [[nodiscard]] bool send(const PayloadSend& payload, PayloadDetails& details) override;
  void receive(const PayloadReceive& payload, std::size_t announced,
               const PayloadDetails& details) override;
  void collective(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                  const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override { host_.prepare_group(members); }
  [[nodiscard]] bool host_done(const Completion& completion,
                               std::vector<Completion>& done) override {
    return collectives_.host_done(completion, done);
  }
  void advance(std::vector<Completion>& done) override { lanes_.advance(done); }
  [[nodiscard]] bool busy() const override { return lanes_.busy() || collectives_.busy(); }
  [[nodiscard]] TimePoint next_event() const override { return lanes_.next_event(); }

private:
  void give_back(Rank from, std::uint32_t slot);

  Transport& host_;
  const HostRanks& host_ranks_;
  SlotFlags flags_;
  std::map<Rank, SlotsToPeer> slots_;
  OpenedSlots opened_;
  PinnedPool pinned_;
  Lanes lanes_;
  StagedCollectives collectives_;
};

}  // namespace longhaul::comm
