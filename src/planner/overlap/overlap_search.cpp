#include "planner/overlap/overlap_search.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "planner/overlap/joint_search.hpp"
#include "planner/overlap/microbatch_groups.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "planner/overlap/overlap_space.hpp"
#include "planner/overlap/partition_forest.hpp"

namespace longhaul::planner {
namespace {

using collective::IterationPlan;
using collective::Overlap;
using collective::Partition;
using collective::Tier;

/// Of the same blocks and in the same memory.
bool does_the_same(const IterationPlan& a, const IterationPlan& b) {
  const Parallel& of_a = a.scenario->parallel;
  const Parallel& of_b = b.scenario->parallel;
  return of_a.gradient_sync == of_b.gradient_sync && of_a.shard == of_b.shard &&
         of_a.sharding == of_b.sharding && a.schedule->rows == b.schedule->rows &&
         a.stages == b.stages;
}

bool cuts_operators(const IterationPlan& plan) {
  for (const collective::StageWork& work : plan.stages)
    for (const collective::Operation& each : work.operations)
      if (each.pieces > 1) return true;
  return false;
}

class OverlapSearch {
public:
  OverlapSearch(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                const OverlapBudget& budget, OverlapScope scope)
      : schedule_{schedule},
        scenario_{scenario},
        arrangement_{arrangement},
        limits_{budget.limits},
        space_{schedule, scenario, arrangement, scope, budget.limits},
        evaluate_{space_.variants(), budget} {}

  Result<FoundOverlap> best() {
    if (space_.why_empty()) return *space_.why_empty();
    run_baselines();
    std::vector<EvaluatedOverlap> starts = run_grid();
    if (const auto by_rules = start_by_rules()) starts.push_back(*by_rules);
    constexpr std::size_t kDescents = 2;
    std::ranges::stable_sort(starts, is_better);
    for (std::size_t i = 0; i < starts.size() && i < kDescents && !is_at_bound(); ++i)
      descend(starts[i]);
    return result();
  }

  /// One iteration, as the rules say; the others are simulated to be named.
  Result<FoundOverlap> by_rules() {
    if (space_.why_empty()) return *space_.why_empty();
    const Result<PartitionForest> forest = partition_forest(variant(0));
    if (!forest) return forest.refusal();
    best_ = evaluate_(grouped_by_rules(decisions_by_rules(variant(0), *forest), *forest));
    if (!best_) return refused("what the rules decide cannot be simulated. Take centauri.");
    Result<FoundOverlap> made = result();
    if (!made) return made;
    FoundOverlap found = *std::move(made);
    found.is_proof = false;
    return found;
  }

  Result<FoundOverlap> centauri() {
    if (space_.why_empty()) return *space_.why_empty();
    run_baselines();
    std::optional<EvaluatedOverlap> found = evaluate_(start_of(0));
    if (!found) return result();
    note(*found);
    const Result<PartitionForest> forest = partition_forest(variant(0));
    if (forest && limits_ == OverlapLimits{})
      try_change(*found, decisions_by_rules(variant(0), *forest));
    for (const Tier tier : every<Tier>()) {
      if (forest && limits_.is_by_rule(tier))
        decide_by_rule(tier, *forest, *found);
      else
        improve_tier(tier, *found);
    }
    if (limits_.any()) best_ = found;
    return result();
  }

private:
  [[nodiscard]] const OverlapVariant& variant(std::size_t v) const { return space_.variants()[v]; }

  void improve_tier(Tier tier, EvaluatedOverlap& from) {
    for (std::size_t c = 0; c < variant(0).classes.size(); ++c)
      if (variant(0).classes[c].tier == tier) improve_class(from, c);
    if (tier == Tier::layer) improve_order(from);
    if (tier == Tier::model) improve_groups(from);
  }

