#include "planner/search/worth.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "planner/search/annealing.hpp"
#include "planner/search/in_parallel.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/portfolio.hpp"
#include "planner/search/replica_orders.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

using Clock = std::chrono::steady_clock;

/// Candidates from which orders are looked for, the best by worth.
constexpr std::size_t kStarts = 4;
/// Orders, as fast as the chosen one, that replicas have to choose from beside candidates.
constexpr std::size_t kOrdersOfReplicas = 12;
/// Parts of the time, or of the moves, of which one goes into replicas' own orders.
constexpr int kPartsOfReplicas = 4;

class WorthSearch {
public:
  WorthSearch(const Scenario& scenario, const SearchOptions& options, const WorthOf& worth_of)
      : scenario_{scenario}, options_{options}, worth_of_{worth_of} {}

  Result<WorthResult> run() {
    Result<SearchResult> fastest = try_find_best(scenario_, options_);
    if (!fastest) return fastest.refusal();
    judge_candidates(*std::move(fastest));
    if (found_.candidates.empty()) return refused("None of the schedules that fit can run.");
    begin_ = Clock::now();
    WorthCandidate best = *std::ranges::find_if(found_.candidates, [&](const auto& candidate) {
      return std::ranges::none_of(found_.candidates, [&](const auto& other) {
        return other.worth.is_better_than(candidate.worth);
      });
    });
    found_.started_from = best.schedule.name;
    improve(best);
    found_.schedule = std::move(best.schedule);
    found_.schedule.name = "best";
    found_.worth = best.worth;
    found_.judged = judged_;
    return std::move(found_);
  }

private:
  std::optional<Worth> judge(const Schedule& schedule) {
    ++judged_;
    return worth_of_(schedule, period_);
  }

  /// Those that fit and run, and what find_best() makes of them.
  void judge_candidates(SearchResult fastest) {
    // Candidates are judged whatever the time.
    if (std::ranges::any_of(fastest.candidates.rejected, &RejectedCandidate::unseen))
      fastest.candidates = find_candidates(scenario_, options_.arrangement, options_.placements);
    std::vector<Candidate> all = std::move(fastest.candidates.fitting);
    for (Schedule& schedule : fastest.candidates.in_cells) {
      if (schedule::first_violation(schedule, scenario_)) continue;
      const auto makespan = try_makespan(schedule, scenario_, options_.arrangement);
      if (makespan) all.push_back({std::move(schedule), *makespan});
    }
    std::ranges::stable_sort(all, {}, [](const Candidate& candidate) {
      return schedule::find_generator(candidate.schedule.name);
    });
    fastest.schedule.name = "fastest";
    all.push_back({std::move(fastest.schedule), fastest.makespan});
    period_ = std::ranges::min_element(all, {}, &Candidate::makespan)->makespan;
    std::vector<std::optional<Worth>> worths(all.size());
    in_parallel(all.size(), options_.threads,
                [&](std::size_t i) { worths[i] = judge(all[i].schedule); });
    for (std::size_t i = 0; i < all.size(); ++i)
      if (worths[i]) found_.candidates.push_back({std::move(all[i].schedule), *worths[i]});
    if (found_.candidates.empty()) return;
    scale_ = found_.candidates.back().worth.per_second;
    if (scale_ > 0) return;
    for (const WorthCandidate& each : found_.candidates)
      scale_ = std::max(scale_, each.worth.per_second);
  }

  /// The worth as the makespan of an order that is worth no prompts: both searches have one scale.
  [[nodiscard]] OrderScore score_of(const Worth& worth) const {
    constexpr double kWorthless = 0x1p60;
    const Worth& fastest = found_.candidates.back().worth;
    const double cost = worth.per_second > 0 ? static_cast<double>(fastest.period.count()) *
                                                   scale_ / worth.per_second
                                             : kWorthless;
    return {std::llround(std::min(cost, kWorthless)), worth.wait.count()};
  }

