#include "engine/events/event_facts.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "engine/plan_player.hpp"
#include "plan/check_extras.hpp"

namespace longhaul::engine {

EventFacts::EventFacts(const Plan& plan, Rank self) : listeners(plan.ranks.size(), 0) {
  const plan::PlanExtras& extras = plan.extras;
  if (!extras.windows.empty())
    optional = plan::ops_that_may_not_run(plan, plan::MayNotRun::optional);
  for (const plan::OpWindow& window : extras.windows) windows[window.op] = window;
  for (const plan::OpPriority& each : extras.priorities) priorities[each.op] = each.priority;
  for (const plan::FarDependency& far : extras.far) {
    const bool strong = far.strength == plan::Strength::strong;
    int& most = strong ? reach : reach_of_versions;
    most = std::max(most, far.iterations_back);
    if (plan.rank_of(far.op) != self) continue;
    far_[far.op].push_back(far);
    if (strong && plan.rank_of(far.before) != self) waits_for_ranks = true;
    if (strong) continue;
    watched.resize(plan.ops.size(), 0);
    watched[index(far.before)] = 1;
  }
  for (const plan::LaneSource& source : extras.sources)
    listeners[index(plan.lanes[index(source.lane)].rank)] = 1;
  find_access(plan);
  find_ways(plan);
  find_words(plan);
}

std::span<const plan::FarDependency> EventFacts::far_of(OpId id) const {
  if (far_.empty()) return {};
  const auto found = far_.find(id);
  if (found == far_.end()) return {};
  return found->second;
}

void EventFacts::find_access(const Plan& plan) {
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set) {
    Access& found = access.emplace_back(Access::own);
    for (std::uint32_t i = plan.set_begin[set]; i < plan.set_begin[set + 1]; ++i) {
      const Resource& resource = plan.resources[index(plan.set_items[i])];
      if (resource.serve != Serve::order) found = Access::choice;
      if (found != Access::choice && (resource.lanes > 1 || resource.capacity != 1))
        found = Access::request;
    }
  }
}

void EventFacts::find_ways(const Plan& plan) {
  for (const Lane& lane : plan.lanes) {
    Way& way = ways.emplace_back(lane.serve == Serve::order ? Way::in_turn : Way::pool);
    for (std::size_t id = index(lane.first); id < index(lane.first) + lane.count; ++id)
      if (!optional.empty() && optional[id] != 0) way = Way::pool;
  }
  for (const plan::LaneSource& source : plan.extras.sources)
    ways[index(source.lane)] = Way::sourced;
  // What such a lane alone holds is taken by the choice of the instant, not in turn.
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i] == Way::in_turn || plan.lanes[i].kind == OpKind::recv) continue;
    for (std::uint32_t k = 0; k < plan.lanes[i].count; ++k) {
      Access& own = access[index(plan.ops[index(plan.lanes[i].first) + k].resources)];
      if (own == Access::own || plan.lanes[i].serve != Serve::order) own = Access::choice;
    }
  }
}

/// A lane of receives whose sends are those of one lane, in its order, needs no word where none of
/// them depends on anything: what its order says, the order of the sends says too.
void EventFacts::find_words(const Plan& plan) {
  with_word.resize(plan.lanes.size(), false);
  const auto depends = [&](OpId id) {
    return plan.op(id).after_count > 0 ||
           std::ranges::any_of(plan.extras.far, [&](const plan::FarDependency& far) {
             return far.op == id && far.strength == plan::Strength::strong;
           });
  };
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    if (lane.kind != OpKind::recv || lane.count == 0) continue;
    const Lane& sends = plan.lane_of(OpId{plan.op(lane.first).match});
    const Way way = ways[index(plan.op(sends.first).lane)];
    bool needs = sends.count != lane.count || way == Way::sourced || sends.serve != lane.serve;
    for (std::uint32_t k = 0; k < lane.count; ++k) {
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + k};
      needs = needs || plan.op(id).match != index(sends.first) + k || depends(id);
    }
    with_word[i] = needs;
  }
}

const char* first_unplayed(const Plan& plan) {
  if (!plan.extras.overlap.none()) return "computation that slows beside messages";
  for (const Op& op : plan.ops)
    if (op.kind == OpKind::collective) return "collectives that are one op, beside what waits";
  for (const Resource& resource : plan.resources)
    if (!resource.order.empty()) return "stated orders, beside what waits";
  return nullptr;
}

}  // namespace longhaul::engine