  /// As the paper's rule of the tier says, whether it gains or not.
  void decide_by_rule(Tier tier, const PartitionForest& forest, EvaluatedOverlap& from) {
    OverlapDecisions decisions = from.decisions;
    const OverlapDecisions all = decisions_by_rules(variant(0), forest);
    for (std::size_t c = 0; c < variant(0).classes.size(); ++c)
      if (variant(0).classes[c].tier == tier) decisions.partitions[c] = all.partitions[c];
    if (tier == Tier::layer) decisions.order = all.order;
    if (tier == Tier::model) decisions = grouped_by_rules(decisions, forest);
    if (const std::optional<EvaluatedOverlap> found = evaluate_(decisions)) from = *found;
  }

  /// In the groups of microbatches that equation 2 chose, where the schedule has groups.
  [[nodiscard]] OverlapDecisions grouped_by_rules(OverlapDecisions decisions,
                                                  const PartitionForest& forest) {
    const std::vector<MicrobatchGroup> known = microbatch_groups(schedule_, scenario_);
    if (!forest.model || known.empty()) return decisions;
    const MicrobatchGroup wanted = nearest_group(*forest.model, known);
    for (std::size_t order = 0; order < space_.groups().size(); ++order) {
      const std::optional<MicrobatchGroup>& each = space_.groups()[order];
      if (!each || each->forward != wanted.forward || each->backward != wanted.backward) continue;
      if (const auto grouped = space_.in_order(decisions, order)) return *grouped;
    }
    return decisions;
  }

  /// Each overlap as its authors run it.
  void run_baselines() {
    if (limits_.any()) return;
    std::vector<std::pair<IterationPlan, std::optional<EvaluatedOverlap>>> ran;
    for (const Overlap& overlap : collective::overlaps()) {
      if (!divides_as(overlap, scenario_.parallel)) continue;
      const Result<IterationPlan> plan =
          collective::overlapped(overlap, schedule_, scenario_, arrangement_);
      if (!plan || (limits_.of_real_layers && cuts_operators(*plan))) continue;
      const auto same = std::ranges::find_if(
          ran, [&](const auto& each) { return does_the_same(each.first, *plan); });
      const std::optional<EvaluatedOverlap> found =
          same != ran.end() ? same->second : evaluate_.simulated(*plan, {});
      if (same == ran.end()) ran.emplace_back(*plan, found);
      if (!found) continue;
      baselines_.push_back({overlap.name, found->makespan, found->peak, found->fits, found->grain});
      if (!baseline_ || is_better(*found, *baseline_)) {
        baseline_ = found;
        baseline_plan_ = *plan;
      }
    }
  }

  [[nodiscard]] OverlapDecisions start_of(std::size_t v) const {
    OverlapDecisions decisions;
    decisions.variant = v;
    decisions.sums = space_.sums_of(v);
    decisions.ahead = scenario_.parallel.sharding.prefetch;
    decisions.partitions.resize(variant(v).classes.size());
    return decisions;
  }

  /// As the paper's rules decide the schedule as it is, in one step: single changes may not lead
  /// there.
  std::optional<EvaluatedOverlap> start_by_rules() {
    if (limits_.any() || limits_.of_real_layers || is_at_bound()) return std::nullopt;
    const Result<PartitionForest> forest = partition_forest(variant(0));
    if (!forest) return std::nullopt;
    const std::optional<EvaluatedOverlap> found =
        evaluate_(decisions_by_rules(variant(0), *forest));
    if (found) note(*found);
    return found;
  }

  enum class Start : std::uint8_t { flat, grouped, in_pieces };

  /// The option that is as `partition`, in the most pieces.
  static Partition in_most_pieces(Partition partition, const std::vector<Partition>& options) {
    for (const Partition& each : options) {
      Partition same = each;
      same.pieces = partition.pieces;
      if (same == partition && each.pieces > partition.pieces) partition = each;
    }
    return partition;
  }

