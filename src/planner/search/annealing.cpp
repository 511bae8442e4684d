#include "planner/search/annealing.hpp"

#include "base/statistics/portable_math.hpp"

namespace longhaul::planner {
namespace {

using Kind = OrderProblem::Kind;

/// Moves between two looks at progress and temperature: tens of microseconds, or some simulations.
constexpr int kMoveBatch = 256;
constexpr int kBatchOfSimulations = 16;

class Annealing {
public:
  Annealing(const OrderProblem& problem, const Schedule& start, const Simulation& simulation,
            std::uint64_t seed)
      : problem_{problem},
        random_{seed},
        walk_{problem, start, simulation},
        moves_{walk_.orders()} {}

  AnnealingResult run(Cooling cooling, const SearchProgress& progress) {
    AnnealingResult result{walk_.orders(), walk_.makespan(), 0, 0};
    const int batch = problem_.is_exact() ? kMoveBatch : kBatchOfSimulations;
    const double cooled = cooling.hot > 0 ? logarithm(cooling.cold / cooling.hot) : 0;
    for (double done = progress(0); done < 1; done = progress(result.moves)) {
      const double heat = cooling.hot * exponential(cooled * done);
      for (int i = 0; i < batch; ++i) step(heat, result);
    }
    if (at_best_) keep(result);
    return result;
  }

private:
  void step(double heat, AnnealingResult& result) {
    ++result.moves;
    if (!propose()) return;
    // Metropolis's rule with the draw made first: how long may the new order take?
    const double worse = -heat * logarithm(random_.uniform() + 1e-18);
    const std::int64_t before = walk_.makespan();
    if (!walk_.attempt(change_, before + static_cast<std::int64_t>(worse))) return;
    ++result.accepted;
    if (walk_.makespan() < result.makespan) {
      result.makespan = walk_.makespan();
      at_best_ = true;
    } else if (at_best_ && walk_.makespan() > result.makespan) {
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
  bool at_best_ = false;  ///< the walk is at an order as good as the best, not kept yet
};

}  // namespace

AnnealingResult anneal(const OrderProblem& problem, const Schedule& start,
                       const Simulation& simulation, Cooling cooling, std::uint64_t seed,
                       const SearchProgress& progress) {
  return Annealing{problem, start, simulation, seed}.run(cooling, progress);
}

}  // namespace longhaul::planner
