#pragma once

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

}  // namespace longhaul::planner
