#include "planner/search/portfolio.hpp"

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/orders/order_problem.hpp"
#include "planner/orders/orders.hpp"
#include "planner/orders/starts.hpp"
#include "planner/search/annealing.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/search_round.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Searches of the first round; half of them, the better ones, go on in each next round.
constexpr std::size_t kSearches = 8;
constexpr int kRounds = 3;
/// List schedules of a layout, at most, and how many blocks they may have together.
constexpr std::int64_t kListSchedules = 64;
constexpr std::int64_t kListedBlocks = 400'000;
/// Layouts whose best start takes longer than the best of all by these factors are given up: an
/// order that has to be simulated is looked at ten times less often.
constexpr double kHope = 1.12;
constexpr double kHopeOfSimulations = 1.03;
/// Searches of the first round where orders are judged: a judge looks at few of them.
constexpr std::size_t kJudgedSearches = 2;
/// The least time of a search, a block: that of 50 evaluations of a whole order of P = 64
/// (docs/performance.md: 24,576 blocks, 1000 a second).
constexpr std::chrono::microseconds kLeastPerBlock{2};
using Clock = std::chrono::steady_clock;

std::size_t threads_of(const SearchOptions& options) {
  if (options.threads > 0) return to_size(options.threads);
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

Portfolio::Portfolio(const Scenario& scenario, const SearchOptions& options, ScheduleJudge judge)
    : scenario_{scenario},
      options_{options},
      judge_{std::move(judge)},
      time_alone_{time_alone(scenario)},
      begin_{Clock::now()},
      threads_{threads_of(options)} {}

std::shared_ptr<const ChunkLayout> Portfolio::layout_of(const Schedule& schedule) const {
  const auto found = std::ranges::find_if(layouts_, [&](const auto& layout) {
    return layout->like.copies == schedule.copies &&
           layout->like.device_of_chunk == schedule.device_of_chunk;
  });
  return found == layouts_.end() ? nullptr : *found;
}

void Portfolio::add_layout(const Schedule& schedule) {
  if (layout_of(schedule)) return;
  const Schedule like = whole_blocks(schedule);
  Simulation simulation = [this, like](const Orders& orders) -> std::optional<std::int64_t> {
    const Result<Duration> makespan =
        try_makespan(orders.schedule(like), scenario_, options_.arrangement, time_alone_);
    if (!makespan) return std::nullopt;  // blocks wait for each other
    return makespan->count();
  };
  OrderJudge judge;
  if (judge_) judge = [this, like](const Orders& orders) { return judge_(orders.schedule(like)); };
  layouts_.push_back(std::make_shared<const ChunkLayout>(
      ChunkLayout{like, OrderProblem{like, scenario_, options_.arrangement}, std::move(simulation),
                  std::move(judge)}));
}

void Portfolio::add(const Schedule& schedule, std::optional<Duration> makespan) {
  if (!schedule.replicas_share_rows()) return;
  const auto layout = layout_of(schedule);
  LONGHAUL_ASSERT(layout, "the layout of {} is not known", schedule.name);
  Start start{schedule.name, layout, whole_blocks(schedule), {}};
  // The search knows collectives as one op, the makespan as messages.
  const bool same_grain = scenario_.parallel.replicas * schedule.copies == 1;
  if (!judge_ && makespan && same_grain && start.schedule == schedule) {
    start.score.cost = makespan->count();
  } else {
    if (schedule::first_violation(start.schedule, scenario_)) return;
    start.score =
        SearchState{layout->problem, start.schedule, layout->simulation, layout->judge}.score();
  }
  starts_.push_back(std::move(start));
}

void Portfolio::add_own_starts() {
  for (const auto& layout : layouts_) {
    const auto has_start = [&] {
      return std::ranges::find(starts_, layout, &Start::layout) != starts_.end();
    };
    const std::int64_t count =
        std::clamp(kListedBlocks / layout->problem.blocks(), std::int64_t{2}, kListSchedules);
    for (std::int64_t i = 0; i < count && (!is_late() || starts_.empty()); ++i) {
      auto made = list_schedule(layout->problem, layout->like,
                                derived_seed(options_.seed, static_cast<std::uint64_t>(i)));
      if (!made) continue;
      made->name = "list schedule";
      add(*made);
    }
    if (has_start()) continue;
    Schedule serial = serial_schedule(layout->like, layout->problem.recomputes());
    serial.name = "one microbatch at a time";
    add(serial);
  }
}

std::vector<Schedule> Portfolio::as_fast_as(const Schedule& schedule, std::size_t count,
                                            const std::function<bool()>& stopped) const {
  const auto layout = layout_of(schedule);
  LONGHAUL_ASSERT(layout, "the layout of {} is not known", schedule.name);
  const Schedule start = whole_blocks(schedule);
  if (schedule::first_violation(start, scenario_)) return {};
  return wander(layout->problem, start, layout->simulation, count, options_.seed, stopped);
}

bool Portfolio::is_late() const {
  return !options_.moves && Clock::now() - begin_ > options_.time * 3 / 10;
}

/// The best starts, layouts in turn, those with the best start first: which layout wins shows late.
std::vector<Portfolio::Search> Portfolio::first_searches(std::size_t count) const {
  std::vector<Start> sorted = starts_;
  std::ranges::stable_sort(sorted, {}, &Start::score);
  const auto best = static_cast<double>(sorted.front().score.cost);
  std::vector<std::vector<const Start*>> of_layout;
  for (const Start& start : sorted) {
    const auto same = std::ranges::find_if(
        of_layout, [&](const auto& mine) { return mine.front()->layout == start.layout; });
    const double hope = start.layout->problem.is_exact() ? kHope : kHopeOfSimulations;
    if (same != of_layout.end()) {
      (*same).push_back(&start);
    } else if (static_cast<double>(start.score.cost) <= best * hope) {
      of_layout.push_back({&start});
    }
  }
  std::vector<Search> searches;
  for (std::size_t place = 0; searches.size() < count; ++place) {
    for (const auto& mine : of_layout) {
      if (searches.size() < count) searches.push_back({*mine[place % mine.size()], 0, 0});
    }
  }
  return searches;
}

/// As many as the time that is left is worth, at least one.
std::size_t Portfolio::affordable_searches() const {
  if (judge_) return kJudgedSearches;
  if (options_.moves) return kSearches;
  const std::size_t most = kSearches * std::max<std::size_t>(1, threads_ / 2);
  std::int64_t blocks = 1;
  for (const Start& start : starts_)
    blocks = std::max(blocks, std::int64_t{start.layout->problem.blocks()});
  const auto left = std::max(begin_ + options_.time - Clock::now(), Clock::duration::zero());
  const auto worth = left * static_cast<std::int64_t>(threads_) / (kLeastPerBlock * blocks);
  return std::clamp(static_cast<std::size_t>(worth), std::size_t{1}, most);
}

Portfolio::Outcome Portfolio::run() {
  std::vector<Search> searches = first_searches(affordable_searches());
  Outcome total;
  for (int round = 0; round < kRounds; ++round) {
    run_round(searches, round);
    std::ranges::stable_sort(searches, {}, [](const Search& s) { return s.from.score; });
    for (Search& search : searches) {
      total.moves += std::exchange(search.moves, 0);
      total.accepted += std::exchange(search.accepted, 0);
    }
    if (round + 1 < kRounds) searches.resize(std::max<std::size_t>(1, searches.size() / 2));
  }
  total.schedule = searches.front().from.schedule;
  total.schedule.name = searches.front().from.name;
  return total;
}

void Portfolio::run_round(std::vector<Search>& searches, int round) {
  planner::run_round({round, kRounds, searches.size(), threads_, begin_}, options_,
                     [&](std::size_t i, const SearchProgress& progress) {
                       run_search(searches[i], round, i, progress);
                     });
}

void Portfolio::run_search(Search& search, int round, std::size_t index,
                           const SearchProgress& progress) const {
  const ChunkLayout& layout = *search.from.layout;
  const std::uint64_t seed =
      derived_seed(options_.seed, static_cast<std::uint64_t>(round) + 1, index);
  const AnnealingResult found =
      anneal(layout.problem, search.from.schedule, layout.simulation,
             cooling_of(search, round, index), seed, progress, layout.judge);
  search.from.schedule = found.best.schedule(search.from.schedule);
  search.from.score = found.score;
  search.moves += found.moves;
  search.accepted += found.accepted;
}

/// Temperatures in parts of the longest forward: measured on CrossPipe's cases
/// (docs/performance.md).
Cooling Portfolio::cooling_of(const Search&, int round, std::size_t index) const {
  const auto unit = static_cast<double>(scenario_.largest_forward().count());
  const double hot = (index % 2 == 0 ? 0.026 : 0.05) / (1 << round);
  return {unit * hot, unit * 0.005};
}

ImprovementResult improve(const Schedule& start, const Scenario& scenario,
                          const SearchOptions& options) {
  if (const auto violation = schedule::first_violation(start, scenario))
    throw Error{violation->text};
  ImprovementResult improved{start, makespan_of(start, scenario, options.arrangement), 0, 0};
  SearchOptions one_thread = options;
  one_thread.threads = 1;
  Portfolio portfolio{scenario, one_thread};
  portfolio.add_layout(start);
  portfolio.add(start);
  if (portfolio.starts().empty()) return improved;
  Portfolio::Outcome found = portfolio.run();
  improved.moves = found.moves;
  improved.accepted = found.accepted;
  const Duration makespan = makespan_of(found.schedule, scenario, options.arrangement);
  if (makespan >= improved.makespan) return improved;
  found.schedule.name = start.name;
  improved.schedule = std::move(found.schedule);
  improved.makespan = makespan;
  return improved;
}

}  // namespace longhaul::planner
