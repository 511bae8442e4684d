#include "plan/operators/operator_lists.hpp"

#include <algorithm>

namespace longhaul::plan {

OperatorListId OperatorLists::list_with(std::uint32_t step) const {
  const auto after = std::ranges::upper_bound(begin, step);
  return OperatorListId{static_cast<std::uint32_t>(after - begin.begin() - 1)};
}

}  // namespace longhaul::plan
