#include "scenario/needed_operators.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::scenario {
namespace {

/// The nodes that the tensor ranks of the first stage lie on.
int nodes_of_tensor_ranks(const Scenario& scenario) {
  const int ranks = scenario.parallel.tensor;
  if (ranks == 1 || !scenario.is_placed()) return 1;
  std::set<std::pair<DatacenterId, int>> nodes;
  for (int tensor = 0; tensor < ranks; ++tensor) {
    const Rank rank = scenario.rank(ReplicaId{0}, DeviceId{0}, tensor);
    const DatacenterId where = scenario.datacenter_of(rank);
    const NodeInterfaces* const interfaces = scenario.interfaces(where);
    const int gpus = interfaces != nullptr
                         ? interfaces->gpus
                         : scenario.datacenters[index(where)].gpus_per_node.value_or(0);
    int before = 0;  // ranks of the datacenter
    for (std::int32_t other = 0; other < number(rank); ++other)
      before += scenario.datacenter_of(Rank{other}) == where ? 1 : 0;
    nodes.emplace(where, gpus > 0 ? before / gpus : 0);
  }
  return static_cast<int>(nodes.size());
}

void require_division(const Model& model, int tensor) {
  for (const auto& [what, count] : {std::pair{"heads", model.heads},
                                    {"hidden", model.hidden},
                                    {"intermediate", model.intermediate}})
    if (count % tensor != 0)
      fail(
          "{} tensor ranks do not divide model.{} = {} (each computes an equal part). Choose a "
          "number that does.",
          tensor, what, count);
}

std::vector<std::string> parts_of_model(const Model& model) {
  std::vector<std::string> parts;
  for (const int layer : {0, std::min(1, model.layers - 1), model.layers - 1}) {
    const std::string part = part_of_layer(model, layer);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

}  // namespace

LayerLayout layout_of(const Scenario& scenario) {
  LONGHAUL_ASSERT(scenario.model.has_value(), "{} has no model", scenario.name);
  LayerLayout layout;
  layout.tensor = std::max(scenario.parallel.tensor, scenario.model->tensor_parallel);
  layout.sequence_parallel = scenario.parallel.sharding.sequence_parallel && layout.tensor > 1;
  layout.nodes = nodes_of_tensor_ranks(scenario);
  layout.recompute = scenario.memory.recompute;
  const Parallel& parallel = scenario.parallel;
  if (parallel.gradient_sync == GradientSync::zero3)
    layout.optimizer_ranks = parallel.shard;
  else if (divides_optimizer(parallel.gradient_sync))
    layout.optimizer_ranks = parallel.replicas;
  return layout;
}

const char* part_of_layer(const Model& model, int layer) {
  if (model.vocabulary == 0 || model.layers == 1) return "layer";
  return layer == 0 ? "embedding" : layer + 1 == model.layers ? "head" : "layer";
}

const char* type_name(const Model& model) {
  switch (model.precision.value_or(Precision::bf16)) {
    case Precision::fp32: return "f32";
    case Precision::fp16: return "f16";
    case Precision::bf16: return "bf16";
  }
  return "bf16";
}

std::vector<OperatorCall> calls_of_model(const Scenario& scenario) {
  LONGHAUL_ASSERT(scenario.model.has_value(), "{} has no model", scenario.name);
  require_division(*scenario.model,
                   std::max(scenario.parallel.tensor, scenario.model->tensor_parallel));
  const LayerLayout layout = layout_of(scenario);
  std::vector<OperatorCall> calls;
  for (const std::string& part : parts_of_model(*scenario.model)) {
    std::vector<OperatorCall> of_part = calls_of_part(*scenario.model, layout, part);
    calls.insert(calls.end(), std::move_iterator{of_part.begin()},
                 std::move_iterator{of_part.end()});
  }
  return calls;
}

std::vector<NeededOperator> needed_operators(const Scenario& scenario) {
  std::vector<NeededOperator> needed;
  for (OperatorCall& call : calls_of_model(scenario)) {
    const auto same = [&](const NeededOperator& known) {
      return known.part == call.part && known.block == call.block &&
             known.operation == call.operation && known.shape == call.shape &&
             known.type == call.type;
    };
    const auto at = std::ranges::find_if(needed, same);
    if (at != needed.end())
      ++at->calls;
    else
      needed.push_back({std::move(call.part), std::move(call.block), std::move(call.operation),
                        std::move(call.shape), std::move(call.type), 1});
  }
  return needed;
}

std::vector<PartOperator> operators_of_part(const Scenario& scenario, const std::string& part) {
  return operators_of_part(*scenario.model, layout_of(scenario), part);
}

}  // namespace longhaul::scenario
