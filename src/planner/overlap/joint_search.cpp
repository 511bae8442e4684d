#include "planner/overlap/joint_search.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "planner/overlap/overlap_space.hpp"
#include "planner/search/best.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// The better one of those that fit; of others the one that takes less memory.
bool is_better_found(const FoundOverlap& a, const FoundOverlap& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits && a.peak != b.peak) return a.peak < b.peak;
  return a.makespan < b.makespan;
}

/// Changes the order of blocks of an iteration whose overlap stays as it was decided.
class BlockMoves {
public:
  BlockMoves(const FoundOverlap& found, Arrangement arrangement, const OverlapBudget& budget)
      : decisions_{*found.decisions},
        arrangement_{arrangement},
        scenario_{*found.undecided.scenario},
        variant_{overlap_variant(*found.undecided.schedule, scenario_, arrangement,
                                 found.decisions->sums)
                     .or_throw()},
        best_{decisions_, found.makespan, found.peak, found.fits, Grain::steps},
        order_{*found.undecided.schedule},
        is_within_budget_{!schedule::first_violation(order_, scenario_)},
        evaluate_{no_variants_, budget} {}

  /// Sweeps over all neighbours until none gains. Did one?
  bool run() {
    bool gains = false;
    for (bool again = true; again && !evaluate_.is_spent();) {
      again = false;
      for (std::size_t row = 0; row < order_.rows.size(); ++row)
        for (std::size_t place = 0; place + 1 < order_.rows[row].size(); ++place)
          again = try_swap(row, place) || again;
      gains = gains || again;
    }
    return gains;
  }

  [[nodiscard]] const Schedule& order() const { return order_; }
  [[nodiscard]] std::size_t evaluated() const { return evaluate_.evaluated(); }
  [[nodiscard]] bool is_stopped() const { return evaluate_.is_stopped(); }

  /// `found`, in this order.
  [[nodiscard]] FoundOverlap moved(FoundOverlap found) const {
    found.plan = decided(variant_, decisions_);
    found.undecided = variant_.plan;
    found.decisions = decisions_;
    found.makespan = best_.makespan;
    found.peak = best_.peak;
    found.fits = best_.fits;
    found.decided = decisions_text(decisions_, variant_);
    return found;
  }

private:
  bool try_swap(std::size_t row, std::size_t place) {
    if (evaluate_.is_spent()) return false;
    Schedule other = order_;
    std::swap(other.rows[row][place], other.rows[row][place + 1]);
    if (is_within_budget_ ? schedule::first_violation(other, scenario_)
                          : schedule::first_violation(other))
      return false;
    Result<OverlapVariant> made = overlap_variant(other, scenario_, arrangement_, decisions_.sums);
    if (!made) return false;
    OverlapDecisions decisions = decisions_;
    decisions.partitions = same_partitions(*made, variant_, decisions_.partitions);
    const auto found = evaluate_.simulated(decided(*made, decisions), decisions, &best_);
    if (!found || !is_better(*found, best_)) return false;
    best_ = *found;
    decisions_ = std::move(decisions);
    variant_ = *std::move(made);
    order_ = std::move(other);
    return true;
  }

  OverlapDecisions decisions_;
  Arrangement arrangement_;
  Scenario scenario_;
  OverlapVariant variant_;
  EvaluatedOverlap best_;
  Schedule order_;
  bool is_within_budget_;  ///< of activations; an order that was given need not be
  std::vector<OverlapVariant> no_variants_;  ///< plans are given as they are
  OverlapEvaluator evaluate_;
};

/// What several searches that follow each other spend together.
class SharedBudget {
public:
  explicit SharedBudget(const OverlapBudget& budget) : budget_{budget} {}

  [[nodiscard]] OverlapBudget rest() const {
    OverlapBudget own = budget_;
    if (budget_.watch)
      own.watch = [this](std::size_t evaluated) { return budget_.watch(spent_ + evaluated); };
    return own;
  }
  void spend(std::size_t evaluated, bool is_stopped) {
    spent_ += evaluated;
    is_stopped_ = is_stopped_ || is_stopped;
  }
  [[nodiscard]] std::size_t spent() const { return spent_; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }

private:
  const OverlapBudget& budget_;
  std::size_t spent_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

Result<FoundOverlap> joint_overlap(const std::vector<Schedule>& orders, const Scenario& scenario,
                                   Arrangement arrangement, const OverlapBudget& budget) {
  LONGHAUL_ASSERT(!orders.empty(), "no order of blocks for {}", scenario.name);
  SharedBudget shared{budget};
  std::optional<FoundOverlap> best;
  OverlapBound bound;
  const auto search = [&](const Schedule& order) -> std::optional<Refusal> {
    Result<FoundOverlap> found = best_overlap(order, scenario, arrangement, shared.rest());
    if (!found) return found.refusal();
    shared.spend(found->evaluated, found->is_stopped);
    if (!best || found->bound.lower_bound < bound.lower_bound) bound = found->bound;
    if (!best || is_better_found(*found, *best)) best = *std::move(found);
    return std::nullopt;
  };
  for (const Schedule& order : orders) {
    if (best && shared.is_stopped()) break;
    const std::optional<Refusal> why = search(order);
    if (why && &order == &orders.front()) return *why;
  }
  for (bool gains = true; gains && !shared.is_stopped() && best->decisions;) {
    BlockMoves moves{*best, arrangement, shared.rest()};
    gains = moves.run();
    shared.spend(moves.evaluated(), moves.is_stopped());
    if (!gains) break;
    best = moves.moved(*std::move(best));
    const Duration before = best->makespan;
    if (!shared.is_stopped()) (void)search(moves.order());
    gains = best->makespan < before;
  }
  best->bound = bound;
  best->evaluated = shared.spent();
  best->is_stopped = shared.is_stopped();
  return *std::move(best);
}

std::vector<Schedule> orders_beside(const Schedule& schedule, const Scenario& scenario,
                                    Arrangement arrangement) {
  std::vector<Schedule> orders{schedule};
  for (Candidate& each : find_candidates(scenario, arrangement).fitting)
    if (each.schedule.rows != schedule.rows) orders.push_back(std::move(each.schedule));
  return orders;
}

}  // namespace longhaul::planner
