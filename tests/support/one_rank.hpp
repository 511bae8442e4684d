#pragma once

#include "plan/plan_draft.hpp"

namespace longhaul::testing {

/// A rank with a device, on which its first lane works.
struct OneRank {
  plan::PlanDraft draft{"one"};
  Rank rank = draft.add_rank("east");
  ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  LaneId compute = draft.add_lane(rank, "compute", OpKind::compute, {device});
};

}  // namespace longhaul::testing
