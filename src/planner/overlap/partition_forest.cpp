#include "planner/overlap/partition_forest.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "collective/iteration/iteration_memory.hpp"
#include "planner/overlap/partition_tree.hpp"

namespace longhaul::planner {
namespace {

using collective::CommunicationClass;
using collective::LayerCosts;
using collective::Operation;
using collective::Traffic;

/// Of the first stage, of each layer and microbatch.
class RuleCosts {
public:
  RuleCosts(const OverlapVariant& variant, const std::vector<PartitionTree>& trees)
      : plan_{variant.plan}, trees_{trees} {}

  [[nodiscard]] LayerCosts layer() const {
    LayerCosts costs;
    for (const collective::OperationId id : work().order) {
      const Operation& operation = work().operations[id];
      if (operation.place < 0) continue;
      if (operation.work == BlockKind::W)
        costs.weight_gradient += operation.duration;
      else if (operation.work == BlockKind::D)
        (operation.has_weights ? costs.activation_gradient : costs.others) += operation.duration;
    }
    for (const PartitionTree& tree : trees_) {
      const CommunicationClass& own = tree.communications;
      if (own.work == BlockKind::F || own.traffic == Traffic::dp) continue;
      const bool gathers = own.kind == CollectiveKind::all_gather;
      if (own.traffic == Traffic::tp)
        (gathers ? costs.activation_gather : costs.activation_scatter) += all_of(tree);
      else
        (gathers ? costs.weight_gather : costs.weight_gradient_scatter) += all_of(tree);
    }
    const auto& layers = plan_.scenario->layers;
    const std::int64_t count = std::int64_t{layers.empty() ? 1 : std::max(1, layers.front())} *
                               std::max(1, plan_.scenario->parallel.microbatches);
    for (Duration* each :
         {&costs.weight_gather, &costs.activation_gradient, &costs.activation_gather,
          &costs.weight_gradient, &costs.activation_scatter, &costs.weight_gradient_scatter,
          &costs.others})
      *each /= count;
    return costs;
  }

  [[nodiscard]] std::optional<collective::ModelChoice> model() const {
    const Scenario& scenario = *plan_.scenario;
    collective::ModelCosts costs;
    for (const PartitionTree& tree : trees_) {
      const CommunicationClass& own = tree.communications;
      if (own.traffic != Traffic::dp) continue;
      const Duration cost = all_of(tree);
      const bool is_both = own.kind == CollectiveKind::all_reduce;
      if (is_both || own.kind == CollectiveKind::all_gather)
        costs.gather += is_both ? cost / 2 : cost;
      if (own.kind != CollectiveKind::all_gather) costs.scatter += is_both ? cost / 2 : cost;
    }
    if (costs.gather + costs.scatter == Duration{}) return std::nullopt;
    for (const collective::OperationId id : work().order) {
      const Operation& operation = work().operations[id];
      if (operation.microbatch != MicrobatchId{0}) continue;
      (operation.work == BlockKind::F ? costs.forward : costs.backward) += operation.duration;
    }
    costs.microbatches = scenario.parallel.microbatches;
    costs.activation =
        scenario.costs.activation.empty() ? Bytes{} : scenario.costs.activation.front();
    costs.memory = costs.activation * costs.microbatches;
    const auto& capacities = scenario.memory.capacity;
    if (!capacities.empty() && capacities.front())
      costs.memory = *capacities.front() - collective::always_held(plan_, DeviceId{0});
    return collective::model_choice(costs);
  }

private:
  [[nodiscard]] const collective::StageWork& work() const { return plan_.stages[DeviceId{0}]; }
  /// Those of the first stage, one after the other.
  [[nodiscard]] static Duration all_of(const PartitionTree& tree) {
    const auto count = std::ranges::count_if(
        tree.communications.all, [](const auto& each) { return each.stage == DeviceId{0}; });
    return tree.leaves[tree.choice].cost * count;
  }

  const collective::IterationPlan& plan_;
  const std::vector<PartitionTree>& trees_;
};

}  // namespace

Result<PartitionForest> partition_forest(const OverlapVariant& variant) {
  PartitionForest forest;
  PartitionCosts costs{*variant.plan.scenario};
  for (const CommunicationClass& each : variant.classes) {
    Result<PartitionTree> tree = partition_tree(variant, each, costs);
    if (!tree) return tree.refusal();
    forest.trees.push_back(*std::move(tree));
  }
  const RuleCosts rules{variant, forest.trees};
  forest.layer = rules.layer();
  forest.layer_times = collective::layer_times(forest.layer);
  forest.model = rules.model();
  return forest;
}

OverlapDecisions decisions_by_rules(const OverlapVariant& variant, const PartitionForest& forest) {
  OverlapDecisions decisions;
  decisions.ahead = variant.plan.scenario->parallel.sharding.prefetch;
  const auto& [activations, weights] = forest.layer_times;
  decisions.order = weights < activations ? GradientOrder::wgrads_first : GradientOrder::scheduled;
  for (const PartitionTree& tree : forest.trees)
    decisions.partitions.push_back(tree.leaves[tree.choice].partition);
  return decisions;
}

}  // namespace longhaul::planner
