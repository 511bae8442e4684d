#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "planner/search/worth.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// The worth of one schedule; nullopt: it cannot run.
using JudgeWorth = std::function<std::optional<Worth>(const Schedule&)>;

/// The schedule with rows of their own for each replica, all equal. Replicas must share theirs.
[[nodiscard]] Schedule with_own_rows(const Schedule& schedule);

/// May its replicas have other orders: are there several, equal so far, that send for themselves
/// and in no stated order?
[[nodiscard]] bool may_stagger(const Schedule& schedule);

/// Gives replicas orders of their own, so that their bubbles do not open and close all at once:
/// `start`'s (may_stagger()) or one of `orders`, which are of its layout, equal in all replicas.
/// An iteration takes as long as before, to the nanosecond; the worth is better, or `start` is the
/// answer. Replica by replica, until none is better off or `stopped` (asked before each). Of equal
/// `judge`s and `stopped` the same with any number of threads.
[[nodiscard]] WorthCandidate stagger(const WorthCandidate& start,
                                     const std::vector<Schedule>& orders, const Scenario& scenario,
                                     const JudgeWorth& judge, int threads,
                                     const std::function<bool()>& stopped);

}  // namespace longhaul::planner
