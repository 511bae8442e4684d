#include "planner/advice/layout_advice.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/index.hpp"
#include "planner/advice/contest.hpp"
#include "planner/layouts/layout_figures.hpp"
#include "planner/layouts/layout_times.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::planner {
namespace {

/// Layouts of each combination of `layout` and `sites` under which every schedule is tried: so many
/// by their best static order, and so many more by what they could reach at most.
constexpr std::size_t kTriedByTime = 5, kTriedByBound = 3;
constexpr double kLayouts = 4 * kTriedByTime + kTriedByBound;

/// Few enough to be played one by one: bounds of time and cost know nothing of what idle time
/// earns.
bool few_layouts(const LayoutSpace& space) {
  constexpr std::size_t kMost = 2000;
  return space.tensor.size() * space.data.size() * space.pipeline.size() *
             space.micro_batch.size() * space.recompute.size() * space.sharding.size() *
             space.orders.size() <=
         kMost;
}

/// The parts of a layout that no order changes.
Layout without_order(Layout layout) {
  layout.order = {};
  return layout;
}

/// Links as no turns and no overlap can better them: sums between sites cost nothing, and a message
/// has the rate of a whole cell, between nodes of a site too.
LayoutProblem optimistic(const LayoutProblem& problem, SiteSplit split) {
  LayoutProblem best = problem;
  if (split == SiteSplit::stages) best.lending = kMostCell;
  for (std::vector<SiteLink>& row : best.links)
    for (SiteLink& link : row)
      link = split == SiteSplit::replicas
                 ? SiteLink{}
                 : SiteLink{link.latency, Bandwidth{link.bandwidth.bits_per_second() * kMostCell}};
  return best;
}

/// A GPU's blocks in an iteration, the mean of all devices.
double busy_ns(const LayoutTimes& times) {
  double busy = 0;
  for (const LayoutTimes::OfChunk& chunk : times.chunks) {
    const auto of = [&](BlockKind kind) { return chunk[static_cast<std::size_t>(kind)].count(); };
    busy += static_cast<double>(of(BlockKind::F) + of(BlockKind::R) +
                                std::max(of(BlockKind::B), of(BlockKind::D) + of(BlockKind::W)));
  }
  return busy * static_cast<double>(times.microbatches) / times.devices;
}

class LayoutAdviser {
public:
  LayoutAdviser(const LayoutProblem& problem, const LayoutSpace& space,
                const LayoutAdviceOptions& options)
      : problem_{problem},
        space_{space},
        options_{options},
        contest_{options.searches, pool_, kLayouts} {
    std::erase_if(space_.orders, knows_links);  // an idea of its own
    if (space_.orders.empty()) space_.orders = {LayoutOrder::one_f_one_b};
    if (std::ranges::count_if(problem.sites,
                              [](const LayoutSite& site) { return site.gpus != 0; }) == 1)
      pool_.refuse(Idea::sites, "there is one datacenter");
    else if (std::ranges::none_of(problem.placings,
                                  [&](const SiteChoice& each) { return uses_all(each); }))
      pool_.refuse(Idea::sites, "no placing of the search uses all datacenters");
    pool_.refuse(Idea::prefill, "it fills what stays idle, and an iteration takes as long");
    if (!options.searches.methods) pool_.refuse(Idea::method, kWhyExact);
    pool_.refuse(Idea::turns,
                 "no layout that is worth it sends from several pipelines over the "
                 "WAN (stages in several datacenters, two replicas or more)");
  }

  [[nodiscard]] std::optional<Refusal> search() {
    for (const IdeaSet& base : {IdeaSet{}, only(Idea::sites), only(Idea::layout),
                                only(Idea::layout) | only(Idea::sites)}) {
      find_layouts(base);
      contest_.try_schedules();
    }
    if (pool_.plans().empty()) return refused("{}", why_none());
    contest_.search_further([this](std::size_t number) { return with_turns(number); });
    if (pool_.best() == nullptr) return refused("{}", why_none());
    return std::nullopt;
  }

