#include "planner/search/search_state.hpp"

#include <algorithm>
#include <utility>

namespace longhaul::planner {

SearchState::SearchState(const OrderProblem& problem, const Schedule& start, Simulation simulation,
                         OrderJudge judge)
    : orders_{problem, start}, simulation_{std::move(simulation)}, judge_{std::move(judge)} {
  evaluators_.reserve(problem.links().size());
  for (const auto& links : problem.links()) evaluators_.emplace_back(orders_, links);
  if (problem.is_exact()) simulation_ = nullptr;
  const JudgedOrder seen = look().value();
  makespan_ = seen.makespan;
  score_ = seen.score;
}

/// The order as it is, by whatever says most about it; nullopt where it deadlocks.
std::optional<JudgedOrder> SearchState::look() {
  if (judge_) {
    ++judged_;
    return judge_(orders_);
  }
  const auto makespan = simulation_ ? simulation_(orders_) : slowest_replica();
  if (!makespan) return std::nullopt;
  return JudgedOrder{*makespan, {*makespan, 0}};
}

bool SearchState::attempt(Change& change, std::int64_t limit) {
  if (!orders_.fits(change)) return false;
  const std::int64_t makespan_limit = judge_ ? makespan_ + (limit - score_.cost) : limit;
  for (Evaluator& evaluator : evaluators_) {
    if (evaluator.estimate(change) > makespan_limit) return false;
  }
  if (!carry_out(change, makespan_limit, limit)) return false;
  for (Evaluator& evaluator : evaluators_) evaluator.accept();
  path_is_old_ = true;
  return true;
}

bool SearchState::carry_out(Change& change, std::int64_t makespan_limit, std::int64_t limit) {
  orders_.apply(change);
  std::size_t done = 0;
  bool fine = true;
  while (fine && done < evaluators_.size())
    fine = evaluators_[done++].apply(change, makespan_limit);
  if (fine) {
    const auto seen = look();
    fine = seen && seen->makespan <= makespan_limit && seen->score.cost <= limit;
    if (fine) {
      makespan_ = seen->makespan;
      score_ = seen->score;
    }
  }
  if (fine) return true;
  orders_.apply(change);
  while (done > 0) evaluators_[--done].undo(change);
  return false;
}

const std::vector<BlockId>& SearchState::critical_path(Random& random) {
  if (path_is_old_) {
    const auto slowest = std::ranges::max_element(evaluators_, {}, &Evaluator::makespan);
    slowest->critical_path(random.next(), path_);
    path_is_old_ = false;
  }
  return path_;
}

std::int64_t SearchState::slowest_replica() const {
  std::int64_t makespan = 0;
  for (const Evaluator& evaluator : evaluators_)
    makespan = std::max(makespan, evaluator.makespan());
  return makespan;
}

}  // namespace longhaul::planner
