#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "engine/links/lease_client.hpp"
#include "engine/links/lease_homes.hpp"
#include "engine/links/lease_service.hpp"
#include "engine/links/link_table.hpp"
#include "engine/options.hpp"

namespace longhaul::engine {

/// The resources that this rank's sends hold: those it has to itself in its own table, those that
/// several ranks of the host share leased from a table in shared memory. What ranks of several
/// hosts share is leased from the table of one of them, the home: by messages where that is another
/// host. Under a virtual clock, what is asked for in an instant is decided at its end.
class Links final : public Arbiter {
public:
  /// What words between hosts need. All outlive this. `clock_offset`: see LeaseWords.
  struct Place {
    const comm::HostRanks& host_ranks;
    comm::Transport& transport;
    LeaseWords::Tags tags;
    const OpEvents& events;
    std::optional<Duration> clock_offset;
  };
  /// Collective over the ranks; made where links are emulated.
  Links(const Plan& plan, const Place& place);

  void begin_iteration();

  using Grant = LinkTable::Grant;
  /// Asks, and wakes who gets a turn thereby.
  void request(OpId send, TimePoint ready, TimePoint at);
  [[nodiscard]] std::optional<Grant> take(OpId send, TimePoint ready, TimePoint at);
  /// Lets go as of `due` and wakes who gets it next.
  void release(OpId send, TimePoint due, const ShadowTime& seen, TimePoint at);
  /// The cost of leasing since the last call.
  [[nodiscard]] LeaseCost take_cost();

  /// Tells ranks of other hosts what they were granted; true if there was any. Call it whenever
  /// this rank looks around.
  [[nodiscard]] bool serve(TimePoint at);
  /// Is a completion of the transport a word on a lease? Then it has been heeded.
  [[nodiscard]] bool took(const comm::Completion& completion, TimePoint at);
  /// No word is on its way: this rank may leave the iteration.
  [[nodiscard]] bool idle() const { return words_.idle(); }
  /// Words of other hosts are expected.
  [[nodiscard]] bool awaits_words() const { return words_.awaits(); }
  /// This rank has asked another host since the last call: the answer will be here soon.
  [[nodiscard]] bool has_asked() { return std::exchange(has_asked_, false); }

  /// Of this rank's sends, and of those that it asks for.
  [[nodiscard]] std::optional<Request> first_request() override;
  void decide_first() override;

private:
  void find_lanes();
  void make_service();
  void wake_granted();
  [[nodiscard]] Rank home_of(OpId send) const {
    return homes_.home[index(plan_.op(send).resources)];
  }
  /// Is its lease kept on another host?
  [[nodiscard]] bool is_distant(OpId send) const {
    return home_of(send) != kNone<Rank> && !place_.host_ranks.is_local(home_of(send));
  }
  [[nodiscard]] LinkTable& table_of(OpId send) {
    return homes_.shared[index(plan_.op(send).resources)] ? *shared_ : *own_;
  }

  const Plan& plan_;
  Place place_;
  LeaseHomes homes_;
  std::vector<bool> lane_set_;  ///< by resource set: does one lane alone hold it?
  std::vector<std::byte> own_memory_;
  std::optional<LinkTable> own_;
  std::unique_ptr<comm::SharedMemory> shared_memory_;
  std::optional<LinkTable> shared_;
  LeaseWords words_;
  LeaseClient client_;
  std::optional<LeaseService> service_;  ///< where this rank is the home of any
  std::vector<LaneId> lanes_;            ///< sends that this rank asks for in the tables
  LeaseCost cost_;
  std::vector<OpId> granted_;
  bool has_asked_ = false;
};

}  // namespace longhaul::engine