  [[nodiscard]] LayoutAdvice advice() {
    LayoutAdvice found;
    found.advice = pool_.advice();
    if (options_.searches.keeps_all) found.advice.all = pool_.plans_in_time();
    if (bound_is_known_) found.bound = whole_bound(found.advice);
    found.points = points_;
    found.pruned = pruned_;
    for (Tried& each : tried_) found.layouts.push_back(std::move(each.layout));
    return found;
  }

private:
  /// Of all plans by exact sums, as their scores are.
  [[nodiscard]] std::optional<Score> whole_bound(const Advice& advice) const {
    if (!bound_ || has(advice.best().ideas, Idea::method)) return std::nullopt;  // of no such plan
    const double updates = options_.searches.methods ? *options_.searches.methods->updates() : 1;
    constexpr double kMost = 0x1p62;
    return std::llround(std::min(kMost, updates * static_cast<double>(*bound_)));
  }

  struct Tried {
    AdvisedLayout layout;
    IdeaSet base;
  };
  /// With links as optimistic() has them.
  struct OptimisticTimes {
    explicit OptimisticTimes(LayoutProblem of) : problem{std::move(of)} {}
    LayoutProblem problem;
    LayoutTimer timer{problem};
  };

  /// Every datacenter that has GPUs.
  [[nodiscard]] bool uses_all(const SiteChoice& choice) const {
    return std::ssize(choice.sites) ==
           std::ranges::count_if(problem_.sites,
                                 [](const LayoutSite& site) { return site.gpus != 0; });
  }

  void find_layouts(const IdeaSet& base) {
    LayoutProblem problem = problem_;
    std::vector<int> numbers;
    keep_placings(problem, numbers, [&](const SiteChoice& choice) {
      return has(base, Idea::sites) || uses_all(choice);
    });
    if (numbers.empty()) return;
    const LayoutSpace space = has(base, Idea::layout) ? space_ : rule_of_thumb(problem, space_);
    LayoutSearch search = searched(problem, numbers, space);
    if (base.count() == 2) {
      points_ = search.points;
      for (const auto& [reason, count] : search.pruned) pruned_ += count;
      for (const auto* const counts : {&search.refused, &search.pruned})
        for (const auto& [reason, count] : *counts) refused_[reason] += count;
    }
    std::ranges::stable_sort(search.plans, {},
                             [&](const LayoutPlan& plan) { return standing_of(plan); });
    take_best(search.plans, base, kTriedByTime);
    if (base.count() == 2) take_most_hopeful(problem, numbers, space);
  }

  template <typename Keeps>
  static void keep_placings(LayoutProblem& problem, std::vector<int>& numbers, const Keeps& keeps) {
    std::vector<SiteChoice> kept;
    for (std::size_t i = 0; i < problem.placings.size(); ++i)
      if (keeps(problem.placings[i])) {
        kept.push_back(problem.placings[i]);
        numbers.push_back(static_cast<int>(i));
      }
    problem.placings = std::move(kept);
  }

  /// Every layout that a bound does not leave out, with the numbers of the whole problem's
  /// placings.
  LayoutSearch searched(const LayoutProblem& problem, const std::vector<int>& numbers,
                        const LayoutSpace& space) {
    LayoutSearchOptions how;
    how.keeps_all = how.keeps_late = true;
    how.exhaustive = options_.idle_nanodollars > 0 && few_layouts(space);
    if (!options_.searches.methods) how.longest = options_.searches.longest;
    how.is_stopped = options_.searches.stopped;
    LayoutSearch search = search_layouts(problem, space, how);
    if (search.gap_time != 0.0) bound_is_known_ = false;  // it was stopped
    for (LayoutPlan& plan : search.plans) plan.layout.placing = numbers[at(plan.layout.placing)];
    return search;
  }

