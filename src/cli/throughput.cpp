#include "cli/throughput.hpp"

namespace longhaul {
namespace {

/// Sequences that all replicas together train on in one iteration.
double sequences(const Scenario& scenario) {
  return static_cast<double>(scenario.parallel.replicas) * scenario.parallel.microbatches *
         scenario.model->microbatch_size;
}

/// Forward FLOPs of one sequence: matrix products of the blocks and of the output head, causal
/// attention counted half. Two of the layers are embedding and head.
double forward_flops(const Model& model) {
  const double hidden = model.hidden;
  const double tokens = model.sequence_length;
  const double kv_share = static_cast<double>(model.kv_heads) / model.heads;
  const double attention = 2.0 * hidden * hidden * (1.0 + kv_share);
  const double mlp = 3.0 * hidden * model.intermediate;
  const double block = 2.0 * tokens * (attention + mlp) + 2.0 * tokens * tokens * hidden;
  const double head = 2.0 * tokens * hidden * model.vocabulary;
  return (model.layers - 2) * block + head;
}

}  // namespace

std::optional<double> tokens_per_second(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || makespan_ns <= 0) return std::nullopt;
  return sequences(scenario) * scenario.model->sequence_length /
         (static_cast<double>(makespan_ns) * 1e-9);
}

std::optional<double> model_flops_utilization(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || scenario.model->peak_flops <= 0 || makespan_ns <= 0) return std::nullopt;
  constexpr double kForwardAndBackward = 3.0;
  const Model& model = *scenario.model;
  const double needed = kForwardAndBackward * forward_flops(model) * sequences(scenario);
  const double gpus = static_cast<double>(scenario.ranks()) * model.tensor_parallel;
  return needed / (static_cast<double>(makespan_ns) * 1e-9 * gpus * model.peak_flops);
}

}  // namespace longhaul
