#include "planner/overlap/overlap_search.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "planner/overlap/partition_forest.hpp"

namespace longhaul::planner {
namespace {

using collective::CommunicationClass;
using collective::IterationPlan;
using collective::Overlap;
using collective::Partition;
using collective::Tier;

class OverlapSearch {
public:
  OverlapSearch(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                const OverlapBudget& budget)
      : schedule_{schedule},
        scenario_{scenario},
        arrangement_{arrangement},
        budget_{budget},
        evaluate_{variants_, budget_} {}

  Result<FoundOverlap> best() {
    if (auto why = find_variants(Space::joint)) return *std::move(why);
    run_baselines();
    std::vector<EvaluatedOverlap> starts = run_grid();
    constexpr std::size_t kDescents = 2;
    std::ranges::stable_sort(starts, is_better);
    for (std::size_t i = 0; i < starts.size() && i < kDescents && !is_at_bound(); ++i)
      descend(starts[i]);
    return result();
  }

  /// One iteration, as the rules say; the others are simulated to be named.
  Result<FoundOverlap> by_rules() {
    if (auto why = find_variants(Space::as_given)) return *std::move(why);
    const OverlapVariant& variant = variants_.front();
    const Result<PartitionForest> forest = partition_forest(variant);
    if (!forest) return forest.refusal();
    best_ = evaluate_(decisions_by_rules(variant, *forest));
    if (!best_) return refused("what the rules decide cannot be simulated. Take centauri.");
    Result<FoundOverlap> made = result();
    if (!made) return made;
    FoundOverlap found = *std::move(made);
    found.is_proof = false;
    return found;
  }

  Result<FoundOverlap> centauri() {
    if (auto why = find_variants(Space::as_given)) return *std::move(why);
    run_baselines();
    std::optional<EvaluatedOverlap> found = evaluate_(start_of(0));
    if (!found) return result();
    note(*found);
    if (const Result<PartitionForest> forest = partition_forest(variants_.front()))
      try_change(*found, decisions_by_rules(variants_.front(), *forest));
    for (const Tier tier : every<Tier>()) {
      for (std::size_t c = 0; c < variants_[0].classes.size(); ++c)
        if (variants_[0].classes[c].tier == tier) improve_class(*found, c);
      if (tier == Tier::layer) improve_order(*found);
    }
    return result();
  }

private:
  enum class Space : std::uint8_t { as_given, joint };

  std::optional<Refusal> find_variants(Space space) {
    std::optional<Refusal> why;
    for (const Parallel& parallel : shardings(space)) {
      for (const Schedule& order : orders(space)) {
        Scenario own = scenario_;
        own.parallel = parallel;
        for (const CopySums sums : {CopySums::of_chunk, CopySums::of_units}) {
          if (sums == CopySums::of_units && !has_copies(parallel)) continue;
          Result<OverlapVariant> made = overlap_variant(order, own, arrangement_, sums);
          if (!made && !why) why = made.refusal();
          if (made) variants_.push_back(*std::move(made));
        }
      }
    }
    if (variants_.empty()) return why;
    for (const OverlapVariant& variant : variants_) {
      options_.emplace_back();
      for (const CommunicationClass& each : variant.classes)
        options_.back().push_back(partition_options(variant, each));
    }
    return std::nullopt;
  }

  static bool has_copies(const Parallel& parallel) {
    return parallel.gradient_sync == GradientSync::zero3 && parallel.shard > 1 &&
           parallel.replicas > parallel.shard;
  }

  /// The scenario's first.
  [[nodiscard]] std::vector<Parallel> shardings(Space space) const {
    std::vector<Parallel> all{scenario_.parallel};
    const auto add = [&](const Parallel& parallel) {
      const auto same = [&](const Parallel& each) {
        return each.gradient_sync == parallel.gradient_sync && each.shard == parallel.shard &&
               each.sharding == parallel.sharding;
      };
      if (std::ranges::none_of(all, same)) all.push_back(parallel);
    };
    for (const Overlap& overlap : collective::overlaps())
      if (space == Space::joint && divides_as(overlap, scenario_.parallel))
        add(overlap.sharded(scenario_.parallel));
    if (space == Space::joint && scenario_.parallel.gradient_sync == GradientSync::zero3) {
      Parallel parallel = scenario_.parallel;
      if (parallel.sharding.regather == Regather::always)
        parallel.sharding.regather = Regather::all_but_last;
      for (const std::optional<int>& layers : {std::optional<int>{}, std::optional<int>{1}}) {
        parallel.sharding.unit_layers = layers;
        add(parallel);
      }
    }
    return all;
  }

  [[nodiscard]] std::vector<Schedule> orders(Space space) const {
    std::vector<Schedule> all{schedule_};
    if (space == Space::joint) {
      Schedule other = collective::breadth_first(schedule_);
      if (other.rows != schedule_.rows) all.push_back(std::move(other));
    }
    return all;
  }

  /// Each overlap as its authors run it.
  void run_baselines() {
    for (const Overlap& overlap : collective::overlaps()) {
      if (!divides_as(overlap, scenario_.parallel)) continue;
      const Result<IterationPlan> plan =
          collective::overlapped(overlap, schedule_, scenario_, arrangement_);
      if (!plan) continue;
      const std::optional<EvaluatedOverlap> found = evaluate_.simulated(*plan, {});
      if (!found) continue;
      baselines_.push_back({overlap.name, found->makespan, found->peak, found->fits});
      if (!baseline_ || is_better(*found, *baseline_)) {
        baseline_ = found;
        baseline_plan_ = *plan;
      }
    }
  }