  /// Those that could be best with turns and overlaps, and the bound of all.
  void take_most_hopeful(const LayoutProblem& problem, const std::vector<int>& numbers,
                         const LayoutSpace& space) {
    std::vector<LayoutPlan> hopeful;
    for (const SiteSplit split : {SiteSplit::stages, SiteSplit::replicas}) {
      LayoutProblem part = optimistic(problem, split);
      std::vector<int> kept;
      keep_placings(part, kept, [&](const SiteChoice& choice) { return choice.split == split; });
      if (kept.empty()) continue;
      for (int& number : kept) number = numbers[at(number)];
      const LayoutSearch search = searched(part, kept, space);
      hopeful.insert(hopeful.end(), search.plans.begin(), search.plans.end());
      const auto& least = options_.goal == AdviceGoal::time ? search.soonest : search.thriftiest;
      if (!least) continue;
      const Score bound = score_without_prompts(*least, least->bound);
      bound_ = std::min(bound, bound_.value_or(bound));
    }
    std::ranges::stable_sort(hopeful, {},
                             [&](const LayoutPlan& plan) { return standing_of(plan); });
    for (LayoutPlan& plan : hopeful) set_static_time(plan);
    take_best(hopeful, IdeaSet{}.set(), kTriedByBound);
  }

  /// What a plan that was searched with better links takes on the real ones.
  void set_static_time(LayoutPlan& plan) {
    if (timer_.graph(plan.layout) == nullptr) return;
    const LayoutTimes times = timer_.times(plan.layout);
    plan.iteration = orders_.makespan(plan.layout, times);
    plan.bound = least_makespan(plan.layout, times);
  }

  [[nodiscard]] double cost_of(const LayoutPlan& plan, Duration time) const {
    constexpr double kNsOfHour = 3600e9, kNanodollars = 1e9;
    return static_cast<double>(time.count()) / kNsOfHour * plan.priced_gpus *
           options_.dollars_per_gpu_hour * kNanodollars;
  }

  [[nodiscard]] Score score_without_prompts(const LayoutPlan& plan, Duration time) const {
    return options_.goal == AdviceGoal::time ? time.count() : std::llround(cost_of(plan, time));
  }

  [[nodiscard]] Score score_of(const LayoutPlan& plan, Duration time) {
    if (options_.goal == AdviceGoal::time) return time.count();
    return std::llround(cost_of(plan, time) - options_.idle_nanodollars * idle_ns(plan, time));
  }

  /// By its score, the later ones by how late they are.
  [[nodiscard]] std::pair<Duration, Score> standing_of(const LayoutPlan& plan) {
    Duration late{};
    if (const auto longest = longest_on(plan.layout.gpus()); longest && !options_.searches.methods)
      late = std::max(late, plan.iteration - *longest);
    return {late, score_of(plan)};
  }

  /// Of all GPUs in an iteration of that time; 0 where idle time earns nothing.
  [[nodiscard]] double idle_ns(const LayoutPlan& plan, Duration time) {
    if (options_.idle_nanodollars == 0 || timer_.graph(plan.layout) == nullptr) return 0;
    const auto [found, is_new] = busy_ns_.try_emplace(without_order(plan.layout));
    if (is_new) found->second = busy_ns(timer_.times(plan.layout));
    return static_cast<double>(plan.layout.gpus()) *
           std::max(0.0, static_cast<double>(time.count()) - found->second);
  }
  [[nodiscard]] Score score_of(const LayoutPlan& plan) { return score_of(plan, plan.iteration); }

  /// Is it late in any order, also with turns and overlaps?
  [[nodiscard]] bool is_hopeless(const LayoutPlan& plan) {
    const Layout& layout = plan.layout;
    const auto longest = longest_on(layout.gpus());
    if (!longest || plan.iteration <= *longest || options_.searches.methods) return false;
    const SiteSplit split = problem_.placings[at(layout.placing)].split;
    auto times = optimistic_times_.find(split);
    if (times == optimistic_times_.end())
      times = optimistic_times_.try_emplace(split, optimistic(problem_, split)).first;
    LayoutTimer& timer = times->second.timer;
    return timer.graph(layout) != nullptr &&
           least_of_any_order(layout, timer.times(layout)) > *longest;
  }

