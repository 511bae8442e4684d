#include <utility>

#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// Of one stage: the sums in the order of issue, each followed by its gather.
void cut_in_two(StageWork& work) {
  const std::vector<CommunicationId> issued = std::move(work.issue);
  work.issue.clear();
  for (const CommunicationId id : issued) {
    work.issue.push_back(id);
    Communication& sum = work.communications[id];
    if (sum.traffic != Traffic::dp || sum.kind != CollectiveKind::all_reduce) continue;
    sum.kind = CollectiveKind::reduce_scatter;
    Communication gather = sum;
    gather.kind = CollectiveKind::all_gather;
    gather.needs.clear();
    gather.follows = {id};
    sum.needed_by.clear();
    work.add(std::move(gather));  // the next in the order of issue
  }
}

}  // namespace

IterationPlan sums_in_two(IterationPlan plan) {
  for (StageWork& work : plan.stages) cut_in_two(work);
  return plan;
}

IterationPlan on_lanes(IterationPlan plan, Traffic traffic, int lanes) {
  constexpr int kFree = 16;  // above those that other passes take
  for (StageWork& work : plan.stages) {
    int next = 0;
    for (const CommunicationId id : work.issue) {
      Communication& each = work.communications[id];
      if (each.traffic != traffic) continue;
      each.queue = kFree + next;
      next = (next + 1) % lanes;
    }
  }
  return plan;
}

}  // namespace longhaul::collective
