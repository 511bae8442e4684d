#pragma once

#include <iosfwd>
#include <string>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// GOAL text, as LogGOPSim and ATLAHS read it: one block a rank. Blocks are `calc`, in nanoseconds,
/// one after the other on processor 0; each channel (channels.hpp) has a processor and a network
/// interface of its own, so that communication does not hold up computation. A collective is a
/// ring of sends and receives: n-1 steps of 1/n of its bytes, twice for an all-reduce. Links, their
/// latency and rate are the reader's parameters; what shares a link, and in which order, is not
/// told. Tags count the messages of an ordered pair of ranks. Throws Error where the plan has more
/// channels a rank than the format counts, or where the stream fails.
void export_goal(const Plan& plan, std::ostream& out);

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
