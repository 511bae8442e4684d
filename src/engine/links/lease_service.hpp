#pragma once

#include <cstdint>
#include <vector>

#include "engine/links/lease_words.hpp"
#include "engine/watchdog/op_events.hpp"

namespace longhaul::engine {

/// The home's side of leases: asks and lets go in the table of its host for ranks of other hosts,
/// and tells them what they have. Served whenever this rank looks around, at its barriers too.
class LeaseService {
public:
  struct Client {
    Rank rank{};
    std::uint32_t sends = 0;  ///< in an iteration
    std::vector<LaneId> lanes;
  };
  /// All outlive this.
  LeaseService(const Plan& plan, LinkTable& table, LeaseWords& words, const OpEvents& events,
               std::vector<Client> clients);

  /// Each client asks and lets go once for each of its sends.
  void begin_iteration();
  /// One of them did; adds ops that are granted theirs thereby to `granted`. Under a virtual clock
  /// requests wait for the end of the instant.
  void came(const LeaseWords::Came& came, TimePoint at, std::vector<OpId>& granted);
  /// Tells those that were granted theirs; true if there were any.
  bool tell_granted(TimePoint at);

private:
  struct Waiting {
    OpId send{};
    Rank client{};
    TimePoint since{};  ///< its word was here
  };
  void expect(std::size_t client);

  const Plan& plan_;
  LinkTable& table_;
  LeaseWords& words_;
  const OpEvents& events_;
  std::vector<Client> clients_;
  std::vector<std::uint32_t> to_come_;  ///< words, by client
  std::vector<Waiting> waiting_;
};

}  // namespace longhaul::engine
