#include "report/throughput.hpp"

#include "scenario/model_costs.hpp"

namespace longhaul {
namespace {

/// Of all replicas together, in one iteration.
double microbatches(const Scenario& scenario) {
  return static_cast<double>(scenario.parallel.replicas) * scenario.parallel.microbatches;
}

}  // namespace

std::optional<double> tokens_per_second(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || makespan_ns <= 0) return std::nullopt;
  const Model& model = *scenario.model;
  const double tokens = static_cast<double>(model.microbatch_size) * model.sequence_length;
  return microbatches(scenario) * tokens / (static_cast<double>(makespan_ns) * 1e-9);
}

std::optional<double> model_flops_utilization(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || scenario.model->peak_flops <= 0 || makespan_ns <= 0) return std::nullopt;
  const Model& model = *scenario.model;
  const double gpus = static_cast<double>(scenario.ranks()) * model.tensor_parallel;
  return microbatches(scenario) * training_flops(model) /
         (static_cast<double>(makespan_ns) * 1e-9 * gpus * model.peak_flops);
}

}  // namespace longhaul
