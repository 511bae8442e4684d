#pragma once

#include <span>

#include "base/units.hpp"

namespace longhaul::planner {

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
