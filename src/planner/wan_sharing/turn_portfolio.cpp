#include "planner/wan_sharing/turn_portfolio.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/index.hpp"
#include "base/random.hpp"
#include "planner/search/annealing.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/search_round.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Searches of the first round; half of them, the better ones, go on in each next round.
constexpr std::size_t kTurnSearches = 8;
constexpr int kTurnRounds = 3;
/// Starts that take longer than the best one by this factor are left out.
constexpr double kTurnHope = 1.15;
/// Temperatures, in parts of the longest forward, at which searches begin to cool. No one of them
/// is the best everywhere.
constexpr std::array kHot{0.03, 0.1, 0.4};
using Clock = std::chrono::steady_clock;

}  // namespace

TurnPortfolio::TurnPortfolio(const Scenario& scenario, const SearchOptions& options,
                             Clock::time_point begin, std::vector<Candidate> starts)
    : scenario_{scenario},
      options_{options},
      begin_{begin},
      threads_{options.threads > 0 ? to_size(options.threads)
                                   : std::max(1U, std::thread::hardware_concurrency())} {
  std::ranges::stable_sort(starts, {}, &Candidate::makespan);
  const auto best = static_cast<double>(starts.front().makespan.count());
  std::erase_if(starts, [&](const Candidate& start) {
    return static_cast<double>(start.makespan.count()) > best * kTurnHope;
  });
  if (starts.size() > kTurnSearches) starts.resize(kTurnSearches);
  for (const Candidate& start : starts) {
    auto problem = std::make_shared<const TurnProblem>(start.schedule, scenario_);
    TurnOrders orders{*problem};
    searches_.push_back({std::move(problem), start, std::move(orders), 0, 0});
  }
  for (std::size_t i = 0; searches_.size() < kTurnSearches; ++i) searches_.push_back(searches_[i]);
}

TurnPortfolio::Outcome TurnPortfolio::run() {
  Outcome result;
  result.best = searches_.front().at;
  for (int round = 0; round < kTurnRounds; ++round) {
    run_round(round);
    std::ranges::stable_sort(searches_, {}, [](const Search& s) { return s.at.makespan; });
    for (Search& search : searches_) {
      result.moves += std::exchange(search.moves, 0);
      result.accepted += std::exchange(search.accepted, 0);
    }
    if (searches_.front().at.makespan < result.best.makespan) result.best = searches_.front().at;
    if (round + 1 < kTurnRounds)
      searches_.erase(searches_.begin() + std::ssize(searches_) / 2, searches_.end());
  }
  return result;
}

void TurnPortfolio::run_round(int round) {
  planner::run_round({round, kTurnRounds, searches_.size(), threads_, begin_}, options_,
                     [&](std::size_t i, const SearchProgress& progress) {
                       run_search(searches_[i], round, i, progress);
                     });
}

/// The evaluator leaves out what several legs contend for: what it likes better must be simulated.
void TurnPortfolio::run_search(Search& search, int round, std::size_t index,
                               const SearchProgress& progress) const {
  const auto unit = static_cast<double>(scenario_.largest_forward().count());
  const double hot = kHot[index % kHot.size()] / (1 << round);
  const std::uint64_t seed =
      derived_seed(options_.seed, static_cast<std::uint64_t>(round) + 101, index);
  TurnAnnealingResult found =
      anneal_turns(*search.problem, search.orders, {unit * hot, unit * 0.005}, seed, progress);
  search.moves += found.moves;
  search.accepted += found.accepted;
  Schedule schedule = to_schedule(*search.problem, found.best, search.at.schedule);
  if (schedule::first_violation(schedule, scenario_)) return;
  const Duration makespan = makespan_of(schedule, scenario_);
  if (makespan >= search.at.makespan) return;
  search.at = {std::move(schedule), makespan};
  search.orders = std::move(found.best);
}

}  // namespace longhaul::planner
