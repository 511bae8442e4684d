#pragma once

#include <optional>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/statistics/sample.hpp"
#include "engine/ranks.hpp"
#include "harness/collectives/step_numbers.hpp"
#include "plan/steps/collective_steps.hpp"

namespace longhaul::harness {

/// Runs of a collective at full speed on the ranks as they are. A sample is the longest time of a
/// member, all of which began together. Complete on rank 0.
struct TimedRuns {
  std::vector<double> durations_ns;
  SampleSummary summary{};
  std::int64_t wrong = 0;  ///< items, of all members and iterations, warm-up included
};

/// What carries a collective out: our messages over the transport, our messages as members of one
/// host read them from each other's memory, or one call of MPI or NCCL.
#define LONGHAUL_COLLECTIVE_CALLS(X) X(messages, "messages") X(shared, "shared") X(native, "native")
LONGHAUL_LISTED_ENUM(CollectiveCalls, LONGHAUL_COLLECTIVE_CALLS);
/// Whose one call that is: of numbers in the host's memory, or on the members' GPUs.
#define LONGHAUL_OWN_CALLS(X) X(mpi, "MPI") X(nccl, "NCCL")
LONGHAUL_LISTED_ENUM(OwnCalls, LONGHAUL_OWN_CALLS);

/// Iterations that are measured, and those before them.
struct Repetitions {
  int iterations = 8;
  int warmup = 1;
};

/// Throws Error where time_steps() cannot play the collective: fewer numbers than shards, or more
/// than memory holds.
void require_runnable(const plan::Collective& collective);

/// Collective over all ranks: message by message, by `messages` or `shared` (then all members are
/// on one host, or Error is thrown). The size is size_in_numbers().
[[nodiscard]] TimedRuns time_steps(const plan::Collective& collective, engine::Ranks& ranks,
                                   const Repetitions& repetitions, BufferUse use,
                                   CollectiveCalls calls = CollectiveCalls::messages);

/// Collective likewise: one call, of size_in_numbers() in one piece. nullopt where the vectors are
/// too small or too large, of MPI where ranks are threads, of NCCL in place where it has no call of
/// its own for the kind (gather, scatter, all-to-all, which are grouped sends and receives).
/// NCCL's: payloads go over its transport; from the call until its end on the GPU is seen. Where
/// NCCL or a peer fails the run ends with the watchdog's report, which names the collective.
[[nodiscard]] std::optional<TimedRuns> time_own(const plan::Collective& collective,
                                                engine::Ranks& ranks,
                                                const Repetitions& repetitions, BufferUse use,
                                                OwnCalls by = OwnCalls::mpi);

}  // namespace longhaul::harness
