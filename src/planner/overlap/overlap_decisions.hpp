#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collective/overlap/rewrites.hpp"
#include "collective/partition/communication_classes.hpp"
#include "collective/partition/partition.hpp"
#include "planner/overlap/overlap_bound.hpp"

namespace longhaul::planner {

/// An iteration with its collectives before anything is decided about them: of one sharding and one
/// order of blocks.
struct OverlapVariant {
  collective::IterationPlan plan;
  std::vector<collective::CommunicationClass> classes;
  std::optional<collective::LevelSizes> levels;
  OverlapBound bound;
};

/// Of hybrid sharding: the sum over the copies of a chunk's shards in one, or one for each unit.
enum class CopySums : std::uint8_t { of_chunk, of_units };

/// Refused as collective::overlapped() is.
[[nodiscard]] Result<OverlapVariant> overlap_variant(const Schedule& schedule,
                                                     const Scenario& scenario,
                                                     Arrangement arrangement,
                                                     CopySums sums = CopySums::of_chunk);

/// Which gradients of an operator, or of a block, come first.
#define LONGHAUL_GRADIENT_ORDERS(X) \
  X(scheduled, "as scheduled") X(dgrads_first, "D first") X(wgrads_first, "W first")
LONGHAUL_LISTED_ENUM(GradientOrder, LONGHAUL_GRADIENT_ORDERS);

/// All that a search decides of an iteration.
struct OverlapDecisions {
  std::size_t variant = 0;
  CopySums sums = CopySums::of_chunk;  ///< of that variant
  std::optional<int> ahead = 1;        ///< units that are gathered ahead; nullopt: as memory allows
  collective::ShardedLanes lanes = collective::ShardedLanes::apart;
  GradientOrder order = GradientOrder::scheduled;
  std::uint32_t units = 0xffffffff;  ///< of wgrads first: which (collective::put_wgrads_first())
  std::vector<collective::Partition> partitions;  ///< by class of the variant
  friend bool operator==(const OverlapDecisions&, const OverlapDecisions&) = default;
};

/// The iteration as decided.
[[nodiscard]] collective::IterationPlan decided(const OverlapVariant& variant,
                                                const OverlapDecisions& decisions);

/// "unit layer, 4 ahead, W first, gathers far first", for rows.
[[nodiscard]] std::string decisions_text(const OverlapDecisions& decisions,
                                         const OverlapVariant& variant);

/// What a class may become, whole first: sub-groups, pieces with their operator or a chain, meshes,
/// and of all-reduces a scatter and a gather.
[[nodiscard]] std::vector<collective::Partition> partition_options(
    const OverlapVariant& variant, const collective::CommunicationClass& own);
/// Of these the one in sub-groups that a search starts from, or a mesh in pieces; or whole.
[[nodiscard]] collective::Partition grouped_start(
    const std::vector<collective::Partition>& options);

}  // namespace longhaul::planner
