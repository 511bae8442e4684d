#pragma once

#include <span>
#include <vector>

#include "base/index.hpp"
#include "planner/orders/order_problem.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// New contents for a stretch of a row: the same blocks in another order, or with a W less or more
/// where a D and its W become a B (or the reverse).
struct Change {
  DeviceId device{};
  int first = 0;  ///< position in the row
  int count = 0;  ///< how many blocks it replaces
  std::vector<BlockId> blocks;
  BlockId flipped = -1;  ///< the G that turns from D into B or back; -1: none
};

/// An order of blocks for every device, as a local search changes it.
class Orders {
public:
  /// `schedule` must be whole, of the problem's layout, and valid.
  Orders(const OrderProblem& problem, const Schedule& schedule);
  /// A complete schedule with `like`'s name and layout.
  [[nodiscard]] Schedule schedule(const Schedule& like) const;

  [[nodiscard]] std::span<const BlockId> row(DeviceId device) const { return rows_[device]; }
  /// Position in its device's row; -1 for the W of a B.
  [[nodiscard]] int position(BlockId block) const { return position_[at(block)]; }
  /// Is the G of this chunk and microbatch a B?
  [[nodiscard]] bool is_fused(BlockId gradient) const { return fused_[at(gradient)] != 0; }
  [[nodiscard]] std::int64_t time(BlockId block) const {
    const auto& times = problem_->chunk(problem_->chunk_of(block)).time;
    switch (problem_->kind_of(block)) {
      case OrderProblem::Kind::F: return times[0];
      case OrderProblem::Kind::G: return is_fused(block) ? times[3] : times[1];
      case OrderProblem::Kind::W: return times[2];
    }
    return 0;
  }
  /// Does the device stay within its memory with the change?
  [[nodiscard]] bool fits(const Change& change) const;
  /// Carries out a change and turns it into the one that takes it back.
  void apply(Change& change);
  [[nodiscard]] const OrderProblem& problem() const { return *problem_; }

private:
  struct Effect {
    std::int64_t taken = 0;
    std::int64_t freed = 0;
  };
  [[nodiscard]] Effect effect(BlockId block, bool fused) const;
  void renew(DeviceId device, std::size_t first, std::size_t last);

  const OrderProblem* problem_;
  IndexedVector<DeviceId, std::vector<BlockId>> rows_;
  IndexedVector<DeviceId, std::vector<std::int64_t>> held_;  ///< after each block of a row
  std::vector<int> position_;
  std::vector<std::uint8_t> fused_;
};

}  // namespace longhaul::planner
