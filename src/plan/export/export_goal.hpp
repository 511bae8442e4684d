#pragma once

#include <iosfwd>

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

}  // namespace longhaul::plan
