#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "plan/rows.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// A collective played alone in virtual time.
struct CollectiveTime {
  plan::Collective collective;
  Duration duration{};  ///< from the start until the last message has arrived
  std::size_t messages = 0;
  int critical_messages = 0;  ///< of these on the critical path
  plan::BytesByLevel bytes;
  plan::ResourceUse busiest;  ///< of links, interfaces and ports; without a name where none is held
  Duration least{};           ///< the work of the busiest: in no number of pieces it takes less
};

/// Messages that one collective may have: beyond, a simulation takes minutes.
inline constexpr std::size_t kMostMessages = 10'000'000;

/// Refused where it has no steps (plan::why_no_steps()), too many messages, or no link where it
/// must cross.
[[nodiscard]] Result<CollectiveTime> play_collective(const plan::Collective& collective,
                                                     const Scenario& scenario);

/// A time below which no algorithm can end: the bytes that must cross a cut at the rate of all that
/// crosses it, and the smallest latency across it. Cuts are around each member, each node and each
/// set of datacenters. The time of a message is rounded to the nanosecond, so that many tiny ones
/// may be half a nanosecond each below it.
struct CollectiveBound {
  Duration lower_bound{};
  std::string reason;  ///< "13.5e9 bytes out of datacenter west at 20 Gbps"
};
[[nodiscard]] CollectiveBound bound_of_collective(const plan::Collective& collective,
                                                  const Scenario& scenario);

/// The mesh of datacenters, nodes and ranks that the members form, levels of one left out. Refused
/// where nodes or datacenters differ in their number of members.
[[nodiscard]] Result<std::vector<int>> mesh_of_levels(const std::vector<Rank>& members,
                                                      const Scenario& scenario);

/// Dimensions in the order that sends least between far members: a reduction takes the near ones
/// (the last) first, a gather the far ones.
[[nodiscard]] std::vector<int> usual_order(CollectiveKind kind, int dimensions);

/// Each algorithm once, in one piece: flat, and hierarchical over mesh_of_levels() where there is
/// more than one level. Those that the members' number does not allow are left out.
[[nodiscard]] std::vector<plan::Collective> every_algorithm(const plan::Collective& collective,
                                                            const Scenario& scenario);

/// The fastest of: every algorithm, every mesh of up to three dimensions in every order with every
/// algorithm along each, in one piece; the fastest of these, and every algorithm, in 2, 4 and 8
/// pieces, and in twice as many as long as that gains a thousandth. Refused as play_collective()
/// is.
[[nodiscard]] Result<CollectiveTime> best_collective(const plan::Collective& collective,
                                                     const Scenario& scenario);

}  // namespace longhaul::planner