  [[nodiscard]] OverlapDecisions start_of(std::size_t variant) const {
    OverlapDecisions decisions;
    decisions.variant = variant;
    decisions.ahead = scenario_.parallel.sharding.prefetch;
    decisions.partitions.resize(variants_[variant].classes.size());
    return decisions;
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
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      for (const Start start : {Start::flat, Start::grouped, Start::in_pieces}) {
        OverlapDecisions decisions = start_of(v);
        for (std::size_t c = 0; c < options_[v].size(); ++c) {
          Partition& own = decisions.partitions[c];
          if (start != Start::flat) own = grouped_start(options_[v][c]);
          if (start == Start::in_pieces) own = in_most_pieces(own, options_[v][c]);
        }
        for (const std::optional<int>& ahead : kAhead) {
          decisions.ahead = ahead;
          for (const GradientOrder order : every<GradientOrder>()) {
            decisions.order = order;
            if (is_at_bound()) return all;
            if (const auto found = evaluate_(decisions)) {
              note(*found);
              all.push_back(*found);
            }
          }
          if (variants_[v].plan.scenario->parallel.gradient_sync != GradientSync::zero3) break;
        }
      }
    }
    return all;
  }

  /// One decision at a time, until none gains.
  void descend(EvaluatedOverlap from) {
    for (bool gains = true; gains && !is_at_bound() && !evaluate_.is_spent();) {
      const Duration before = from.makespan;
      improve_order(from);
      improve_ahead(from);
      for (std::size_t c = 0; c < from.decisions.partitions.size(); ++c) improve_class(from, c);
      gains = from.makespan < before - before / kLeastGain;
    }
  }

  bool try_change(EvaluatedOverlap& from, const OverlapDecisions& decisions) {
    if (is_at_bound()) return false;
    const std::optional<EvaluatedOverlap> found = evaluate_(decisions);
    if (!found) return false;
    note(*found);
    if (!is_better(*found, from)) return false;
    from = *found;
    return true;
  }

  void improve_class(EvaluatedOverlap& from, std::size_t c) {
    for (const Partition& option : options_[from.decisions.variant][c]) {
      OverlapDecisions decisions = from.decisions;
      decisions.partitions[c] = option;
      try_change(from, decisions);
    }
  }

  void improve_order(EvaluatedOverlap& from) {
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
  [[nodiscard]] OverlapBound bound() const {
    return std::ranges::min_element(
               variants_, {}, [](const OverlapVariant& each) { return each.bound.lower_bound; })
        ->bound;
  }
  [[nodiscard]] bool is_at_bound() const {
    return best_ && best_->fits && best_->makespan <= bound().lower_bound;
  }

  Result<FoundOverlap> result() {
    FoundOverlap made;
    if (best_ && (!baseline_ || !is_better(*baseline_, *best_))) {
      const OverlapVariant& variant = variants_[best_->decisions.variant];
      made.plan = decided(variant, best_->decisions);
      made.undecided = variant.plan;
      made.decided = decisions_text(best_->decisions, variant);
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
    made.bound = bound();
    made.evaluated = evaluate_.evaluated();
    return made;
  }

  static constexpr int kLeastGain = 10'000;  ///< a sweep that gains less than this part is the last
  static inline const std::vector<std::optional<int>> kAhead{1, 2, 4, 8, std::nullopt};

  const Schedule& schedule_;
  const Scenario& scenario_;
  Arrangement arrangement_;
  OverlapBudget budget_;
  std::vector<OverlapVariant> variants_;
  std::vector<std::vector<std::vector<Partition>>> options_;  ///< by variant and class
  OverlapEvaluator evaluate_;
  std::vector<OverlapBaseline> baselines_;
  std::optional<EvaluatedOverlap> best_, baseline_;
  IterationPlan baseline_plan_;
};

}  // namespace

bool divides_as(const Overlap& overlap, const Parallel& parallel) {
  const Parallel own = overlap.sharded(parallel);
  const auto sums_whole = [](GradientSync sync) {
    return sync == GradientSync::all_reduce || divides_optimizer(sync);
  };
  if (sums_whole(parallel.gradient_sync)) return sums_whole(own.gradient_sync);
  return own.gradient_sync == parallel.gradient_sync && own.shard == parallel.shard;
}

Result<FoundOverlap> best_overlap(const Schedule& schedule, const Scenario& scenario,
                                  Arrangement arrangement, const OverlapBudget& budget) {
  return OverlapSearch{schedule, scenario, arrangement, budget}.best();
}

Result<FoundOverlap> centauri_overlap(const Schedule& schedule, const Scenario& scenario,
                                      Arrangement arrangement, const OverlapBudget& budget) {
  return OverlapSearch{schedule, scenario, arrangement, budget}.centauri();
}

Result<FoundOverlap> searched_overlap(std::string_view name, const Schedule& schedule,
                                      const Scenario& scenario, Arrangement arrangement) {
  if (name == "best") return best_overlap(schedule, scenario, arrangement);
  if (name == "centauri") return centauri_overlap(schedule, scenario, arrangement);
  return OverlapSearch{schedule, scenario, arrangement, OverlapBudget{}}.by_rules();
}

}  // namespace longhaul::planner
