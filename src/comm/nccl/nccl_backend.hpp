#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "comm/cuda/buffer_pool.hpp"
#include "comm/cuda/lanes.hpp"
#include "comm/group/communicator.hpp"
#include "comm/nccl/channel.hpp"
#include "comm/payload_backend.hpp"

namespace longhaul::comm::nccl {

/// Payloads and collectives over NCCL, where each rank has a GPU to itself. Every lane of every
/// ordered pair of ranks has a communicator of two, so that no lane waits for another one; it is
/// made with the first payload, by an id in the announcement. A receive is given to NCCL when its
/// payload was announced: in the order of the sends, and never long before them.
class NcclBackend final : public PayloadBackend {
public:
  /// Collective over `world`. On device `index`, which must be this thread's.
  NcclBackend(const Communicator& world, int index);
  ~NcclBackend() override;

  [[nodiscard]] bool send(const PayloadSend& payload, PayloadDetails& details) override;
  void receive(const PayloadReceive& payload, std::size_t announced,
               const PayloadDetails& details) override;
  [[nodiscard]] bool keeps_order() const override { return true; }
  void collective(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                  const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override;
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool busy() const override;
  [[nodiscard]] TimePoint next_event() const override { return lanes_.next_event(); }

private:
  /// The ends of a lane between two ranks.
  struct Pair {
    ncclUniqueId id{};
    std::unique_ptr<Channel> channel;
  };
  using PairKey = std::tuple<Side, LaneId, Rank>;
  struct Transfer;
  using TransferHandle = std::shared_ptr<Transfer>;

  Channel& group(std::span<const Rank> members);
  void add(Channel& channel, const TransferHandle& transfer);
  void advance(Channel& channel);
  void bring_to_device(Transfer& transfer);
  void begin_end(const TransferHandle& transfer);
  void abort_all();
  template <typename Visit>
  void visit(const Visit& each) const;

  Communicator world_;
  int self_;
  PinnedPool pinned_;
  DevicePool device_;
  Lanes lanes_;
  std::map<PairKey, Pair> pairs_;
  std::map<std::vector<int>, std::unique_ptr<Channel>> groups_;
  std::map<RequestId, const Channel*> open_;  ///< what has not completed, in the order of its begin
};

}  // namespace longhaul::comm::nccl
