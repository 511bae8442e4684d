#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "collective/partition/communication_classes.hpp"
#include "collective/partition/partition.hpp"

namespace longhaul::planner {

/// What Centauri decides: the dimensions of a partition (3.1), then the tiers (3.2).
#define LONGHAUL_OVERLAP_IDEAS(X) \
  X(primitive, "primitive")       \
  X(group, "group")               \
  X(workload, "workload") X(operation, "operation") X(layer, "layer") X(model, "model")
LONGHAUL_LISTED_ENUM(OverlapIdea, LONGHAUL_OVERLAP_IDEAS);

/// What a search may do, for tables of what each idea brings. Everything by itself.
struct OverlapLimits {
  std::array<bool, kCountOf<OverlapIdea>> allowed{true, true, true, true, true, true};
  std::array<bool, kCountOf<collective::Tier>> by_rule{};  ///< decided by the paper's rule
  bool alone = false;  ///< the search's own decisions, whatever baselines take
  /// What real layers compute: operators whole, a collective as one, or as the scatter and the
  /// gather of a sum over replicas. Baselines that cut operators are not held against it.
  bool of_real_layers = false;
  /// `best` may change the order of blocks, too (joint_overlap()): of a schedule that a search
  /// made, not of one that is given.
  bool orders_too = false;

  [[nodiscard]] bool allows(OverlapIdea idea) const {
    return allowed[static_cast<std::size_t>(idea)];
  }
  [[nodiscard]] bool allows(collective::Tier tier) const;
  [[nodiscard]] bool allows(const collective::Partition& partition) const;
  [[nodiscard]] bool is_by_rule(collective::Tier tier) const {
    return by_rule[static_cast<std::size_t>(tier)];
  }
  /// Then nothing is held against baselines: some idea is left out, or it runs alone.
  [[nodiscard]] bool any() const {
    return !(*this == OverlapLimits{.of_real_layers = of_real_layers, .orders_too = orders_too});
  }
  friend bool operator==(const OverlapLimits&, const OverlapLimits&) = default;
};

/// Told how many iterations a search has simulated; true ends it, with the best so far.
using SearchWatch = std::function<bool(std::size_t evaluated)>;
/// Ends a search `limit` from now on, and when `other` does.
[[nodiscard]] SearchWatch ended_after(Duration limit, SearchWatch other = {});
/// Ends a search after so many iterations: one that another watch ended there is the same again.
[[nodiscard]] SearchWatch ended_at(std::size_t evaluated);

/// `allow`: a comma list of ideas, the others are left out; `rules`: one of tiers. Empty: all, and
/// none. Throws Error on an unknown one, with the nearest.
[[nodiscard]] OverlapLimits parse_overlap_limits(std::string_view allow, std::string_view rules);

}  // namespace longhaul::planner
