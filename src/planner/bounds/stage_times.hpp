#pragma once

#include <span>
#include <vector>

#include "base/units.hpp"
#include "planner/bounds/relaxation.hpp"

namespace longhaul::planner {

/// Times of one chunk's blocks in any schedule of the relaxed problem; index: k, for the k-th block
/// of its kind in the order of starting. Heads: no earlier than this after the start of the
/// iteration does it start. Tails: no less than this passes from its start to the end of the
/// iteration.
struct StageTimes {
  std::vector<Duration> forward_head, gradient_head;
  std::vector<Duration> forward_tail, gradient_tail;
};

enum class MemoryLimit : std::uint8_t { ignored, kept };

/// Times of each chunk of one replica; index: chunk.
[[nodiscard]] std::vector<StageTimes> stage_times(const Relaxation& relaxation,
                                                  const RelaxedReplica& replica,
                                                  MemoryLimit memory);

/// No less than this passes between the end of a chunk's F and the start of the same microbatch's
/// gradient: through all later chunks and back.
[[nodiscard]] std::vector<Duration> round_trips(const Relaxation& relaxation,
                                                const RelaxedReplica& replica);

/// Equal jobs that come one after the other. Job k may start at heads[k] + head_offset, takes
/// `length`, and at least tails[k] + tail_offset pass from its end to the end of everything. Heads
/// ascend and tails descend, so that its first open job is always its most urgent one.
struct JobStream {
  std::span<const Duration> heads;
  Duration head_offset{};
  std::span<const Duration> tails;  ///< empty: `tail_offset` alone
  Duration tail_offset{};
  Duration length{};

  [[nodiscard]] Duration head(std::size_t k) const { return heads[k] + head_offset; }
  [[nodiscard]] Duration tail(std::size_t k) const {
    return (tails.empty() ? Duration::zero() : tails[k]) + tail_offset;
  }
};

/// The smallest possible max of (end + tail) when one machine runs all jobs and may interrupt them:
/// Jackson's preemptive schedule, the open job with the largest tail first (Carlier 1982). No
/// schedule without interruptions ends earlier. O(jobs * log(streams)).
[[nodiscard]] Duration one_machine_bound(std::span<const JobStream> streams);

}  // namespace longhaul::planner
