#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::testing {

/// Operators of a list, named "a", "b", ..., with dgrad twice and wgrad as long as forward.
inline std::vector<Operator> operators_of(const std::vector<int>& forward_ns) {
  std::vector<Operator> all;
  for (const int ns : forward_ns) {
    const Duration time{ns};
    all.push_back({std::string(1, static_cast<char>('a' + all.size())), OperatorKind::matmul, -1,
                   Bytes{}, time, 2 * time, time, time});
  }
  return all;
}

/// Cuts the scenario's blocks in proportion to these.
inline void cut_by(std::vector<Operator> operators, Scenario& scenario) {
  scenario.operators = {std::make_shared<const std::vector<Operator>>(std::move(operators)), false};
}

/// Makes these the costs, as a file of [[operator]] does. At least one for each stage.
inline void cost_by(std::vector<Operator> operators, Scenario& scenario) {
  const auto count = scenario::evenly(static_cast<int>(operators.size()), scenario.parallel.stages);
  Costs sums = scenario::operator_costs(operators, count);
  sums.activation = scenario.costs.activation;
  sums.message = scenario.costs.message;
  sums.weights = scenario.costs.weights;
  sums.optimizer = scenario.costs.optimizer;
  scenario.costs = std::move(sums);
  cut_by(std::move(operators), scenario);
  scenario.operators.are_costs = true;
}

/// From one for each stage up to four for each of its chunks; many take no time in some block.
inline std::vector<Operator> random_operators(const Scenario& scenario, Random& random) {
  const auto time = [&] { return Duration{random.between(0, 2) == 0 ? 0 : random.between(1, 90)}; };
  const std::int64_t stages = scenario.parallel.stages;
  const std::int64_t count = random.between(stages, 4 * stages * scenario.parallel.chunks);
  std::vector<Operator> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back({"op" + std::to_string(i % 7), OperatorKind::elementwise, -1, Bytes{}, time(),
                   time(), time(), time()});
  return all;
}

}  // namespace longhaul::testing
