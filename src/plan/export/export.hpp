#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// The simulators of GOAL text, by the names of --goal: what their processors can do differs
/// (docs/formats.md).
#define LONGHAUL_GOAL_SIMULATORS(X) X(atlahs, "atlahs") X(loggopsim, "loggopsim")
LONGHAUL_LISTED_ENUM(GoalSimulator, LONGHAUL_GOAL_SIMULATORS);

/// GOAL text. Blocks are `calc`, in nanoseconds, one after the other on their device's processor.
///  - atlahs: a host is a datacenter, a processor a device. Messages inside a datacenter are
///    dependencies and take no time; the others leave by the interface of their pair of ranks.
///  - loggopsim: a host is a rank, with one processor and one interface for all that it does, since
///    the original knows no dependency between processors.
/// A collective is a ring: n-1 steps of 1/n of its bytes, twice for an all-reduce. Sizes are one
/// more than the bytes, since LogGOPS charges size - 1. Links, their latency and rate are the
/// simulator's parameters (goal_remarks()); what shares a link, and in which order, is not told.
/// Tags count the messages of an ordered pair of hosts. Throws Error where a datacenter has more
/// devices or channels than the format counts, or where the stream fails.
void export_goal(const Plan& plan, GoalSimulator simulator, std::ostream& out);

/// LogGOPS' parameters with which each message of the file takes the time of the plan, o, g and O
/// being 0; nullopt: messages differ, so that there are none.
struct GoalParameters {
  Duration latency{};   ///< L
  double per_byte = 0;  ///< G, in ns; a message holds its interface for size * G, rounded down
};
[[nodiscard]] std::optional<GoalParameters> goal_parameters(const Plan& plan,
                                                            GoalSimulator simulator);

/// For people: the simulator's parameters, and where its times must differ from those of the plan.
[[nodiscard]] std::vector<std::string> goal_remarks(const Plan& plan, GoalSimulator simulator);

/// The rounding of an execution trace's blocks to whole microseconds.
struct ChakraRounding {
  std::int64_t blocks = 0;
  Duration error{};  ///< sum over all blocks of what each was lengthened or shortened by
};

/// The ops of one rank as a Chakra execution trace (MLCommons; messages GlobalMetadata and Node of
/// its et_def.proto, each after its length), for ASTRA-sim and others. Node ids are op ids.
/// `data_deps` holds all that a node waits for to be complete: its inputs and, for blocks and
/// collectives, the one before it on its lane, which `ctrl_deps` names again. A message does not
/// wait for the one before, which is complete when it has arrived; ids keep their order.
/// `comm_size` of an all-gather is what one rank brings, of others all bytes, as ASTRA-sim reads.
/// Durations are whole microseconds, rounded so that no device is ever more than half of one ahead
/// or late. Communication carries the plan's own time as its duration, for readers that replay.
[[nodiscard]] ChakraRounding export_chakra(const Plan& plan, Rank rank, std::ostream& out);

/// ASTRA-sim's --comm-group-configuration: JSON, ranks by the number that the traces' pg_name
/// holds. Empty where the plan has no collectives.
[[nodiscard]] std::string chakra_groups(const Plan& plan);

}  // namespace longhaul::plan
