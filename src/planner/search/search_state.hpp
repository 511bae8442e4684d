#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/orders/evaluator.hpp"
#include "planner/orders/moves.hpp"

namespace longhaul::planner {

/// The makespan of an order in ns as the simulator gives it; nullopt where it deadlocks.
using Simulation = std::function<std::optional<std::int64_t>(const Orders&)>;

/// How good an order is: the least is best. In ns of makespan, or of what a judge makes of it; of
/// equal costs the least `wait`.
struct OrderScore {
  std::int64_t cost = 0;
  std::int64_t wait = 0;
  friend auto operator<=>(const OrderScore&, const OrderScore&) = default;
};

/// An order as a judge sees it, who counts more than training's time.
struct JudgedOrder {
  std::int64_t makespan = 0;  ///< ns
  OrderScore score;
};
/// nullopt where the order deadlocks.
using OrderJudge = std::function<std::optional<JudgedOrder>(const Orders&)>;

/// An order on its way through a search: what it is, and its times in every replica whose links
/// differ. The slowest replica counts.
class SearchState {
public:
  /// `simulation` is asked where the problem is not exact, for changes that might be good: the
  /// evaluator's times of an order are too short then, and its limits sort out most of the others.
  /// With a `judge` his score counts, and he is asked about every change that makes an iteration
  /// little longer.
  SearchState(const OrderProblem& problem, const Schedule& start, Simulation simulation,
              OrderJudge judge = nullptr);
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  /// Carries `change` out if it fits the memory and the cost stays within `limit`; it then takes
  /// itself back. Some that would stay within it are refused (Evaluator::estimate). Of a judged
  /// order the makespan may not grow by more than the cost, either.
  bool attempt(Change& change, std::int64_t limit);
  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] OrderScore score() const { return score_; }
  [[nodiscard]] std::int64_t judged() const { return judged_; }  ///< so many orders, so far
  [[nodiscard]] const Orders& orders() const { return orders_; }
  /// A longest way through the slowest replica; the same until a change is accepted.
  [[nodiscard]] const std::vector<BlockId>& critical_path(Random& random);

private:
  [[nodiscard]] std::int64_t slowest_replica() const;
  [[nodiscard]] bool carry_out(Change& change, std::int64_t makespan_limit, std::int64_t limit);
  [[nodiscard]] std::optional<JudgedOrder> look();
  Orders orders_;
  std::vector<Evaluator> evaluators_;
  Simulation simulation_;
  OrderJudge judge_;
  std::int64_t makespan_ = 0;
  OrderScore score_;
  std::int64_t judged_ = 0;
  std::vector<BlockId> path_;
  bool path_is_old_ = true;
};

}  // namespace longhaul::planner
