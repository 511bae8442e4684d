#include "plan/link_orders.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul {
namespace {

/// (replica, is it a gradient, chunk, microbatch): what a message is, whoever sends it.
using MessageKey = std::tuple<int, bool, int, int>;

std::map<MessageKey, OpId> sends_over(const Plan& plan, ResourceId resource) {
  std::map<MessageKey, OpId> sends;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind != OpKind::send) continue;
    const auto held = plan.resources_of(id);
    if (std::ranges::find(held, resource) == held.end()) continue;
    const int replica = plan.ranks[index(plan.rank_of(id))].replica;
    sends[{replica, is_backward(op.block_kind), op.chunk, op.microbatch}] = id;
  }
  return sends;
}

ResourceId find_resource(const Plan& plan, const std::string& name) {
  std::vector<std::string> shared;
  for (std::size_t i = 0; i < plan.resources.size(); ++i) {
    if (plan.resources[i].name == name) return ResourceId{static_cast<std::uint32_t>(i)};
    if (plan.resources[i].kind != ResourceKind::device) shared.push_back(plan.resources[i].name);
  }
  fail("schedule {} orders messages on \"{}\", which no message takes. {}", plan.schedule, name,
       suggestion(name, shared));
}

}  // namespace

void apply_link_orders(Plan& plan, const Schedule& schedule) {
  for (const LinkOrder& link : schedule.link_orders) {
    const ResourceId resource = find_resource(plan, link.resource);
    auto sends = sends_over(plan, resource);
    std::vector<OpId>& order = plan.resources[index(resource)].order;
    if (!order.empty())
      fail(
          "schedule {} orders \"{}\" twice (the second order would contradict the first). Join "
          "them.",
          plan.schedule, link.resource);
    for (const OrderedMessage& message : link.messages) {
      const Block& block = message.producer;
      const auto at =
          sends.find({message.replica, is_backward(block.kind), block.chunk, block.microbatch});
      if (at == sends.end())
        fail(
            "schedule {} orders {} of replica {} on \"{}\" (no such message takes it, or it is "
            "listed twice). Remove it from the order.",
            plan.schedule, to_text(block), message.replica, link.resource);
      order.push_back(at->second);
      sends.erase(at);
    }
    if (!sends.empty())
      fail(
          "schedule {} leaves {} of {} messages out of the order on \"{}\" (the first: {}). List "
          "every message that takes it.",
          plan.schedule, sends.size(), sends.size() + order.size(), link.resource,
          describe(plan, sends.begin()->second));
  }
}

}  // namespace longhaul
