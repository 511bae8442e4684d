#include "plan/channels.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::plan {
namespace {

constexpr std::size_t kMostNumbers = 256;  // LogGOPSim keeps them in 8 bits

}  // namespace

Channels::Channels(const Plan& plan)
    : plan_{plan}, taken_(plan.ranks.size(), std::vector<bool>(kMostNumbers)) {
  for (std::vector<bool>& taken : taken_) taken.front() = true;
  for (const Lane& lane : plan.lanes) {
    if (lane.kind == OpKind::send) add(lane.rank, lane.peer, false);
  }
  for (const std::vector<OpId>& members : plan.collectives) {
    for (std::size_t i = 0; i < members.size(); ++i)
      add(plan.rank_of(members[i]), plan.rank_of(members[(i + 1) % members.size()]), true);
  }
}

void Channels::add(Rank from, Rank to, bool ring) {
  const auto [at, is_new] = number_.try_emplace({from, to, ring}, 0);
  if (!is_new) return;
  std::vector<bool>& here = taken_[index(from)];
  std::vector<bool>& there = taken_[index(to)];
  std::size_t number = 0;
  while (number < kMostNumbers && (here[number] || there[number])) ++number;
  if (number == kMostNumbers) {
    fail(
        "{} cannot be written as GOAL (rank {} or {} talks to so many others that the format's 256 "
        "processors a rank do not suffice). Use fewer replicas.",
        plan_.schedule, index(from), index(to));
  }
  here[number] = there[number] = true;
  at->second = static_cast<int>(number);
}

}  // namespace longhaul::plan
