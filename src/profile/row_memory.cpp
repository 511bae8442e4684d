#include "profile/row_memory.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::profile {
namespace {

constexpr double kActivation = 2, kWeight = 2, kGradient = 2, kOptimizer = 12;

/// Activations of one layer and microbatch.
double of_layer(const TrainingRow& row, RecomputeKind recompute) {
  const double input = row.tokens() * row.hidden;
  if (recompute == RecomputeKind::full) return 2 * input / (row.sequence_parallel ? row.tensor : 1);
  const double whole = row.sequence_parallel ? 0 : 10;
  const bool keeps_scores =
      row.attention == AttentionKind::plain && recompute == RecomputeKind::none;
  const double scores = keeps_scores ? 5.0 * row.heads * row.sequence / row.hidden : 0;
  return input * (whole + (34 - whole + scores) / row.tensor);
}

/// Messages that a stage has a buffer for: activations and gradients, to and from each neighbour.
int messages_held(const TrainingRow& row) {
  if (row.pipeline == 1) return 0;
  const int once = row.pipeline == 2 ? 2 : 4;
  if (row.chunks == 1) return once;
  return row.schedule == RowSchedule::interleaved ? 4 : 2 * once;  // round a ring; there and back
}

}  // namespace

Bytes RowMemory::total() const {
  return Bytes{std::llround(weights + optimizer + activations + working + buffers)};
}

double in_flight(RowSchedule schedule, int pipeline, int chunks, int microbatches) {
  if (schedule == RowSchedule::gpipe) return microbatches;
  const double more = schedule == RowSchedule::interleaved ? (pipeline - 1.0) / chunks : 0;
  return std::min<double>(pipeline + more, microbatches);
}

RowMemory memory_of(const TrainingRow& row) {
  return memory_of(row, in_flight(row.schedule, row.pipeline, row.chunks, row.microbatches()));
}

RowMemory memory_of(const TrainingRow& row, double in_flight) {
  const double layers = std::ceil(double(row.layers) / row.pipeline);
  const double table = double(row.vocabulary) * row.hidden;
  const double held = (layers * row.layer_weights() + table) / row.tensor;
  const double ranks = row.data;
  const bool zero1 = row.sharding != ShardingKind::none;
  const bool zero2 = row.sharding == ShardingKind::zero2 || row.sharding == ShardingKind::zero3;
  const bool zero3 = row.sharding == ShardingKind::zero3;
  RowMemory memory;
  memory.weights = held * (kWeight / (zero3 ? ranks : 1) + kGradient / (zero2 ? ranks : 1));
  memory.optimizer = held * kOptimizer / (zero1 ? ranks : 1);
  memory.activations = in_flight * layers * of_layer(row, row.recompute);
  if (row.recompute != RecomputeKind::none) memory.working = of_layer(row, RecomputeKind::none);
  const double logits = 6 * row.tokens() * row.vocabulary / row.tensor;
  memory.working = std::max(memory.working, logits);
  memory.buffers = messages_held(row) * kActivation * row.tokens() * row.hidden / row.tensor;
  if (zero3) memory.working += 2 * kWeight * row.layer_weights() / row.tensor;
  return memory;
}

}  // namespace longhaul::profile
