#include "collective/iteration/weight_units.hpp"

#include <span>

#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

std::span<const Operator> operators_of(const IterationPlan& plan, ChunkId chunk) {
  const auto ranges = schedule::operators_of_chunks(*plan.schedule, *plan.scenario);
  return std::span{*plan.scenario->operators.all}.subspan(ranges[chunk].first, ranges[chunk].count);
}

/// By place: the number of its unit in the chunk, ascending from 0; -1: of none.
std::vector<std::int32_t> units_by_layers(std::span<const Operator> operators, int layers) {
  std::vector<std::int32_t> units;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const int layer =
        operators[i].layer < 0 ? static_cast<int>(i) : operators[i].layer - operators.front().layer;
    units.push_back(layer / layers);
  }
  return units;
}

std::vector<std::int32_t> units_by_operators(std::span<const Operator> operators) {
  std::vector<std::int32_t> units;
  std::int32_t next = 0;
  bool open = false;  // normalizations alone so far
  for (const Operator& each : operators) {
    if (each.weights == Bytes{}) {
      units.push_back(-1);
      continue;
    }
    units.push_back(next);
    open = each.kind == OperatorKind::normalization;
    if (!open) ++next;
  }
  if (!open || next == 0) return units;
  for (std::int32_t& unit : units)
    if (unit == next) unit = next - 1;
  return units;
}

}  // namespace

std::vector<Bytes> weights_of_operators(const IterationPlan& plan, ChunkId chunk) {
  const std::span<const Operator> operators = operators_of(plan, chunk);
  Bytes all;
  for (const Operator& each : operators) all += each.weights;
  const auto [of, place] = chunk_shares(*plan.schedule)[chunk];
  const Bytes whole =
      share(plan.scenario->costs.weights[index(plan.schedule->device_of_chunk[chunk])], of, place);
  std::vector<Bytes> weights;
  Bytes sum, before;
  for (const Operator& each : operators) {
    sum += each.weights;
    const Bytes end{
        portion(Duration{whole.count()}, Duration{sum.count()}, Duration{all.count()}).count()};
    weights.push_back(all == Bytes{} ? Bytes{} : end - before);
    before = end;
  }
  return weights;
}

Bytes gradients_of(Bytes weights, const Scenario& scenario) {
  return weights * scenario.parallel.sharding.gradient_bytes / 2;
}

UnitsOfStage weight_units(const IterationPlan& plan, DeviceId stage) {
  const ShardingOptions& options = plan.scenario->parallel.sharding;
  UnitsOfStage made;
  made.unit_of.resize(plan.schedule->chunks);
  for (const ChunkId chunk : chunks_on(*plan.schedule, stage)) {
    const std::span<const Operator> operators = operators_of(plan, chunk);
    if (operators.empty()) continue;
    std::vector<std::int32_t> units = options.unit_layers
                                          ? units_by_layers(operators, *options.unit_layers)
                                          : units_by_operators(operators);
    const std::vector<Bytes> weights = weights_of_operators(plan, chunk);
    const auto first = static_cast<std::int32_t>(made.units.size());
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (units[i] < 0) continue;
      units[i] += first;
      if (at(units[i]) >= made.units.size()) made.units.resize(at(units[i]) + 1, {chunk, {}, {}});
      made.units[at(units[i])].weights += weights[i];
    }
    made.unit_of[chunk] = std::move(units);
  }
  for (WeightUnit& unit : made.units) unit.gradients = gradients_of(unit.weights, *plan.scenario);
  return made;
}

}  // namespace longhaul::collective
