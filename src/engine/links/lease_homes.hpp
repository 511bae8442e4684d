#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace longhaul::engine {

/// Where the holders of a plan's resources are kept. What is asked for together is kept together:
/// resources that one send holds, and what others hold with one of them.
struct LeaseHomes {
  /// By resource set: do several ranks hold some of what is kept together?
  std::vector<bool> shared;
  /// By resource set: the lowest of these ranks, where they are on several hosts; its host keeps
  /// it, and it asks there for ranks of other hosts. kNone: they are on one host.
  std::vector<Rank> home;
};

/// `host_of` is equal for ranks of one host (index: rank).
[[nodiscard]] LeaseHomes find_lease_homes(const Plan& plan, const std::vector<Rank>& host_of);

}  // namespace longhaul::engine
