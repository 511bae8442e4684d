#include <algorithm>
#include <map>

#include "collective/iteration/communications.hpp"
#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// In the order in which a rank can begin them: by the last operation that each waits for; of those
/// with the same one, what waits for a message of another stage comes last (that may wait for the
/// others); then by the first operation that needs them.
void issue_as_ready(StageWork& work) {
  struct Ready {
    std::int64_t after = -1;
    bool waits_for_stage = false;
    std::int64_t wanted = 0;
    auto operator<=>(const Ready&) const = default;
  };
  const auto positions = work.positions();
  IndexedVector<CommunicationId, Ready> ready(work.communications.count());
  for (const CommunicationId id : work.communications.ids()) {
    const Communication& each = work.communications[id];
    Ready& own = ready[id];
    own.after = earliest_after(each, positions);
    own.waits_for_stage = each.input >= 0;
    own.wanted = static_cast<std::int64_t>(work.order.size());
    for (const OperationId operation : each.needed_by)
      own.wanted = std::min<std::int64_t>(own.wanted, positions[operation]);
  }
  std::ranges::stable_sort(work.issue, {}, [&](CommunicationId id) { return ready[id]; });
}

/// The order of one block: its dgrads, then its wgrads, each as they were.
void put_dgrads_first(StageWork& work) {
  std::map<std::uint32_t, std::vector<std::size_t>> places;  // in the order, by block
  for (std::size_t i = 0; i < work.order.size(); ++i)
    places[work.operations[work.order[i]].block].push_back(i);
  const std::vector<OperationId> before = work.order;
  for (const auto& [block, own] : places) {
    std::vector<OperationId> operations;
    for (const std::size_t place : own) operations.push_back(before[place]);
    std::ranges::stable_partition(
        operations, [&](OperationId id) { return work.operations[id].work != BlockKind::W; });
    for (std::size_t i = 0; i < own.size(); ++i) work.order[own[i]] = operations[i];
  }
}

}  // namespace

IterationPlan eager(IterationPlan plan) {
  for (StageWork& work : plan.stages) {
    issue_as_ready(work);
    for (Communication& each : work.communications) each.queue = static_cast<int>(each.traffic);
  }
  return plan;
}

IterationPlan dgrads_first(IterationPlan plan) {
  for (StageWork& work : plan.stages) {
    put_dgrads_first(work);
    work.leaving = Leaving::with_dgrad;
  }
  return plan;
}

}  // namespace longhaul::collective
