#pragma once

#include <vector>

#include "planner/evaluator.hpp"
#include "planner/moves.hpp"

namespace longhaul {

/// An order on its way through a search: what it is, and its times in every replica whose links
/// differ. The slowest replica counts.
class Walk {
public:
  Walk(const OrderProblem& problem, const Schedule& start);
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Carries `change` out if it fits the memory and the makespan stays within `limit`. `change` is
  /// used up.
  bool attempt(Change& change, std::int64_t limit);
  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] const Orders& orders() const { return orders_; }
  /// A longest way through the slowest replica; the same until a change is accepted.
  [[nodiscard]] const std::vector<BlockId>& critical_path(Random& random);

private:
  void update_makespan();
  Orders orders_;
  std::vector<Evaluator> evaluators_;
  std::int64_t makespan_ = 0;
  std::vector<BlockId> path_;
  bool path_is_old_ = true;
};

}  // namespace longhaul
