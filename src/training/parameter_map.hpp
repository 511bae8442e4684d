#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "comm/group/communicator.hpp"
#include "training/stage_shard.hpp"

namespace longhaul::training {

/// Where one tensor lies among the model's numbers.
struct ParameterExtent {
  std::string name;
  std::size_t first = 0, count = 0;
};

/// A stretch of the model's numbers that a rank holds.
struct ShardExtent {
  StageId stage{};
  std::size_t first = 0, count = 0;
};

/// Which rank holds which of the model's numbers. They are the stages' Chunk::all_weights(), one
/// stage after the other: the same order for every way to cut the model.
struct ParameterMap {
  std::size_t count = 0;
  std::vector<ParameterExtent> tensors;                   ///< ascending
  IndexedVector<Rank, std::vector<ShardExtent>> of_rank;  ///< in order of the rank's stages

  /// Collective: every rank tells what it holds. The same on all.
  [[nodiscard]] static ParameterMap make(const comm::Communicator& world,
                                         const std::vector<StageShard>& stages);
  /// The part of one rank, and the parts of all, in order of rank: asserts that each number of the
  /// model is held by a rank.
  [[nodiscard]] static std::string to_text(const std::vector<StageShard>& stages);
  [[nodiscard]] static ParameterMap read(const std::vector<std::string>& of_ranks);
  /// Numbers that the rank holds.
  [[nodiscard]] std::size_t count_of(Rank rank) const;
  /// The entry of a stage that the map knows.
  [[nodiscard]] std::size_t first_of(StageId stage) const { return stage_first[stage]; }
  IndexedVector<StageId, std::size_t> stage_first;

private:
  void require_complete() const;
};

/// Collective: rank 0 gets the numbers of every rank, in order of rank; the others nothing.
[[nodiscard]] std::vector<std::vector<float>> gather_numbers(const comm::Communicator& world,
                                                             std::span<const float> mine);
/// Collective: everyone gets rank 0's numbers.
void broadcast_numbers(const comm::Communicator& world, std::vector<float>& numbers);

/// Puts what the ranks hold in its place in the model; of several holders the first.
[[nodiscard]] std::vector<float> assembled(const ParameterMap& map,
                                           const std::vector<std::vector<float>>& of_rank);

}  // namespace longhaul::training
