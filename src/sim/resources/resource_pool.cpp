#include "sim/resources/resource_pool.hpp"

#include <algorithm>

namespace longhaul::sim {
namespace {

bool earlier(const ResourcePool::Free& a, const ResourcePool::Free& b) { return a.at < b.at; }

}  // namespace

ResourcePool::ResourcePool(const Plan& plan, int first)
    : plan_{plan},
      turn_(plan.resources.size(), 0),
      round_(plan.resources.size(), first),
      turn_since_(plan.resources.size()) {
  first_slot_.push_back(0);
  for (const Resource& resource : plan.resources) {
    first_slot_.push_back(first_slot_.back() + resource.capacity);
    has_orders_ = has_orders_ || !resource.order.empty();
  }
  slots_.resize(first_slot_.back());
}

const ResourcePool::Free& ResourcePool::earliest(ResourceId resource) const {
  const auto begin = slots_.begin() + first_slot_[index(resource)];
  const auto end = slots_.begin() + first_slot_[index(resource) + 1];
  return *std::min_element(begin, end, earlier);
}

ResourcePool::Free ResourcePool::free_for(OpId id) const {
  Free latest;
  for (const ResourceId resource : plan_.resources_of(id)) {
    const Free& slot = earliest(resource);
    if (slot.at > latest.at) latest = slot;
  }
  if (!has_orders_ || !keeps_order(plan_.op(id))) return latest;
  // Later than a place is free only where several hold the resource at a time.
  for (const ResourceId resource : plan_.resources_of(id)) {
    const Free& turn = turn_since_[index(resource)];
    if (turn.at > latest.at && !plan_.resources[index(resource)].order.empty()) latest = turn;
  }
  return latest;
}

void ResourcePool::hold(OpId id, Duration until, Duration served) {
  const bool in_order = has_orders_ && keeps_order(plan_.op(id));
  for (const ResourceId resource : plan_.resources_of(id)) {
    const auto begin = slots_.begin() + first_slot_[index(resource)];
    const auto end = slots_.begin() + first_slot_[index(resource) + 1];
    *std::min_element(begin, end, earlier) = {until, id};
    if (!in_order) continue;
    if (++turn_[index(resource)] == plan_.resources[index(resource)].order.size()) {
      turn_[index(resource)] = 0;
      ++round_[index(resource)];
    }
    turn_since_[index(resource)] = {served, id};
  }
}

bool ResourcePool::is_next(OpId id, int iteration) const {
  if (!has_orders_ || !keeps_order(plan_.op(id))) return true;
  return std::ranges::all_of(plan_.resources_of(id), [&](ResourceId resource) {
    const auto& order = plan_.resources[index(resource)].order;
    const std::uint32_t turn = turn_[index(resource)];
    return order.empty() || (order[turn] == id && round_[index(resource)] == iteration);
  });
}

void ResourcePool::append_successors(OpId id, std::vector<OpId>& to) const {
  if (!has_orders_ || !keeps_order(plan_.op(id))) return;
  for (const ResourceId resource : plan_.resources_of(id)) {
    const auto& order = plan_.resources[index(resource)].order;
    const std::uint32_t turn = turn_[index(resource)];
    if (!order.empty() && std::ranges::find(to, order[turn]) == to.end()) to.push_back(order[turn]);
  }
}

}  // namespace longhaul::sim
