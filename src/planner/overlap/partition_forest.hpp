#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective/partition/workload_chain.hpp"
#include "collective/rules/layer_rule.hpp"
#include "collective/rules/model_rule.hpp"
#include "collective/rules/operation_rule.hpp"
#include "planner/overlap/overlap_decisions.hpp"

namespace longhaul::planner {

/// A way to partition a collective: primitive, group, workload (Centauri, figure 4).
struct PartitionLeaf {
  collective::Partition partition;
  /// Along which the workload is cut (table 3), and the operators that are cut with it; nothing
  /// where it stays whole.
  std::optional<collective::WorkloadDimension> dimension;
  std::vector<std::string> chain;
  std::vector<collective::Fraction> granularity = std::vector<collective::Fraction>(1);
  Duration cost{};  ///< of the collective alone on the network, its pieces one after the other
  /// What neither the chain nor independent computation hides of it, with what pieces cost.
  Duration exposed{};
};

struct PrunedPartition {
  std::string partition, reason;
};

/// All of a class of communications.
struct PartitionTree {
  collective::CommunicationClass communications;
  int ranks = 0;  ///< of each
  std::vector<PartitionLeaf> leaves;
  std::vector<PrunedPartition> pruned;
  std::size_t choice = 0;  ///< of the paper's rules
};

/// Centauri's partitions of an iteration (figure 4), and what its rules say of the layer and the
/// model tier on the costs of the chosen leaves.
struct PartitionForest {
  std::vector<PartitionTree> trees;  ///< by class of the variant
  collective::LayerCosts layer;      ///< of a layer of the first stage's backward
  collective::LayerTimes layer_times;
  std::optional<collective::ModelChoice> model;  ///< nothing: no sum over replicas, or no room
};

/// Costs are those of collectives played alone. Refused where one cannot be played.
[[nodiscard]] Result<PartitionForest> partition_forest(const OverlapVariant& variant);

/// The rules' decisions on the forest: of each tree the choice, and the order of equation 1.
[[nodiscard]] OverlapDecisions decisions_by_rules(const OverlapVariant& variant,
                                                  const PartitionForest& forest);

}  // namespace longhaul::planner
