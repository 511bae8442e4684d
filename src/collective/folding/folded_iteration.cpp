#include "collective/folding/folded_iteration.hpp"

#include <tuple>
#include <utility>

#include "plan/check_extras.hpp"

namespace longhaul::collective {

bool FoldedRanks::orders_all_the_same(ResourceId resource, LaneId first, LaneId second) const {
  struct Held {
    Rank from, to;
    int which = 0;
    bool step = false;
    int queue = 0, stream = 0;
  };
  const auto held_by = [&](LaneId id) {
    const Lane& lane = out_.lanes[index(id)];
    Held held{lane.rank, lane.peer};
    const std::int32_t pair = index(id) < pair_of_lane_.size() ? pair_of_lane_[index(id)] : -1;
    held.step = pair >= 0;
    if (held.step) {
      held.queue = lanes_[at(pair)].queue;
      held.stream = lanes_[at(pair)].stream;
    }
    const std::size_t set = index(out_.op(lane.first).resources);
    for (std::uint32_t i = out_.set_begin[set]; i < out_.set_begin[set + 1]; ++i)
      if (out_.set_items[i] == resource) held.which = brings_[i];
    return held;
  };
  const Held a = held_by(first);
  const Held b = held_by(second);
  const auto key = [&](const Held& held, int image) {
    const Rank from = symmetry_.image(image, symmetry_.image(held.which, held.from));
    const Rank to = symmetry_.image(image, symmetry_.image(held.which, held.to));
    const std::size_t lane = held.step ? 0 : base_lanes_.at({from, OpKind::send, to});
    return std::tuple{from, held.step, lane, held.queue, to, held.stream};
  };
  for (int image = 0; image < symmetry_.count(); ++image)
    if ((key(a, image) < key(b, image)) != (first < second)) return false;
  return true;
}

bool FoldedRanks::holds_shared(ResourceSetId set) const {
  for (std::uint32_t i = out_.set_begin[index(set)]; i < out_.set_begin[index(set) + 1]; ++i)
    if (out_.resources[index(out_.set_items[i])].lanes > 1) return true;
  return false;
}

FoldedIteration::FoldedIteration(std::unique_ptr<LoweredIteration> lowered,
                                 std::unique_ptr<FoldedRanks> ranks)
    : lowered_{std::move(lowered)}, ranks_{std::move(ranks)} {}
FoldedIteration::FoldedIteration(FoldedIteration&&) noexcept = default;
FoldedIteration::~FoldedIteration() = default;

std::optional<FoldedIteration> FoldedIteration::of(const IterationPlan& plan, FoldingMemo& memo) {
  if (plan::needs_order_of_time(*plan.base)) return std::nullopt;
  if (plan.schedule->cell > 1) return std::nullopt;  // replicas relay each other's messages
  if (to_size(plan.scenario->training_ranks()) != plan.base->ranks.size()) return std::nullopt;
  const RankSymmetry& symmetry = memo.symmetries.of(plan);
  if (symmetry.count() == 1) return std::nullopt;
  auto lowered = std::make_unique<LoweredIteration>();
  auto ranks = std::make_unique<FoldedRanks>(plan, symmetry, memo.steps, *lowered);
  if (ranks->failed()) return std::nullopt;
  if (IterationLowering{plan, *ranks, *lowered}.run() || ranks->failed()) return std::nullopt;
  return FoldedIteration{std::move(lowered), std::move(ranks)};
}

bool FoldedIteration::orders_all_the_same(ResourceId resource, LaneId first, LaneId second) const {
  return ranks_->orders_all_the_same(resource, first, second);
}

}  // namespace longhaul::collective
