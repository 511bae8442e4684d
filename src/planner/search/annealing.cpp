#include "planner/search/annealing.hpp"

#include <algorithm>

#include "base/statistics/portable_math.hpp"

namespace longhaul::planner {
namespace {

using Kind = OrderProblem::Kind;

/// Moves between two looks at progress and temperature: tens of microseconds, or some simulations.
constexpr int kMoveBatch = 256;
constexpr int kBatchOfSimulations = 16;
/// Steps of a walk from one order to the next that is kept, for each block; fewer where each is
/// simulated.
constexpr int kWanderedSteps = 40;
constexpr int kSimulatedSteps = 1;

class Annealing {
public:
  Annealing(const OrderProblem& problem, const Schedule& start, const Simulation& simulation,
            std::uint64_t seed, const OrderJudge& judge = nullptr)
      : problem_{problem},
        random_{seed},
        walk_{problem, start, simulation, judge},
        moves_{walk_.orders()},
        batch_{judge                ? 1
               : problem.is_exact() ? kMoveBatch
                                    : kBatchOfSimulations} {}

  AnnealingResult run(Cooling cooling, const SearchProgress& progress) {
    AnnealingResult result{walk_.orders(), walk_.score(), 0, 0};
    const double cooled = cooling.hot > 0 ? logarithm(cooling.cold / cooling.hot) : 0;
    for (double done = progress(0); done < 1;
         done = progress(result.moves + kMovesOfAJudgement * walk_.judged())) {
      const double heat = cooling.hot * exponential(cooled * done);
      for (int i = 0; i < batch_; ++i) step(heat, result);
    }
    if (at_best_) keep(result);
    return result;
  }

  /// See planner::wander().
  std::vector<Schedule> wander(const Schedule& like, std::size_t count,
                               const std::function<bool()>& stopped) {
    std::vector<Schedule> kept;
    const std::int64_t limit = walk_.score().cost;
    const int steps = problem_.blocks() * (problem_.is_exact() ? kWanderedSteps : kSimulatedSteps);
    for (std::size_t i = 0; i < count; ++i) {
      for (int step = 0; step < steps; ++step) {
        if (step % batch_ == 0 && stopped()) return kept;
        if (propose()) walk_.attempt(change_, limit);
      }
      Schedule now = walk_.orders().schedule(like);
      const auto same = [&](const Schedule& other) { return other.rows == now.rows; };
      if (!same(like) && std::ranges::none_of(kept, same)) kept.push_back(std::move(now));
    }
    return kept;
  }

private:
  void step(double heat, AnnealingResult& result) {
    ++result.moves;
    if (!propose()) return;
    // Metropolis's rule with the draw made first: how long may the new order take?
    const double worse = -heat * logarithm(random_.uniform() + 1e-18);
    const std::int64_t before = walk_.score().cost;
    if (!walk_.attempt(change_, before + static_cast<std::int64_t>(worse))) return;
    ++result.accepted;
    if (walk_.score() < result.score) {
      result.score = walk_.score();
      at_best_ = true;
    } else if (at_best_ && walk_.score() > result.score) {
      keep(result);
      result.best.apply(change_);  // takes the step back
    }
  }

  /// Copies the order only when the walk leaves it: improvements come in rows.
  void keep(AnnealingResult& result) {
    result.best = walk_.orders();
    at_best_ = false;
  }

  bool propose() {
    const BlockId block = choose_block();
    const std::int64_t what = random_.between(0, 15);
    if (what < 2) {
      const BlockId gradient =
          problem_.id(Kind::G, problem_.chunk_of(block), problem_.microbatch_of(block));
      return walk_.orders().is_fused(gradient) ? moves_.split(gradient, random_, change_)
                                               : moves_.fuse(gradient, random_, change_);
    }
    // One place in half of the cases, and farther less and less often.
    int steps = 1;
    while (steps < 24 && random_.next() % 2 == 0) steps += 1 + steps / 3;
    return moves_.shift(block, random_.next() % 2 == 0 ? steps : -steps, change_);
  }

  BlockId choose_block() {
    if (random_.next() % 2 == 0) {
      const auto& path = walk_.critical_path(random_);
      return path[random_.next() % path.size()];
    }
    const auto row =
        walk_.orders().row(DeviceId{static_cast<int>(random_.between(0, problem_.devices() - 1))});
    return row[random_.next() % row.size()];
  }

  const OrderProblem& problem_;
  Random random_;
  SearchState walk_;
  Moves moves_;
  Change change_;
  int batch_;             ///< moves between two looks at the progress
  bool at_best_ = false;  ///< the walk is at an order as good as the best, not kept yet
};

}  // namespace

AnnealingResult anneal(const OrderProblem& problem, const Schedule& start,
                       const Simulation& simulation, Cooling cooling, std::uint64_t seed,
                       const SearchProgress& progress, const OrderJudge& judge) {
  return Annealing{problem, start, simulation, seed, judge}.run(cooling, progress);
}

std::vector<Schedule> wander(const OrderProblem& problem, const Schedule& start,
                             const Simulation& simulation, std::size_t count, std::uint64_t seed,
                             const std::function<bool()>& stopped) {
  return Annealing{problem, start, simulation, seed}.wander(start, count, stopped);
}

}  // namespace longhaul::planner
