#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/suggest.hpp"
#include "plan/lowering/lowering.hpp"
#include "plan/lowering/turns.hpp"

namespace longhaul::plan {
namespace {

/// (replica, is it a gradient, chunk, microbatch): what a message is, whichever rank sends it.
using MessageKey = std::tuple<ReplicaId, bool, int, int>;

/// The sends of messages over one resource; of several pieces in their order.
using Sends = std::map<MessageKey, std::vector<OpId>>;

/// Over each of the given resources.
std::map<ResourceId, Sends> sends_over(const Plan& plan, const std::vector<ResourceId>& resources) {
  std::map<ResourceId, Sends> found;
  std::vector<Sends*> of_resource(plan.resources.size(), nullptr);
  for (const ResourceId resource : resources) of_resource[index(resource)] = &found[resource];
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind != OpKind::send || !keeps_order(op)) continue;
    for (const ResourceId resource : plan.resources_of(id)) {
      if (of_resource[index(resource)] == nullptr) continue;
      const MessageKey key{plan.owner_of(id), is_backward(op.block_kind), op.chunk, op.microbatch};
      (*of_resource[index(resource)])[key].push_back(id);
    }
  }
  for (auto& [resource, sends] : found) {
    for (auto& [message, pieces] : sends)
      std::ranges::stable_sort(pieces, {}, [&](OpId id) { return plan.op(id).piece; });
  }
  return found;
}

std::unordered_map<std::string, ResourceId> resources_by_name(const Plan& plan) {
  std::unordered_map<std::string, ResourceId> by_name;
  for (std::size_t i = 0; i < plan.resources.size(); ++i)
    by_name.emplace(plan.resources[i].name, ResourceId{static_cast<std::uint32_t>(i)});
  return by_name;
}

Result<ResourceId> find_resource(const Plan& plan,
                                 const std::unordered_map<std::string, ResourceId>& by_name,
                                 const std::string& name) {
  const auto at = by_name.find(name);
  if (at != by_name.end()) return at->second;
  std::vector<std::string> shared;
  for (const Resource& resource : plan.resources)
    if (resource.kind != ResourceKind::device) shared.push_back(resource.name);
  return refused("schedule {} orders messages on \"{}\", which no message takes. {}", plan.schedule,
                 name, suggestion(name, shared));
}

std::optional<Refusal> apply_order(Plan& plan, const LinkOrder& link, ResourceId resource,
                                   Sends sends) {
  std::vector<OpId>& order = plan.resources[index(resource)].order;
  if (!order.empty())
    return refused(
        "schedule {} orders \"{}\" twice (the second order would contradict the first). Join "
        "them.",
        plan.schedule, link.resource);
  std::size_t messages = 0;
  for (const OrderedMessage& message : link.messages) {
    const Block& block = message.producer;
    const auto at =
        sends.find({message.replica, is_backward(block.kind), block.chunk, block.microbatch});
    if (at == sends.end())
      return refused(
          "schedule {} orders {} of replica {} on \"{}\" (no such message takes it, or it is "
          "listed twice). Remove it from the order.",
          plan.schedule, to_text(block), message.replica, link.resource);
    order.insert(order.end(), at->second.begin(), at->second.end());
    sends.erase(at);
    ++messages;
  }
  if (!sends.empty())
    return refused(
        "schedule {} leaves {} of {} messages out of the order on \"{}\" (the first: {}). List "
        "every message that takes it.",
        plan.schedule, sends.size(), sends.size() + messages, link.resource,
        to_text(plan, sends.begin()->second.front()));
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> apply_link_orders(Plan& plan, const Schedule& schedule, Turns turns) {
  std::vector<const LinkOrder*> orders;
  std::vector<ResourceId> resources;  // of each
  std::unordered_map<std::string, ResourceId> by_name;
  for (const LinkOrder& link : schedule.link_orders) {
    if (turns == Turns::taken && is_turns(link)) continue;
    if (by_name.empty()) by_name = resources_by_name(plan);
    const Result<ResourceId> resource = find_resource(plan, by_name, link.resource);
    if (!resource) return resource.refusal();
    orders.push_back(&link);
    resources.push_back(*resource);
  }
  if (orders.empty()) return std::nullopt;
  const auto sends = sends_over(plan, resources);
  for (std::size_t i = 0; i < orders.size(); ++i)
    if (auto why = apply_order(plan, *orders[i], resources[i], sends.at(resources[i]))) return why;
  return std::nullopt;
}

}  // namespace longhaul::plan
