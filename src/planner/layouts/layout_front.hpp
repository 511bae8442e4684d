#pragma once

#include <iterator>
#include <map>

#include "planner/layouts/layout_search.hpp"

namespace longhaul::planner {

/// Plans of which none beats another: by time, and by a second goal (LayoutGoal).
class LayoutFront {
public:
  explicit LayoutFront(LayoutGoal second = LayoutGoal::cost) : second_{second} {}

  /// Does a plan of the front beat every layout that takes no less than this? Of equal ones the
  /// lesser layout wins.
  [[nodiscard]] bool beats(Duration iteration, double priced_gpus, const Layout& layout) const {
    const auto after = plans_.upper_bound(iteration);
    if (after == plans_.begin()) return false;
    const LayoutPlan& plan = std::prev(after)->second;  // the thriftiest of those as fast
    const double spent = spends(iteration, priced_gpus, layout);
    const double of_plan = spends(plan.iteration, plan.priced_gpus, plan.layout);
    if (of_plan > spent) return false;
    const bool is_equal = of_plan == spent && plan.iteration == iteration;
    return !is_equal || plan.layout < layout;
  }

  void add(const LayoutPlan& plan) {
    if (beats(plan.iteration, plan.priced_gpus, plan.layout)) return;
    const double spent = spends(plan.iteration, plan.priced_gpus, plan.layout);
    auto next = plans_.lower_bound(plan.iteration);
    const auto spends_more = [&](const LayoutPlan& other) {
      return spends(other.iteration, other.priced_gpus, other.layout) >= spent;
    };
    while (next != plans_.end() && spends_more(next->second)) next = plans_.erase(next);
    plans_.emplace(plan.iteration, plan);
  }

  [[nodiscard]] std::vector<LayoutPlan> plans() const {
    std::vector<LayoutPlan> all;
    for (const auto& [iteration, plan] : plans_) all.push_back(plan);
    return all;
  }

private:
  [[nodiscard]] double spends(Duration iteration, double priced_gpus, const Layout& layout) const {
    return second_ == LayoutGoal::gpus ? static_cast<double>(layout.gpus())
                                       : priced_gpus * static_cast<double>(iteration.count());
  }

  LayoutGoal second_;
  std::map<Duration, LayoutPlan> plans_;  ///< by time; the second goal falls
};

}  // namespace longhaul::planner
