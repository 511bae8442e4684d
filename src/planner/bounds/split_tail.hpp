#pragma once

#include <vector>

#include "planner/bounds/relaxation.hpp"
#include "planner/bounds/stage_times.hpp"

namespace longhaul::planner {

/// The least makespan as far as one device is concerned that fills the time after its last
/// gradients with Ws, and pays for each D and W that would be cheaper as one B.
///
/// Let T be the makespan. The device starts no work before a time r. All its blocks and the least
/// of its reductions fit between r and T. The blocks of chunks whose last gradient is followed by
/// at least q elsewhere fit between r and T - q, but for the Ws that are apart from their D. Weigh
/// the first with 1 - p and the second with p, for any p from 0 to 1, and add: each microbatch of
/// such a chunk then counts F, R, and B or D + (1 - p) W, whichever is less; of any other chunk
/// (1 - p) times its least work. With p the share of a W that its B saves, both choices cost the
/// same, and a tail of q takes p q.
///
/// Where D, W and B of all its chunks take the same times, the number s of microbatches that are
/// split decides: each adds to the work between r and T what its B would save, and takes all but D
/// off that between r and T - q. The least of the larger sum over all whole s is a bound too.
///
/// r: the earliest F. In addition, no memory is released before the first gradient starts, at g, so
/// until then the device has run no more F and R than the memory holds Fs. If that is a time of x,
/// as much work is left at g as if it had started at g - x and never waited.
///
/// Blocks are those of the schedule itself, whole or in parts, not those of the relaxed problem:
/// of the times of stages only the first and the last of a chunk are used, which hold for both.
[[nodiscard]] Duration split_tail_bound(const Relaxation& relaxation, const RelaxedReplica& replica,
                                        const std::vector<StageTimes>& times, DeviceId device);

}  // namespace longhaul::planner
