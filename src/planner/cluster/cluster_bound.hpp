#pragma once

#include <optional>
#include <vector>

#include "planner/cluster/cluster.hpp"

namespace longhaul::planner {

/// At most so many of the jobs' deadlines can be met, by any scheduler, even one that knows them
/// all beforehand. A job needs at least the GPU time of its thriftiest count, and at least the time
/// of its fastest; the jobs whose whole time lies in an interval share the GPUs of that interval
/// (Moore and Hodgson's rule gives the fewest that are late in it), and disjoint intervals add up.
/// Of many jobs only some begins of intervals are tried. nullopt: no job has a deadline.
[[nodiscard]] std::optional<int> most_deadlines(const std::vector<ClusterJob>& jobs, int gpus);

/// Those jobs cannot all end sooner, counted from the first submission of all: none before its
/// fastest time, and those submitted from some moment on share the GPUs from then on.
[[nodiscard]] Duration least_makespan(const std::vector<ClusterJob>& jobs,
                                      const std::vector<bool>& counts, int gpus);

}  // namespace longhaul::planner
