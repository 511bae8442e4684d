#include "planner/wan_sharing/turn_search.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "base/statistics/portable_math.hpp"
#include "planner/wan_sharing/turn_evaluator.hpp"

namespace longhaul::planner {
namespace {

/// Moves between two looks at progress and temperature.
constexpr int kStepBatch = 64;
constexpr int kFarthest = 24;

/// One element of a row or of turns goes from a place to another.
struct Shift {
  std::vector<std::int32_t>* list = nullptr;
  int row = -1;  ///< -1: turns
  std::size_t from = 0, to = 0;

  void carry_out() const { move(from, to); }
  void take_back() const { move(to, from); }

private:
  void move(std::size_t a, std::size_t b) const {
    const auto begin = list->begin();
    const auto place = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
    if (a < b) {
      std::rotate(place(a), place(a + 1), place(b + 1));
    } else {
      std::rotate(place(b), place(a), place(a + 1));
    }
  }
};

class TurnAnnealing {
public:
  TurnAnnealing(const TurnProblem& problem, const TurnOrders& start, std::uint64_t seed)
      : problem_{problem}, random_{seed}, orders_{start}, times_{problem} {
    const bool runs = times_.evaluate(orders_);
    LONGHAUL_ASSERT(runs, "a start of {} blocks waits for itself", problem.blocks.size());
    makespan_ = times_.makespan();
    times_.critical_path(orders_, path_);
  }

  TurnAnnealingResult run(Cooling cooling, const SearchProgress& progress) {
    TurnAnnealingResult result{orders_, makespan_, 0, 0};
    const double cooled = cooling.hot > 0 ? logarithm(cooling.cold / cooling.hot) : 0;
    for (double done = progress(0); done < 1; done = progress(result.moves)) {
      const double heat = cooling.hot * exponential(cooled * done);
      for (int i = 0; i < kStepBatch; ++i) step(heat, result);
    }
    return result;
  }

private:
  void step(double heat, TurnAnnealingResult& result) {
    ++result.moves;
    shifts_.clear();
    if (!propose()) return;
    for (const Shift& shift : shifts_) shift.carry_out();
    // Metropolis's rule with the draw made first: how long may the new order take?
    const double worse = -heat * logarithm(random_.uniform() + 1e-18);
    const std::int64_t limit = makespan_ + static_cast<std::int64_t>(worse);
    if (!fits() || !times_.evaluate(orders_) || times_.makespan() > limit) {
      for (auto shift = shifts_.rbegin(); shift != shifts_.rend(); ++shift) shift->take_back();
      return;
    }
    ++result.accepted;
    makespan_ = times_.makespan();
    times_.critical_path(orders_, path_);
    if (makespan_ >= result.makespan) return;
    result.makespan = makespan_;
    result.best = orders_;
  }

  bool propose() {
    const bool on_path = random_.next() % 2 == 0;
    const std::int64_t what = random_.between(0, 9);
    int steps = 1;
    while (steps < kFarthest && random_.next() % 2 == 0) steps += 1 + steps / 3;
    if (random_.next() % 2 == 0) steps = -steps;
    if (what < 4 && !problem_.messages.empty()) {
      const CellMessageId message = choose_message(on_path);
      return message >= 0 && shift_turn(message, steps);
    }
    const CellBlockId block = choose_block(on_path);
    const bool moved = shift_block(block, steps);
    const CellMessageId output = problem_.blocks[at(block)].output;
    if (!moved || what > 4 || output < 0) return moved;
    shift_turn(output, steps);
    return true;
  }

  CellBlockId choose_block(bool on_path) {
    if (on_path && !path_.blocks.empty()) return path_.blocks[random_.next() % path_.blocks.size()];
    return static_cast<CellBlockId>(random_.next() % problem_.blocks.size());
  }
  CellMessageId choose_message(bool on_path) {
    if (on_path && !path_.messages.empty())
      return path_.messages[random_.next() % path_.messages.size()];
    return static_cast<CellMessageId>(random_.next() % problem_.messages.size());
  }

  bool shift_block(CellBlockId block, int steps) {
    const int row = problem_.blocks[at(block)].row;
    return shift(orders_.rows[at(row)], row, block, steps,
                 [this](CellBlockId a, CellBlockId b) { return problem_.must_precede(a, b); });
  }
  bool shift_turn(CellMessageId message, int steps) {
    const CellQueueId queue = problem_.messages[at(message)].queue;
    if (!problem_.queues[at(queue)].turns) return false;
    return shift(
        orders_.turns[at(queue)], -1, message, steps,
        [this](CellMessageId a, CellMessageId b) { return problem_.must_precede_in_turn(a, b); });
  }

  template <typename MustPrecede>
  bool shift(std::vector<std::int32_t>& list, int row, std::int32_t item, int steps,
             MustPrecede must) {
    const auto from = at(std::ranges::find(list, item) - list.begin());
    std::size_t to = from;
    if (steps < 0) {
      for (; steps < 0 && to > 0 && !must(list[to - 1], item); ++steps) --to;
    } else {
      for (; steps > 0 && to + 1 < list.size() && !must(item, list[to + 1]); --steps) ++to;
    }
    if (to == from) return false;
    shifts_.push_back({&list, row, from, to});
    return true;
  }

  /// Does the row that a block was moved in stay within the memory of its device?
  [[nodiscard]] bool fits() const {
    for (const Shift& shift : shifts_) {
      if (shift.row < 0) continue;
      const std::int64_t limit = problem_.memory_limit[at(shift.row % problem_.devices)];
      std::int64_t held = 0;
      for (const CellBlockId id : *shift.list) {
        held += problem_.blocks[at(id)].taken;
        if (held > limit) return false;
        held -= problem_.blocks[at(id)].freed;
      }
    }
    return true;
  }

  const TurnProblem& problem_;
  Random random_;
  TurnOrders orders_;
  TurnEvaluator times_;
  TurnEvaluator::Critical path_;
  std::vector<Shift> shifts_;
  std::int64_t makespan_ = 0;
};

}  // namespace

TurnAnnealingResult anneal_turns(const TurnProblem& problem, const TurnOrders& start,
                                 Cooling cooling, std::uint64_t seed,
                                 const SearchProgress& progress) {
  return TurnAnnealing{problem, start, seed}.run(cooling, progress);
}

}  // namespace longhaul::planner
