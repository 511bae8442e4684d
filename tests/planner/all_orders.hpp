#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/search/makespan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::test {

/// Which rows are tried.
struct RowClass {
  bool any_order = false;  ///< else blocks of a kind take turns
  bool fused = false;      ///< a B or a D and a W for each microbatch; else D and W
};

/// All rows of one chunk that stay within the budget.
class AllRows {
public:
  AllRows(const Schedule& like, const Scenario& scenario, RowClass tried)
      : like_{like},
        tried_{tried},
        recompute_{scenario.memory.recompute},
        memory_{with_recompute(like, recompute_), scenario},
        limit_{schedule::allowed_activation(like, scenario)} {}

  [[nodiscard]] std::vector<std::vector<Block>> of(int chunk) {
    chunk_ = chunk;
    rows_.clear();
    last_.assign(5, -1);
    cells_.assign(static_cast<std::size_t>(like_.microbatches), Cell{});
    extend();
    return rows_;
  }

private:
  /// The last block of a microbatch that ran.
  enum class Cell : std::uint8_t { none, forward, recompute, gradient, done };

  static Schedule with_recompute(Schedule like, bool recompute) {
    like.rows.assign(static_cast<std::size_t>(like.devices), {});
    for (int chunk = 0; recompute && chunk < like.chunks; ++chunk)
      like.rows[0].push_back({BlockKind::R, 0, 1, ChunkId{chunk}, MicrobatchId{0}});
    return like;
  }

  void extend() {
    bool all = true;
    for (int m = 0; m < like_.microbatches; ++m) {
      const Cell cell = cells_[static_cast<std::size_t>(m)];
      all &= cell == Cell::done;
      const bool input = cell == Cell::recompute || (!recompute_ && cell == Cell::forward);
      if (cell == Cell::none) take(BlockKind::F, m, Cell::forward);
      if (cell == Cell::forward && recompute_) take(BlockKind::R, m, Cell::recompute);
      if (input) take(BlockKind::D, m, Cell::gradient);
      if (input && tried_.fused) take(BlockKind::B, m, Cell::done);
      if (cell == Cell::gradient) take(BlockKind::W, m, Cell::done);
    }
    if (all) rows_.push_back(row_);
  }

  void take(BlockKind kind, int m, Cell then) {
    int& last = last_[static_cast<std::size_t>(kind)];
    if (!tried_.any_order && m < last) return;
    const Block block{kind, 0, 1, ChunkId{chunk_}, MicrobatchId{m}};
    const schedule::MemoryEffect effect = memory_.effect(block);
    if (held_ + effect.at_start > limit_) return;
    const Bytes change = effect.at_start + effect.at_end;
    const int before = std::exchange(last, m);
    Cell& cell = cells_[static_cast<std::size_t>(m)];
    const Cell was = std::exchange(cell, then);
    held_ += change;
    row_.push_back(block);
    extend();
    row_.pop_back();
    held_ = held_ - change;
    cell = was;
    last = before;
  }

  const Schedule& like_;
  RowClass tried_;
  bool recompute_;
  schedule::ActivationModel memory_;
  Bytes limit_;
  int chunk_ = 0;
  std::vector<std::vector<Block>> rows_;
  std::vector<Block> row_;
  std::vector<Cell> cells_;
  std::vector<int> last_;  ///< by kind: microbatch of the newest
  Bytes held_;
};

/// The shortest makespan over all combinations of rows within the budget, on `ud` placement;
/// Duration::max() where there is none.
inline Duration exhaustive_optimum(const Scenario& scenario, RowClass tried) {
  Schedule schedule = schedule::generate("zb-h1", scenario);
  std::vector<std::vector<std::vector<Block>>> rows;
  AllRows all{schedule, scenario, tried};
  for (int device = 0; device < schedule.devices; ++device) rows.push_back(all.of(device));
  Duration best = Duration::max();
  if (std::ranges::any_of(rows, [](const auto& of_device) { return of_device.empty(); }))
    return best;
  std::vector<std::size_t> choice(rows.size(), 0);
  for (;;) {
    for (std::size_t d = 0; d < rows.size(); ++d) schedule.rows[d] = rows[d][choice[d]];
    if (!schedule::first_violation(schedule, scenario))
      best = std::min(best, planner::makespan_of(schedule, scenario));
    std::size_t d = 0;
    while (d < rows.size() && ++choice[d] == rows[d].size()) choice[d++] = 0;
    if (d == rows.size()) return best;
  }
}

}  // namespace longhaul::test
