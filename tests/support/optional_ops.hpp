#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/plan_draft.hpp"

namespace longhaul::testing {

/// A lane that draws nothing: none of its ops will run.
class DrawsNothing : public plan::OpSource {
public:
  plan::Decision next(const plan::PastEvents&) override { return plan::LaneOver{}; }
};

/// A rank's first block needs two ops of another rank: one that starts after 30 ms, which it names
/// first, and one that is not drawn. Its second block needs nothing.
struct NeedsASkippedOp {
  NeedsASkippedOp() {
    plan::PlanDraft draft{"needs a skipped op"};
    const Rank east = draft.add_rank("east");
    const Rank west = draft.add_rank("west");
    const LaneId here = draft.add_lane(east, "compute", OpKind::compute,
                                       {draft.add_resource("device 0", ResourceKind::device)});
    const LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                        {draft.add_resource("device 1", ResourceKind::device)});
    const LaneId extra = draft.add_lane(west, "extra", OpKind::compute,
                                        {draft.add_resource("workers 1", ResourceKind::workers)});
    const auto needs_both = draft.add_block(here, 10ms);
    const auto needs_nothing = draft.add_block(here, 10ms);
    (void)draft.add_block(there, 30ms);
    const auto late = draft.add_block(there, 30ms);
    const auto undrawn = draft.add_block(extra, 10ms);
    draft.source(extra, [](const std::vector<OpId>&) { return std::make_unique<DrawsNothing>(); });
    draft.after(needs_both, late, 0);
    draft.after(needs_both, undrawn, 0);
    plan = draft.make();
    first = draft.id(needs_both);
    second = draft.id(needs_nothing);
  }

  Plan plan;
  OpId first{}, second{};  ///< of the rank that waits
};

/// As much later than planned as one op has ended later than at `planned`.
class AsLateAsOneOp : public plan::DeadlineSource {
public:
  explicit AsLateAsOneOp(Duration planned) : planned_{planned} {}
  Duration deadline(OpId, Duration planned, Duration, const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended()) late_ = end.end - planned_;
    return planned + late_;
  }

private:
  Duration planned_, late_{};
};

/// A plan of two ranks, each with a device; on the second's optional ops stand beside its blocks.
struct TwoDevices {
  plan::PlanDraft draft;
  Rank west = draft.add_rank("west"), east = draft.add_rank("east");
  LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                {draft.add_resource("device 0", ResourceKind::device)});
  ResourceId device = draft.add_resource("device 1", ResourceKind::device);
  LaneId here = draft.add_lane(east, "compute", OpKind::compute, {device});
  LaneId extra = draft.add_lane(east, "prefill", OpKind::compute, {device});
};

/// Two blocks of a rank, of which the first was planned to end at 4 ms, the second at 10; a block
/// of another rank waits for the second. Before it, from 8 ms on, that one's device has room for an
/// optional op, whose deadline is 10 ms and moves with the end of the first block.
struct MovingDeadline {
  enum class Deadline : std::uint8_t { stays, moves };
  MovingDeadline(Duration first_takes, Duration optional_takes, Deadline how) {
    TwoDevices two{plan::PlanDraft{"moving deadline"}};
    auto& [draft, west, east, there, device, here, extra] = two;
    const auto first = draft.add_block(there, first_takes);
    const auto second = draft.add_block(there, 6ms);
    const auto next = draft.add_block(here, 5ms);
    const auto filling = draft.add_block(extra, optional_takes);
    draft.after(next, second, 0);
    draft.window(filling, 8ms, 10ms);
    plan = draft.make();
    closes = draft.id(next);
    optional = draft.id(filling);
    if (how == Deadline::moves)
      plan.extras.deadlines = {{draft.id(first)},
                               [] { return std::make_unique<AsLateAsOneOp>(4ms); }};
  }

  Plan plan;
  OpId optional{}, closes{};
};

}  // namespace longhaul::testing
