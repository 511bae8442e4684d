#include "training/replay/replay_nodes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::training {

ReplayNodes::ReplayNodes(std::span<const int> leaders, std::size_t replicas) {
  if (!leaders.empty() && leaders.size() != replicas)
    fail("{} leaders of {} replicas. Give as many, or none.", leaders.size(), replicas);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    const std::size_t leader = leaders.empty() ? replica : to_size(leaders[replica]);
    if (leader > replica || (leader < replica && leader_of_[leader] != leader))
      fail("replica {} is led by {} (the first of a node leads it). Give that one.", replica,
           leader);
    leader_of_.push_back(leader);
    if (leader == replica) members_.push_back(replica);
  }
}

std::vector<int> ReplayNodes::of_members(std::span<const int> of_replicas) const {
  std::vector<int> own;
  for (const std::size_t member : members_) own.push_back(of_replicas[member]);
  return own;
}

std::optional<std::size_t> ReplayNodes::place(ReplicaId replica) const {
  const auto found = std::ranges::find(members_, index(replica));
  if (found == members_.end()) return std::nullopt;
  return to_size(found - members_.begin());
}

std::vector<std::vector<float>> ReplayNodes::sums(
    std::span<const std::span<const float>> gradients) const {
  std::vector<std::vector<float>> all;
  for (const std::size_t member : members_) {
    std::vector<float>& sum = all.emplace_back(gradients[member].begin(), gradients[member].end());
    for (std::size_t replica = member + 1; replica < gradients.size(); ++replica)
      for (std::size_t i = 0; leader_of_[replica] == member && i < sum.size(); ++i)
        sum[i] = sum[i] + gradients[replica][i];
  }
  return all;
}

}  // namespace longhaul::training
