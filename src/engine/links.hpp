#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "engine/links/link_table.hpp"
#include "engine/options.hpp"

namespace longhaul::engine {

/// The resources that this rank's sends hold: those it has to itself in its own table, those that
/// several ranks of the host share leased from a table in shared memory. Under a virtual clock,
/// what is asked for in an instant is decided at its end.
class Links final : public Arbiter {
public:
  /// Collective over the ranks; made where links are emulated. Throws Error where ranks of several
  /// hosts share a resource.
  Links(const Plan& plan, const comm::HostRanks& host_ranks);

  using Grant = LinkTable::Grant;
  /// Asks, and wakes who gets a turn thereby.
  void request(OpId send, TimePoint ready);
  [[nodiscard]] std::optional<Grant> take(OpId send, TimePoint ready, TimePoint at);
  /// Lets go as of `due` and wakes who gets it next.
  void release(OpId send, TimePoint due, const ShadowTime& seen);
  /// The cost of leasing since the last call.
  [[nodiscard]] LeaseCost take_cost();

  /// Of this rank's sends.
  [[nodiscard]] std::optional<Request> first_request() override;
  void decide_first() override;

private:
  void wake_granted() const;
  [[nodiscard]] LinkTable& table_of(OpId send) {
    return shared_set_[index(plan_.op(send).resources)] ? *shared_ : *own_;
  }

  const Plan& plan_;
  const comm::HostRanks& host_ranks_;
  std::vector<bool> shared_set_;  ///< by resource set: do several ranks hold some of it?
  std::vector<bool> lane_set_;    ///< by resource set: does one lane alone hold it?
  std::vector<std::byte> own_memory_;
  std::optional<LinkTable> own_;
  std::unique_ptr<comm::SharedMemory> shared_memory_;
  std::optional<LinkTable> shared_;
  std::vector<LaneId> lanes_;  ///< this rank's sends
  LeaseCost cost_;
  std::vector<OpId> granted_;
};

}  // namespace longhaul::engine