  void improve(WorthCandidate& best) {
    SearchOptions part = options_;
    part.time = options_.time * (kPartsOfReplicas - 1) / kPartsOfReplicas;
    if (part.moves) part.moves = *part.moves / kPartsOfReplicas * (kPartsOfReplicas - 1);
    Portfolio portfolio{scenario_, part,
                        [this](const Schedule& schedule) -> std::optional<JudgedOrder> {
                          const auto worth = judge(schedule);
                          if (!worth) return std::nullopt;
                          return JudgedOrder{worth->period.count(), score_of(*worth)};
                        }};
    add_starts(portfolio);
    if (!portfolio.starts().empty()) {
      const Portfolio::Outcome found = portfolio.run();
      found_.moves += found.moves;
      take(best, found.schedule);
    }
    const auto stopped = [this, before = judged_.load()] { return is_over(before); };
    if (!may_stagger(best.schedule) || stopped()) return;
    portfolio.add_layout(best.schedule);
    best = stagger(
        best, orders_beside(best, portfolio, stopped), scenario_,
        [this](const Schedule& schedule) { return judge(schedule); }, options_.threads, stopped);
  }

  void take(WorthCandidate& best, const Schedule& schedule) {
    const auto worth = judge(schedule);
    if (!worth || !worth->is_better_than(best.worth)) return;
    found_.started_from = schedule.name;
    best = {schedule, *worth};
  }

  /// The best candidates by worth whose orders a search can change.
  void add_starts(Portfolio& portfolio) const {
    std::vector<const WorthCandidate*> sorted;
    for (const WorthCandidate& candidate : found_.candidates)
      if (candidate.schedule.cell == 1 && candidate.schedule.replicas_share_rows())
        sorted.push_back(&candidate);
    std::ranges::stable_sort(sorted, [](const auto* one, const auto* other) {
      return one->worth.is_better_than(other->worth);
    });
    if (sorted.size() > kStarts) sorted.resize(kStarts);
    for (const WorthCandidate* candidate : sorted) {
      portfolio.add_layout(candidate->schedule);
      portfolio.add(candidate->schedule);
    }
  }

  /// Of its layout and no slower: candidates, and those on the way from it.
  [[nodiscard]] std::vector<Schedule> orders_beside(const WorthCandidate& best,
                                                    const Portfolio& portfolio,
                                                    const std::function<bool()>& stopped) const {
    const Schedule& own = best.schedule;
    std::vector<Schedule> orders;
    for (const auto& [schedule, worth] : found_.candidates)
      if (may_stagger(schedule) && worth.period <= best.worth.period &&
          schedule.copies == own.copies && schedule.device_of_chunk == own.device_of_chunk &&
          schedule.rows != own.rows)
        orders.push_back(schedule);
    for (Schedule& schedule : portfolio.as_fast_as(own, kOrdersOfReplicas, stopped))
      orders.push_back(std::move(schedule));
    return orders;
  }

  /// Of the search of replicas' orders, which began with so many `before`.
  [[nodiscard]] bool is_over(std::int64_t before) const {
    if (options_.stopped && options_.stopped()) return true;
    if (options_.moves)
      return (judged_ - before) * kMovesOfAJudgement * kPartsOfReplicas >= *options_.moves;
    return Clock::now() - begin_ >= options_.time;
  }

  const Scenario& scenario_;
  const SearchOptions& options_;
  const WorthOf& worth_of_;
  WorthResult found_;
  Duration period_{};  ///< of the fastest
  double scale_ = 1;   ///< worth a second of it; where it has none, of the best candidate
  Clock::time_point begin_;
  std::atomic<std::int64_t> judged_ = 0;
};

}  // namespace

Result<WorthResult> try_find_worthiest(const Scenario& scenario, const SearchOptions& options,
                                       const WorthOf& worth_of) {
  if (scenario.has_uneven_replicas())
    return refused(
        "best plans for replicas of equal costs and microbatches (these differ). Name a schedule "
        "that is not looked for.");
  return WorthSearch{scenario, options, worth_of}.run();
}

}  // namespace longhaul::planner
