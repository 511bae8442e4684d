#pragma once

#include <vector>

#include "planner/tune/family.hpp"

namespace longhaul::planner {

/// Where a member that no one ran lies: its one knob (local steps, what is kept, rank, bits) is
/// between those of two neighbours, all else is theirs.
struct FamilyBetween {
  FamilyMember lower, upper;  ///< by the knob
  double share = 0;           ///< 0 at `lower`, 1 at `upper`: by the logarithm of the knob
};

/// Members between measured ones that differ in one number of their name alone ("diloco:10" and
/// "diloco:20", "topk:keep=1%" and "topk:keep=10%") and exchange equally: of each two neighbours up
/// to three, of counts whole, of blocks powers of two; none where the number chooses among kinds
/// ("bits"). Local steps are what a name's number says, or the same.
/// Composed: bytes of an exchange follow the knob; their updates are no less than the least of
/// either neighbour and no more than the most.
[[nodiscard]] std::vector<FamilyMember> members_between(const std::vector<FamilyMember>& members);

}  // namespace longhaul::planner
