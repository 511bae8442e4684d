#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace longhaul::training {

/// Replicas of nodes whose gradients of a part are summed before anything else: of each node one
/// makes sets and keeps residuals, and is a replica to the exchange. Where nothing is summed each
/// replica is such a one.
class ReplayNodes {
public:
  /// `leaders`, of each replica: the one that sums its node's gradients, itself or a lower one. Of
  /// none, each does for itself. Throws Error where one is led by a replica that is led.
  ReplayNodes(std::span<const int> leaders, std::size_t replicas);

  /// Those that make sets, ascending.
  [[nodiscard]] const std::vector<std::size_t>& members() const { return members_; }
  /// What belongs to those that make sets, of what belongs to replicas.
  [[nodiscard]] std::vector<int> of_members(std::span<const int> of_replicas) const;
  /// Among those that make sets; nullopt: another does for it.
  [[nodiscard]] std::optional<std::size_t> place(ReplicaId replica) const;
  /// Of each node the gradients of its replicas, in their order: in fp32, one added to the other.
  [[nodiscard]] std::vector<std::vector<float>> sums(
      std::span<const std::span<const float>> gradients) const;

private:
  std::vector<std::size_t> members_;
  std::vector<std::size_t> leader_of_;  ///< of each replica
};

}  // namespace longhaul::training
