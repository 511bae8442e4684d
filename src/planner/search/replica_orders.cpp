#include "planner/search/replica_orders.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/search/in_parallel.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Tries mixtures of orders, and keeps the best one so far.
class Staggering {
public:
  Staggering(const WorthCandidate& start, const std::vector<Schedule>& orders,
             const Scenario& scenario, const JudgeWorth& judge, int threads)
      : orders_{orders},
        scenario_{scenario},
        judge_{judge},
        threads_{threads},
        best_{with_own_rows(start.schedule), start.worth},
        own_{start.schedule} {}

  /// Is one of them better than the best so far?
  bool take_best_of(std::vector<Schedule> mixtures) {
    std::vector<std::optional<Worth>> worths(mixtures.size());
    in_parallel(mixtures.size(), threads_, [&](std::size_t i) {
      if (mixtures[i].rows == best_.schedule.rows) return;
      if (schedule::first_violation(mixtures[i], scenario_)) return;
      worths[i] = judge_(mixtures[i]);
    });
    bool is_better = false;
    const Duration period = best_.worth.period;
    for (std::size_t i = 0; i < mixtures.size(); ++i) {
      if (!worths[i] || worths[i]->period != period) continue;
      if (!worths[i]->is_better_than(best_.worth)) continue;
      best_ = {std::move(mixtures[i]), *worths[i]};
      is_better = true;
    }
    return is_better;
  }

  /// The best so far with each of the orders in one replica.
  [[nodiscard]] std::vector<Schedule> with_others_in(ReplicaId replica) const {
    std::vector<Schedule> mixtures;
    const auto add = [&](const Schedule& order) {
      give(mixtures.emplace_back(best_.schedule), replica, order);
    };
    add(own_);
    for (const Schedule& order : orders_) add(order);
    return mixtures;
  }

  /// Replicas by turns: `start`'s order and one other, of each; then all.
  [[nodiscard]] std::vector<Schedule> by_turns() const {
    std::vector<Schedule> mixtures;
    for (std::size_t first = 0; first < orders_.size(); ++first)
      mixtures.push_back(by_turns(first, 1));
    if (orders_.size() > 1) mixtures.push_back(by_turns(0, orders_.size()));
    return mixtures;
  }

  [[nodiscard]] const WorthCandidate& best() const { return best_; }

private:
  static void give(Schedule& mixture, ReplicaId replica, const Schedule& order) {
    std::ranges::copy(order.rows,
                      mixture.rows.begin() + std::ptrdiff_t{number(replica)} * mixture.devices);
  }
  [[nodiscard]] Schedule by_turns(std::size_t first, std::size_t count) const {
    Schedule mixture = with_own_rows(own_);
    for (const ReplicaId replica : mixture.replica_ids())
      if (const std::size_t turn = index(replica) % (count + 1); turn > 0)
        give(mixture, replica, orders_[first + turn - 1]);
    return mixture;
  }

  const std::vector<Schedule>& orders_;
  const Scenario& scenario_;
  const JudgeWorth& judge_;
  int threads_;
  WorthCandidate best_;
  const Schedule& own_;
};

}  // namespace

Schedule with_own_rows(const Schedule& schedule) {
  LONGHAUL_ASSERT(schedule.replicas_share_rows(), "replicas of {} differ", schedule.name);
  Schedule own = schedule;
  for (int replica = 1; replica < schedule.replicas; ++replica)
    own.rows.insert(own.rows.end(), schedule.rows.begin(), schedule.rows.end());
  return own;
}

bool may_stagger(const Schedule& schedule) {
  return schedule.replicas > 1 && schedule.replicas_share_rows() && schedule.cell == 1 &&
         schedule.link_orders.empty();
}

WorthCandidate stagger(const WorthCandidate& start, const std::vector<Schedule>& orders,
                       const Scenario& scenario, const JudgeWorth& judge, int threads,
                       const std::function<bool()>& stopped) {
  if (orders.empty() || !may_stagger(start.schedule) || stopped()) return start;
  Staggering search{start, orders, scenario, judge, threads};
  bool is_better = search.take_best_of(search.by_turns());
  const int replicas = start.schedule.replicas;
  for (int since = 0, next = 0; since < replicas && !stopped(); ++since, ++next) {
    if (!search.take_best_of(search.with_others_in(ReplicaId{next % replicas}))) continue;
    is_better = true;
    since = 0;
  }
  return is_better ? search.best() : start;
}

}  // namespace longhaul::planner
