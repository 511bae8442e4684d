#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/export/export.hpp"
#include "plan/export/goal_hosts.hpp"

namespace longhaul::plan {
namespace {

/// LogGOPSim reads the size above which a sender waits (-S) as 32 bits with a sign.
constexpr std::int64_t kLargestEager = std::numeric_limits<std::int32_t>::max();

/// Of the messages of a plan, by what the file says of them.
struct MessageFacts {
  bool any_sent = false;
  bool latencies_differ = false;
  Duration latency{};
  bool any_transfer = false;
  /// Those times of a byte with which every transfer, rounded down, takes its own time.
  double least_per_byte = 0;
  double most_per_byte = std::numeric_limits<double>::infinity();
  Bytes largest;
  bool inside_takes_time = false;  ///< a message that the file leaves out takes time in the plan
};

MessageFacts facts_of_messages(const Plan& plan, GoalSimulator simulator) {
  const GoalHosts hosts{plan, simulator};
  MessageFacts facts;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& send = plan.ops[i];
    if (send.kind != OpKind::send) continue;
    const Duration latency = plan.ops[send.match].duration;
    const Rank from = plan.rank_of(OpId{static_cast<std::uint32_t>(i)});
    if (hosts.share_one(from, send.peer)) {
      if (send.duration + latency > Duration{}) facts.inside_takes_time = true;
      continue;
    }
    if (facts.any_sent && latency != facts.latency) facts.latencies_differ = true;
    facts.any_sent = true;
    facts.latency = latency;
    facts.largest = std::max(facts.largest, send.size);
    const auto time = static_cast<double>(send.duration.count());
    const auto bytes = static_cast<double>(send.size.count());
    if (time > 0) facts.any_transfer = true;
    if (send.size.count() == 0) continue;
    facts.least_per_byte = std::max(facts.least_per_byte, time / bytes);
    facts.most_per_byte = std::min(facts.most_per_byte, (time + 1) / bytes);
  }
  return facts;
}

bool shares_links(const Plan& plan) {
  return std::ranges::any_of(plan.resources, [](const Resource& resource) {
    return resource.lanes > 1 && resource.kind != ResourceKind::device &&
           resource.kind != ResourceKind::collective;
  });
}

std::optional<GoalParameters> parameters_of(const MessageFacts& facts) {
  if (facts.latencies_differ || facts.least_per_byte >= facts.most_per_byte) return std::nullopt;
  // As small as messages allow, so that larger ones, of collectives, are true too; above it by less
  // than any of them notices, since a product is rounded down.
  constexpr double kAbove = 1 + 1e-15;
  return GoalParameters{facts.latency, facts.least_per_byte * kAbove};
}

}  // namespace

std::optional<GoalParameters> goal_parameters(const Plan& plan, GoalSimulator simulator) {
  return parameters_of(facts_of_messages(plan, simulator));
}

std::vector<std::string> goal_remarks(const Plan& plan, GoalSimulator simulator) {
  const MessageFacts facts = facts_of_messages(plan, simulator);
  const auto parameters = parameters_of(facts);
  const bool original = simulator == GoalSimulator::loggopsim;
  std::vector<std::string> remarks;
  if (!parameters) {
    remarks.emplace_back(
        "messages differ in latency or rate: LogGOPSim has one L and one G for all of them, so "
        "that "
        "none are equal to ours");
  } else {
    remarks.push_back(
        fmt::format("LogGOPSim takes -L {} -G {} -o 0 -g 0 -O 0 -S {}", parameters->latency.count(),
                    original && facts.any_transfer ? 0 : parameters->per_byte, kLargestEager));
  }
  if (original && facts.any_transfer)
    remarks.emplace_back(
        "the original LogGOPSim has G in whole ns and charges it to the receiver's processor: its "
        "times are ours only where messages take latency alone");
  if (plan.arrangement == Arrangement::grouped)
    remarks.emplace_back(
        "--comm grouped: LogGOPSim will not wait for receives that are posted late (its messages "
        "are eager), so that its times are shorter than ours");
  if (facts.inside_takes_time)
    remarks.emplace_back("messages inside a datacenter take time here and none in the file");
  if (!plan.extras.overlap.none())
    remarks.emplace_back(
        "blocks take longer beside messages here ([overlap]) and not in LogGOPSim: its times are "
        "shorter than ours");
  if (shares_links(plan))
    remarks.emplace_back(
        "messages that share a link or an interface wait for one another here and not in "
        "LogGOPSim");
  if (facts.largest.count() >= kLargestEager)
    remarks.emplace_back("messages of 2 GiB and more are not eager: their senders wait");
  return remarks;
}

}  // namespace longhaul::plan