  /// Of the sorted plans the first `most` layouts that are not there yet.
  void take_best(const std::vector<LayoutPlan>& plans, const IdeaSet& base, std::size_t most) {
    for (const LayoutPlan& plan : plans) {
      if (most == 0) return;
      if (is_hopeless(plan)) {
        if (base.count() == 2) ++refused_["deadline"];
        continue;
      }
      if (!taken_.insert(without_order(plan.layout)).second) continue;
      IdeaSet ideas = base & (only(Idea::layout) | only(Idea::sites));
      if (uses_all(problem_.placings[at(plan.layout.placing)]))
        ideas.reset(static_cast<std::size_t>(Idea::sites));
      contest_.add(entry_of(plan, ideas));
      --most;
    }
  }

  /// Its plans' layouts, in the order of the contest.
  [[nodiscard]] Contest::Entry entry_of(const LayoutPlan& plan, const IdeaSet& base, int cell = 1) {
    Tried& tried = tried_.emplace_back();
    tried.layout.layout = plan;
    const std::string name = fmt::format("{} of {} GPUs", problem_.model.model, plan.layout.gpus());
    tried.layout.text = representative_text(problem_, plan, name, cell) + options_.appended;
    tried.layout.scenario = scenario::parse_scenario(tried.layout.text, name, options_.overrides);
    tried.base = base;
    return {.scenario = &tried.layout.scenario,
            .base = base,
            .first_schedules = {to_string(plan.layout.order)},
            .score = [this, &tried](Duration time) { return score_of(tried.layout.layout, time); },
            .longest = longest_on(plan.layout.gpus())};
  }

  /// Replicas that take turns: those whose messages fill the WAN while a block computes, as
  /// `parallel.cell = "auto"` has it, but a divisor of all; 1: nothing is sent over the WAN.
  [[nodiscard]] int cell_of(const Layout& layout) {
    const SiteChoice& choice = problem_.placings[at(layout.placing)];
    if (choice.sites.size() == 1 || choice.split == SiteSplit::replicas) return 1;
    const std::vector<int> all = divisors(layout.data);
    int cell = 1;
    for (const int count : all)
      if (count <= kMostCell) cell = count;
    return cell;
  }

  [[nodiscard]] std::optional<Duration> longest_on(std::int64_t gpus) const {
    return options_.longest_on ? options_.longest_on(gpus) : options_.searches.longest;
  }

  /// The same layout as a whole cell of its pipelines.
  [[nodiscard]] std::optional<Contest::Entry> with_turns(std::size_t number) {
    const LayoutPlan plan = tried_[number].layout.layout;
    const int cell = cell_of(plan.layout);
    if (cell == 1) return std::nullopt;
    return entry_of(plan, tried_[number].base, cell);
  }

  [[nodiscard]] std::string why_none() const {
    std::string reasons;
    for (const auto& [reason, count] : refused_)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : ", ", reason, count);
    return fmt::format("no plan is left of {} layouts ({}). Widen what refuses most.", points_,
                       reasons);
  }

  const LayoutProblem& problem_;
  LayoutSpace space_;
  const LayoutAdviceOptions& options_;
  IdeaPool pool_;
  Contest contest_;
  LayoutTimer timer_{problem_};
  std::map<SiteSplit, OptimisticTimes> optimistic_times_;
  std::map<Layout, double> busy_ns_;  ///< by layout without an order, where idle time earns
  OrderTimer orders_;
  std::deque<Tried> tried_;
  std::set<Layout> taken_;
  std::optional<Score> bound_;
  bool bound_is_known_ = true;
  std::int64_t points_ = 0, pruned_ = 0;
  std::map<std::string, std::int64_t> refused_;
};

}  // namespace

Result<LayoutAdvice> advise_layouts(const LayoutProblem& problem, const LayoutSpace& space,
                                    const LayoutAdviceOptions& options) {
  LayoutAdviser adviser{problem, space, options};
  if (auto refusal = adviser.search()) return *std::move(refusal);
  return adviser.advice();
}

}  // namespace longhaul::planner
