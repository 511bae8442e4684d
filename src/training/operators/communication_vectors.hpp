#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collective/iteration/lower_iteration.hpp"
#include "nn/memory.hpp"
#include "training/operators/operator_chunk.hpp"

namespace longhaul::training {

/// What a communication moves: outputs and gradients between tensor ranks, weights, gradients of
/// weights, a rank's shards of them, or sums that are gathered after they were scattered.
enum class MovedNumbers : std::uint8_t { activations, weights, gradients, shards, sums };

/// The vector of a communication on one rank, and where its numbers come from and go to.
struct CommunicationVector {
  MovedNumbers moves = MovedNumbers::activations;
  collective::CommunicationId id{};
  std::size_t collective = 0;  ///< of Plan::stepped
  int members = 1, own = 0;
  std::vector<int> places;  ///< operators of the chunk whose weights or gradients it has, in order
  nn::Buffer numbers;
  bool is_begun = false, is_taken = false;

  /// What member `own` brings of a gather, or gets of a scatter.
  [[nodiscard]] ShardRange item() const;
};

/// Numbers of a vector of `count` that a member brings or gets: as plan::shard_size() cuts bytes.
[[nodiscard]] ShardRange item_of(std::size_t count, int members, int member);

/// The communications of a rank, by CommunicationId; those among groups of which the rank is alone
/// are left out of `plan`. Memory for their numbers is not taken yet.
[[nodiscard]] std::map<collective::CommunicationId, CommunicationVector> vectors_of(
    const collective::IterationPlan& plan, const collective::LoweredIteration& lowered, Rank self);

}  // namespace longhaul::training
