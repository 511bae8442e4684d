#include <algorithm>
#include <map>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// Of one stage: gathers ahead of their units, scatters after theirs.
class Prefetched {
public:
  Prefetched(const IterationPlan& plan, DeviceId stage, ShardedLanes lanes, StageWork& work)
      : plan_{plan}, stage_{stage}, lanes_{lanes}, work_{work}, positions_{work.positions()} {
    for (const UnitUse& use : unit_uses(work))
      starts_.push_back(positions_[use.operations.front()]);
  }

  void run() {
    issue_gathers();
    for (const CommunicationId id : work_.communications.ids()) {
      Communication& each = work_.communications[id];
      if (each.traffic == Traffic::fsdp && each.kind == CollectiveKind::all_gather) continue;
      // What waits for an operation is issued when that ends, ahead of a gather at that moment.
      // What waits for a message of another stage comes last, for that may wait for the others.
      moments_[id] = {earliest_after(each, positions_) + 1, each.input >= 0 ? 2 : 0};
      each.queue = queue_of(each);
    }
    std::ranges::stable_sort(work_.issue, {}, [&](CommunicationId id) { return moments_[id]; });
  }

private:
  [[nodiscard]] int queue_of(const Communication& each) const {
    constexpr int kScatters = kCountOf<Traffic>;
    if (each.traffic == Traffic::tp) return static_cast<int>(Traffic::tp);
    if (lanes_ == ShardedLanes::one) return static_cast<int>(Traffic::fsdp);
    return each.traffic == Traffic::fsdp ? kScatters : static_cast<int>(each.traffic);
  }

  /// Of each gather the number of the unit's use that it is for, ascending.
  [[nodiscard]] std::vector<std::pair<std::size_t, CommunicationId>> gathers() const {
    std::vector<std::pair<std::size_t, CommunicationId>> all;
    for (const CommunicationId id : work_.communications.ids()) {
      const Communication& each = work_.communications[id];
      if (each.traffic != Traffic::fsdp || each.kind != CollectiveKind::all_gather) continue;
      std::uint32_t first = positions_[each.needed_by.front()];
      for (const OperationId operation : each.needed_by)
        first = std::min(first, positions_[operation]);
      all.emplace_back(std::ranges::upper_bound(starts_, first) - starts_.begin() - 1, id);
    }
    std::ranges::sort(all);
    return all;
  }

  void issue_gathers() {
    const auto all = gathers();
    const std::optional<int> ahead = plan_.scenario->parallel.sharding.prefetch;
    const std::vector<std::uint32_t> as_memory_allows =
        ahead ? std::vector<std::uint32_t>{} : earliest_gathers(plan_, stage_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [use, id] = all[i];
      Communication& gather = work_.communications[id];
      gather.queue = static_cast<int>(Traffic::fsdp);
      std::uint32_t place = 0;
      if (!ahead)
        place = as_memory_allows[i];
      else if (use > at(*ahead))
        place = starts_[use - at(*ahead)];
      gather.at_start_of = place == 0 ? kNone<OperationId> : work_.order[place];
      moments_[id] = {place, 1};
    }
  }

  const IterationPlan& plan_;
  DeviceId stage_;
  ShardedLanes lanes_;
  StageWork& work_;
  IndexedVector<OperationId, std::uint32_t> positions_;
  std::vector<std::uint32_t> starts_;  ///< places in the order at which uses of units start
  std::map<CommunicationId, std::pair<std::int64_t, int>> moments_;
};

}  // namespace

IterationPlan prefetched(IterationPlan plan, ShardedLanes lanes) {
  for (const DeviceId stage : plan.stages.ids()) {
    StageWork work = plan.stages[stage];
    Prefetched{plan, stage, lanes, work}.run();
    plan.stages[stage] = std::move(work);
  }
  return plan;
}

}  // namespace longhaul::collective
