#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "planner/overlap/partition_forest.hpp"

namespace longhaul::planner {

/// What collectives take that are played alone, each played once. The scenario outlives it.
class PartitionCosts {
public:
  explicit PartitionCosts(const Scenario& scenario) : scenario_{scenario} {}
  /// A mesh without sizes: a ring of all.
  [[nodiscard]] Result<Duration> of(CollectiveKind kind, const std::vector<Rank>& group, Bytes size,
                                    const plan::Mesh& mesh = {}, int pieces = 1);

private:
  using Key = std::tuple<CollectiveKind, std::vector<Rank>, std::int64_t, std::vector<int>, int>;
  const Scenario& scenario_;
  std::map<Key, Duration> known_;
};

/// The tree of a class, level by level: primitives that cost more than the collective, meshes with
/// unequal sub-groups or that cost more than the whole group, and dimensions that are not cut or
/// reach less of a chain are pruned.
[[nodiscard]] Result<PartitionTree> partition_tree(const OverlapVariant& variant,
                                                   const collective::CommunicationClass& of,
                                                   PartitionCosts& costs);

}  // namespace longhaul::planner
