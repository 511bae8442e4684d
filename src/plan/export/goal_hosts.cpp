#include "plan/export/goal_hosts.hpp"

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::plan {
namespace {

constexpr std::size_t kMostNumbers = 256;  // LogGOPSim keeps processors and interfaces in 8 bits

void require_numbers(const Plan& plan, std::size_t needed, const char* of_what) {
  if (needed <= kMostNumbers) return;
  fail(
      "{} cannot be written as GOAL (a datacenter has {} {}; the format counts {} of a host). "
      "Take --goal loggopsim, where a host is a rank, or fewer replicas.",
      plan.schedule, needed, of_what, kMostNumbers);
}

}  // namespace

GoalHosts::GoalHosts(const Plan& plan, GoalSimulator simulator)
    : host_(plan.ranks.size()), device_(plan.ranks.size()) {
  if (simulator == GoalSimulator::loggopsim) {
    place_by_rank(plan);
  } else {
    place_by_datacenter(plan);
    number_channels(plan);
  }
}

void GoalHosts::place_by_rank(const Plan& plan) {
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    host_[rank] = rank;
    ranks_.push_back({Rank{static_cast<int>(rank)}});
  }
  communication_.assign(ranks_.size(), 0);
}

void GoalHosts::place_by_datacenter(const Plan& plan) {
  std::map<DatacenterId, std::size_t> host_of;  // datacenters without ranks have none
  for (const RankInfo& info : plan.ranks) host_of.try_emplace(info.datacenter, 0);
  for (auto& [datacenter, host] : host_of) {
    host = ranks_.size();
    ranks_.emplace_back();
  }
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    host_[rank] = host_of[plan.ranks[rank].datacenter];
    device_[rank] = ranks_[host_[rank]].size();
    ranks_[host_[rank]].push_back(Rank{static_cast<int>(rank)});
  }
  for (const std::vector<Rank>& here : ranks_) {
    require_numbers(plan, here.size() + 1, "processors, one for each device and one more");
    communication_.push_back(here.size());
  }
}

void GoalHosts::number_channels(const Plan& plan) {
  std::vector<std::size_t> next(ranks_.size(), 1);  // 0 takes receives
  const auto add = [&](Rank from, Rank to, bool ring) {
    if (share_one(from, to)) return;
    const auto [at, is_new] = interface_.try_emplace({from, to, ring}, next[of(from)]);
    if (is_new) ++next[of(from)];
  };
  for (const Lane& lane : plan.lanes) {
    if (lane.kind == OpKind::send) add(lane.rank, lane.peer, false);
  }
  for (const std::vector<OpId>& members : plan.collectives) {
    for (std::size_t i = 0; i < members.size(); ++i)
      add(plan.rank_of(members[i]), plan.rank_of(members[(i + 1) % members.size()]), true);
  }
  for (const std::size_t used : next)
    require_numbers(plan, used, "interfaces, one for each pair of ranks that it sends for");
}

std::size_t GoalHosts::interface_of(Rank from, Rank to, bool ring) const {
  const auto found = interface_.find({from, to, ring});
  return found == interface_.end() ? 0 : found->second;
}

}  // namespace longhaul::plan
