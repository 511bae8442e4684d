#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy/row_times.hpp"
#include "schedule/generators/greedy/wave_list.hpp"
#include "schedule/memory.hpp"

namespace longhaul::schedule::families {
namespace {

/// How many blocks may be placed to find out which pass serves best: some milliseconds.
constexpr std::int64_t kPassBlocks = std::int64_t{1} << 18;

constexpr std::array kFills{WaveFill{true, true}, WaveFill{true, false}, WaveFill{false, true},
                            WaveFill{false, false}};

/// The best rows so far.
class Passes {
public:
  explicit Passes(const WaveJudgement& by) : by_{by}, lag_(by.planned.chunks_on.size()) {
    for (const GreedyChunk& chunk : by.planned.chunks) blocks_ += 3 * chunk.count;
  }

  void take(std::vector<std::vector<Block>> rows) {
    const Duration end = time_of_rows(by_.judged, rows);
    if (end >= least_) return;
    best_ = std::move(rows);
    least_ = end;
  }

  /// Passes of one WaveFill, each from the bubbles of the one before.
  void run(const WaveFill& fill) {
    std::ranges::fill(lag_, Duration::zero());
    for (Duration before = GreedyClock::kNever; may_place();) {
      placed_ += blocks_;
      std::optional<WaveOrder> order = wave_list(by_.planned, fill, lag_);
      if (!order) return;
      const Duration most = *std::ranges::max_element(order->bubbles);
      for (std::size_t d = 0; d < lag_.size(); ++d) lag_[d] = most - order->bubbles[d];
      take(std::move(order->rows));
      if (most >= before) return;
      before = most;
    }
  }

  [[nodiscard]] std::vector<std::vector<Block>> best() && { return std::move(best_); }

private:
  [[nodiscard]] bool may_place() const { return placed_ == 0 || placed_ + blocks_ <= kPassBlocks; }

  WaveJudgement by_;
  std::vector<Duration> lag_;
  std::vector<std::vector<Block>> best_;
  Duration least_ = GreedyClock::kNever;
  std::int64_t blocks_ = 0;  ///< of a pass
  std::int64_t placed_ = 0;
};

/// The rows of zbv; empty where they do not fit the budget.
std::vector<std::vector<Block>> zbv_rows(const Scenario& scenario, Schedule schedule) {
  for (std::vector<Block>& row : schedule.rows) row.clear();
  fill_zbv(scenario, schedule);
  if (!over_budget(schedule, scenario).empty()) return {};
  return std::move(schedule.rows);
}

}  // namespace

std::vector<std::vector<Block>> best_wave_rows(const Scenario& scenario, const Schedule& schedule,
                                               const WaveJudgement& by) {
  Passes passes{by};
  std::vector<std::vector<Block>> zbv = zbv_rows(scenario, schedule);
  if (!zbv.empty()) passes.take(std::move(zbv));
  for (const WaveFill& fill : kFills) passes.run(fill);
  std::vector<std::vector<Block>> best = std::move(passes).best();
  LONGHAUL_ASSERT(!best.empty(), "no order of {} stages in memory for a microbatch",
                  schedule.devices);
  return best;
}

std::optional<Refusal> fill_zbv_auto(const Scenario& scenario, Schedule& schedule) {
  const Result<GreedyProblem> problem = greedy_problem(scenario, schedule, 1);
  if (!problem) return problem.refusal();
  const GreedyProblem blocks = without_delays(*problem);
  schedule.rows = best_wave_rows(scenario, schedule, {.planned = blocks, .judged = blocks});
  return std::nullopt;
}

}  // namespace longhaul::schedule::families
