#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/orders/evaluator.hpp"
#include "planner/orders/moves.hpp"

namespace longhaul::planner {

/// The makespan of an order in ns as the simulator gives it; nullopt where it deadlocks.
using Simulation = std::function<std::optional<std::int64_t>(const Orders&)>;

/// An order on its way through a search: what it is, and its times in every replica whose links
/// differ. The slowest replica counts.
class SearchState {
public:
  /// `simulation` is asked where the problem is not exact, for changes that might be good: the
  /// evaluator's times of an order are too short then, and its limits sort out most of the others.
  SearchState(const OrderProblem& problem, const Schedule& start, Simulation simulation);
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  /// Carries `change` out if it fits the memory and the makespan stays within `limit`; it then
  /// takes itself back. Some that would stay within it are refused (Evaluator::estimate).
  bool attempt(Change& change, std::int64_t limit);
  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] const Orders& orders() const { return orders_; }
  /// A longest way through the slowest replica; the same until a change is accepted.
  [[nodiscard]] const std::vector<BlockId>& critical_path(Random& random);

private:
  [[nodiscard]] std::int64_t slowest_replica() const;
  [[nodiscard]] bool carry_out(Change& change, std::int64_t limit);
  Orders orders_;
  std::vector<Evaluator> evaluators_;
  Simulation simulation_;
  std::int64_t makespan_ = 0;
  std::vector<BlockId> path_;
  bool path_is_old_ = true;
};

}  // namespace longhaul::planner