  /// Of each variant whole, in groups and in pieces, few units ahead and many, dgrads first and
  /// wgrads first.
  std::vector<EvaluatedOverlap> run_grid() {
    std::vector<EvaluatedOverlap> all;
    for (std::size_t v = 0; v < space_.variants().size(); ++v) {
      for (const Start start : {Start::flat, Start::grouped, Start::in_pieces}) {
        OverlapDecisions decisions = start_of(v);
        for (std::size_t c = 0; c < space_.options(v).size(); ++c) {
          Partition& own = decisions.partitions[c];
          if (start != Start::flat) own = grouped_start(space_.options(v)[c]);
          if (start == Start::in_pieces) own = in_most_pieces(own, space_.options(v)[c]);
        }
        for (const std::optional<int>& ahead : kAhead) {
          decisions.ahead = ahead;
          for (const GradientOrder order : every<GradientOrder>()) {
            decisions.order = order;
            if (order != GradientOrder::scheduled && !limits_.allows(OverlapIdea::layer)) continue;
            if (is_at_bound()) return all;
            if (const auto found = evaluate_(decisions)) {
              note(*found);
              all.push_back(*found);
            }
          }
          if (variant(v).plan.scenario->parallel.gradient_sync != GradientSync::zero3) break;
        }
      }
    }
    return all;
  }

  /// One decision at a time, until none gains; of many classes those that are like each other
  /// first together, since a sweep over each takes minutes.
  void descend(EvaluatedOverlap from) {
    if (from.decisions.partitions.size() > kManyClasses) improve_like_classes(from);
    for (bool gains = true; gains && !is_at_bound() && !evaluate_.is_spent();) {
      const Duration before = from.makespan;
      improve_groups(from);
      improve_order(from);
      improve_ahead(from);
      for (std::size_t c = 0; c < from.decisions.partitions.size(); ++c) improve_class(from, c);
      gains = from.makespan < before - before / kLeastGain;
    }
  }

  bool try_change(EvaluatedOverlap& from, const OverlapDecisions& decisions) {
    if (is_at_bound()) return false;
    const std::optional<EvaluatedOverlap> found = evaluate_(decisions, &from);
    if (!found) return false;
    note(*found);
    if (!is_better(*found, from)) return false;
    from = *found;
    return true;
  }

  /// Classes of one traffic, kind and block take each option together, where they have it.
  void improve_like_classes(EvaluatedOverlap& from) {
    const std::size_t v = from.decisions.variant;
    std::map<std::tuple<collective::Traffic, CollectiveKind, BlockKind>, std::vector<std::size_t>>
        like;
    for (std::size_t c = 0; c < variant(v).classes.size(); ++c) {
      const collective::CommunicationClass& each = variant(v).classes[c];
      like[{each.traffic, each.kind, each.work}].push_back(c);
    }
    for (const auto& [kind, classes] : like) {
      for (const Partition& option : space_.options(v)[classes.front()]) {
        OverlapDecisions decisions = from.decisions;
        for (const std::size_t c : classes)
          if (std::ranges::find(space_.options(v)[c], option) != space_.options(v)[c].end())
            decisions.partitions[c] = option;
        try_change(from, decisions);
      }
    }
  }

  void improve_class(EvaluatedOverlap& from, std::size_t c) {
    for (const Partition& option : space_.options(from.decisions.variant)[c]) {
      OverlapDecisions decisions = from.decisions;
      decisions.partitions[c] = option;
      try_change(from, decisions);
    }
  }

  /// How many microbatches of a chunk are launched together, forward and backward.
  void improve_groups(EvaluatedOverlap& from) {
    for (std::size_t order = 0; order < space_.groups().size(); ++order)
      if (const auto decisions = space_.in_order(from.decisions, order))
        try_change(from, *decisions);
  }

  void improve_order(EvaluatedOverlap& from) {
    if (!limits_.allows(OverlapIdea::layer)) return;
    for (const GradientOrder order : every<GradientOrder>()) {
      OverlapDecisions decisions = from.decisions;
      decisions.order = order;
      decisions.units = OverlapDecisions{}.units;
      try_change(from, decisions);
    }
    for (const std::uint32_t units : {1U, 3U, 7U, 15U}) {
      OverlapDecisions decisions = from.decisions;
      decisions.order = GradientOrder::wgrads_first;
      decisions.units = units;
      try_change(from, decisions);
    }
    for (const std::uint32_t unit : {1U, 2U, 4U, 8U}) {
      OverlapDecisions decisions = from.decisions;
      if (decisions.order != GradientOrder::wgrads_first) break;
      decisions.units ^= unit;
      try_change(from, decisions);
    }
  }

