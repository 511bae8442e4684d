#include "planner/walk.hpp"

#include <algorithm>

namespace longhaul {

Walk::Walk(const OrderProblem& problem, const Schedule& start) : orders_{problem, start} {
  evaluators_.reserve(problem.links().size());
  for (const auto& links : problem.links()) evaluators_.emplace_back(orders_, links);
  update_makespan();
}

bool Walk::attempt(Change& change, std::int64_t limit) {
  if (!orders_.fits(change)) return false;
  for (Evaluator& evaluator : evaluators_) {
    if (evaluator.estimate(change) > limit) return false;
  }
  orders_.apply(change);
  std::size_t done = 0;
  bool fine = true;
  while (fine && done < evaluators_.size()) fine = evaluators_[done++].apply(change, limit);
  if (!fine) {
    orders_.apply(change);
    while (done > 0) evaluators_[--done].undo(change);
    return false;
  }
  for (Evaluator& evaluator : evaluators_) evaluator.accept();
  update_makespan();
  path_is_old_ = true;
  return true;
}

const std::vector<BlockId>& Walk::critical_path(Random& random) {
  if (path_is_old_) {
    const auto slowest = std::ranges::max_element(evaluators_, {}, &Evaluator::makespan);
    slowest->critical_path(random.next(), path_);
    path_is_old_ = false;
  }
  return path_;
}

void Walk::update_makespan() {
  makespan_ = 0;
  for (const Evaluator& evaluator : evaluators_)
    makespan_ = std::max(makespan_, evaluator.makespan());
}

}  // namespace longhaul
