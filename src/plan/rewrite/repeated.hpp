#pragma once

#include <cstddef>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// The ids of a plan that holds another one several times, one iteration after the other. Ops of a
/// lane lie together: those of iteration 0, then those of iteration 1, and so on.
class RepeatedIds {
public:
  RepeatedIds(const Plan& once, int times) : once_{once}, times_{times} {}
  /// Op `id` of the plan, in that iteration.
  [[nodiscard]] OpId of(OpId id, int iteration) const {
    const Lane& lane = once_.lane_of(id);
    const std::size_t place = index(id) - index(lane.first);
    return OpId{static_cast<std::uint32_t>(index(lane.first) * to_size(times_) +
                                           to_size(iteration) * lane.count + place)};
  }

private:
  const Plan& once_;
  int times_;
};

/// `times` iterations of a plan as one plan: each begins when the one before is over on all ranks,
/// as iterations with a barrier between them do. So a schedule's work has a beginning and an end
/// within which something can be added that goes over the end of an iteration.
///
///     const Plan three = repeated(once, 3);
///     const OpId second = RepeatedIds{once, 3}.of(op, 1);  // of the middle iteration
///
/// Ops that wait for nothing wait, from the second iteration on, for the last ops of all ranks (far
/// dependencies of no iteration back). What few ops have, each iteration has, but for windows,
/// which count from the begin of an iteration: a plan with windows, far dependencies or sources is
/// refused by Error. It needs order of time.
[[nodiscard]] Plan repeated(const Plan& once, int times);

}  // namespace longhaul::plan
