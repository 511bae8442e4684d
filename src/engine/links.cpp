#include "engine/links.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::engine {
namespace {

/// Marks the resources that sends of more than one rank hold. Throws Error where those ranks are on
/// several hosts.
std::vector<bool> find_shared(const Plan& plan, const comm::HostRanks& host_ranks) {
  std::vector<Rank> user(plan.resources.size(), kNone<Rank>);
  std::vector<bool> shared(plan.resources.size(), false);
  for (const Lane& lane : plan.lanes) {
    if (lane.kind != OpKind::send || lane.count == 0) continue;
    for (const ResourceId id : plan.resources_of(lane.first)) {
      Rank& other = user[index(id)];
      if (other == kNone<Rank>) other = lane.rank;
      if (other == lane.rank) continue;
      shared[index(id)] = true;
      if (host_ranks.host_of(other) != host_ranks.host_of(lane.rank))
        fail(
            "{} is shared by ranks {} and {} (on different hosts: its lease is kept in the memory "
            "of one). Place the ranks of a datacenter on one host, or set sharing = \"pair\".",
            plan.resources[index(id)].name, index(other), index(lane.rank));
    }
  }
  return shared;
}

/// A set with one shared resource is asked for in the shared table as a whole, and any rank that
/// uses part of it with it.
std::vector<bool> find_shared_sets(const Plan& plan, std::vector<bool> shared) {
  const std::size_t sets = plan.set_begin.size() - 1;
  std::vector<bool> shared_set(sets, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t set = 0; set < sets; ++set) {
      const auto begin = plan.set_items.begin() + plan.set_begin[set];
      const auto end = plan.set_items.begin() + plan.set_begin[set + 1];
      if (shared_set[set] ||
          std::none_of(begin, end, [&](ResourceId id) { return shared[index(id)]; }))
        continue;
      changed = shared_set[set] = true;
      std::for_each(begin, end, [&](ResourceId id) { shared[index(id)] = true; });
    }
  }
  return shared_set;
}

/// Sets that one lane alone holds, in its own order.
std::vector<bool> find_lane_sets(const Plan& plan) {
  std::vector<bool> lane_set;
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set)
    lane_set.push_back(std::all_of(
        plan.set_items.begin() + plan.set_begin[set],
        plan.set_items.begin() + plan.set_begin[set + 1], [&](ResourceId id) {
          const Resource& resource = plan.resources[index(id)];
          return resource.lanes <= 1 && resource.capacity == 1 && resource.order.empty();
        }));
  return lane_set;
}

}  // namespace

Links::Links(const Plan& plan, const comm::HostRanks& host_ranks)
    : plan_{plan},
      host_ranks_{host_ranks},
      shared_set_{find_shared_sets(plan, find_shared(plan, host_ranks))},
      lane_set_{find_lane_sets(plan)},
      own_memory_(LinkTable::bytes(plan, host_ranks.self())) {
  own_.emplace(plan, own_memory_.data(), true, host_ranks.self());
  for (std::size_t i = 0; i < plan.lanes.size(); ++i)
    if (plan.lanes[i].kind == OpKind::send && plan.lanes[i].rank == host_ranks.self())
      lanes_.push_back(LaneId{static_cast<std::uint32_t>(i)});
  if (std::ranges::find(shared_set_, true) == shared_set_.end()) return;
  shared_memory_ = std::make_unique<comm::SharedMemory>(host_ranks.host(), LinkTable::bytes(plan));
  shared_.emplace(plan, shared_memory_->data(), host_ranks.host().rank() == 0);
  host_ranks.host().barrier();
}

std::optional<Links::Grant> Links::take(OpId send, TimePoint ready, TimePoint at) {
  Grant grant;
  if (!table_of(send).take(send, grant)) return std::nullopt;
  if (shared_set_[index(plan_.op(send).resources)]) {
    const Duration late = std::max(Duration::zero(), at - std::max(ready, grant.free));
    ++cost_.leases;
    cost_.total += late;
    cost_.longest = std::max(cost_.longest, late);
  }
  return grant;
}

void Links::request(OpId send, TimePoint ready) {
  // What no other lane wants needs no decision: others may become ready by it in this instant.
  if (virtual_clock() != nullptr && !lane_set_[index(plan_.op(send).resources)])
    return table_of(send).ask(send, ready);
  granted_.clear();
  table_of(send).request(send, ready, granted_);
  wake_granted();
}

void Links::release(OpId send, TimePoint due, const ShadowTime& seen) {
  granted_.clear();
  table_of(send).release(send, due, granted_, seen);
  wake_granted();
}

/// This rank looks by itself after it has asked; not where another thread decides for it.
void Links::wake_granted() const {
  for (const OpId granted : granted_)
    if (plan_.rank_of(granted) != host_ranks_.self() || virtual_clock() != nullptr)
      host_ranks_.ring_doorbell(plan_.rank_of(granted));
}

std::optional<Arbiter::Request> Links::first_request() {
  std::optional<Request> first;
  for (const LaneId lane : lanes_) {
    const auto request = table_of(plan_.lanes[index(lane)].first).first_request(lane);
    if (request && (!first || *request < *first)) first = request;
  }
  return first;
}

void Links::decide_first() {
  const auto first = first_request();
  if (!first) return;
  const OpId send{first->second};
  granted_.clear();
  table_of(send).serve(send, granted_);
  wake_granted();
}

LeaseCost Links::take_cost() { return std::exchange(cost_, {}); }

}  // namespace longhaul::engine