  void improve_ahead(EvaluatedOverlap& from) {
    if (scenario_.parallel.gradient_sync != GradientSync::zero3) return;
    for (const auto lanes : {collective::ShardedLanes::apart, collective::ShardedLanes::one}) {
      OverlapDecisions decisions = from.decisions;
      decisions.lanes = lanes;
      try_change(from, decisions);
    }
    for (const std::optional<int>& ahead : kAhead) {
      OverlapDecisions decisions = from.decisions;
      decisions.ahead = ahead;
      try_change(from, decisions);
    }
  }

  void note(const EvaluatedOverlap& found) {
    if (!best_ || is_better(found, *best_)) best_ = found;
  }
  [[nodiscard]] bool is_at_bound() const {
    return best_ && best_->fits && best_->makespan <= space_.bound().lower_bound;
  }

  Result<FoundOverlap> result() {
    FoundOverlap made;
    if (best_ && (!baseline_ || !is_better(*baseline_, *best_))) {
      const OverlapVariant& own = variant(best_->decisions.variant);
      made.plan = decided(own, best_->decisions);
      made.undecided = own.plan;
      made.decided = decisions_text(best_->decisions, own);
      made.decisions = best_->decisions;
    } else if (baseline_) {
      best_ = baseline_;
      made.plan = made.undecided = baseline_plan_;
      made.decided = "a baseline as it is";
    } else {
      return refused("no overlap of {} can be simulated. Name one to see why.", schedule_.name);
    }
    made.makespan = best_->makespan;
    made.peak = best_->peak;
    made.fits = best_->fits;
    made.baselines = baselines_;
    made.is_proof = !limits_.any();
    made.bound = space_.bound();
    made.evaluated = evaluate_.evaluated();
    made.is_stopped = evaluate_.is_stopped();
    return made;
  }

  static constexpr std::size_t kManyClasses = 32;
  static constexpr int kLeastGain = 10'000;  ///< a sweep that gains less than this part is the last
  static inline const std::vector<std::optional<int>> kAhead{1, 2, 4, 8, std::nullopt};

  const Schedule& schedule_;
  const Scenario& scenario_;
  Arrangement arrangement_;
  OverlapLimits limits_;
  OverlapSpace space_;
  OverlapEvaluator evaluate_;
  std::vector<OverlapBaseline> baselines_;
  std::optional<EvaluatedOverlap> best_, baseline_;
  IterationPlan baseline_plan_;
};

}  // namespace

Result<FoundOverlap> best_overlap(const Schedule& schedule, const Scenario& scenario,
                                  Arrangement arrangement, const OverlapBudget& budget) {
  return OverlapSearch{schedule, scenario, arrangement, budget, OverlapScope::joint}.best();
}

Result<FoundOverlap> centauri_overlap(const Schedule& schedule, const Scenario& scenario,
                                      Arrangement arrangement, const OverlapBudget& budget) {
  return OverlapSearch{schedule, scenario, arrangement, budget, OverlapScope::as_given}.centauri();
}

Result<FoundOverlap> searched_overlap(std::string_view name, const Schedule& schedule,
                                      const Scenario& scenario, Arrangement arrangement,
                                      const OverlapLimits& limits, const SearchWatch& watch) {
  OverlapBudget budget{.limits = limits, .watch = watch};
  budget.limits.orders_too = false;  // that is decided here
  if (name == "best" && limits.orders_too && budget.limits == OverlapLimits{})
    return joint_overlap(orders_beside(schedule, scenario, arrangement), scenario, arrangement,
                         budget);
  if (name == "best") return best_overlap(schedule, scenario, arrangement, budget);
  if (name == "centauri") return centauri_overlap(schedule, scenario, arrangement, budget);
  return OverlapSearch{schedule, scenario, arrangement, OverlapBudget{}, OverlapScope::as_given}
      .by_rules();
}

}  // namespace longhaul::planner
