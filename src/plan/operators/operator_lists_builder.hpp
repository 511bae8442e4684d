#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/index.hpp"
#include "plan/operators/operator_lists.hpp"
#include "scenario/scenario.hpp"
#include "schedule/block.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/block_operators.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// Makes the lists of a schedule's blocks, each when it is asked for first.
///
///     OperatorListsBuilder builder{schedule, scenario};
///     const OperatorListId id = builder.list_of(Block{.kind = BlockKind::F, .chunk = ChunkId{3}});
///     const OperatorLists lists = std::move(builder).take();
class OperatorListsBuilder {
public:
  /// The scenario outlives it, and knows its operators. With tasks a list has those of each
  /// operator instead, "qkv/gemm".
  OperatorListsBuilder(const Schedule& schedule, const Scenario& scenario,
                       Below below = Below::operators);
  /// The last operator of a list ends when the block does: BlockCosts::duration().
  [[nodiscard]] OperatorListId list_of(const Block& block, ReplicaId replica = ReplicaId{0});
  /// One operator of that name, without a layer.
  [[nodiscard]] OperatorListId list_of(const std::string& name, Duration time);
  /// Those that have been made.
  [[nodiscard]] const OperatorLists& lists() const { return lists_; }
  [[nodiscard]] OperatorLists take() && { return std::move(lists_); }

private:
  [[nodiscard]] OperatorListId made(const Block& block, std::size_t costs);
  [[nodiscard]] std::vector<schedule::BlockOperator> with_tasks(
      std::vector<schedule::BlockOperator> operators, std::span<const Operator> of_chunk) const;
  [[nodiscard]] OperatorListId shared(std::vector<OperatorStep> steps);
  [[nodiscard]] std::uint32_t number_of(const std::string& name);

  const Scenario& scenario_;
  Below below_;
  std::vector<schedule::BlockCosts> costs_;  ///< of each replica; one where all have the same
  IndexedVector<ChunkId, schedule::OperatorRange> ranges_;
  OperatorLists lists_;
  /// Of blocks that are not divided. Index: as of costs_.
  std::vector<IndexedVector<ChunkId, std::array<OperatorListId, 5>>> whole_;
  std::map<std::tuple<std::size_t, BlockKind, ChunkId, std::uint8_t, std::uint8_t>, OperatorListId>
      parts_;
  std::map<std::vector<OperatorStep>, OperatorListId> known_;
  std::map<std::string, std::uint32_t> numbers_;
};

}  // namespace longhaul::plan
