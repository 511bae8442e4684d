#pragma once

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

}  // namespace longhaul::testing
