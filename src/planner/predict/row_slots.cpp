#include "planner/predict/row_slots.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;
using profile::PassTime;
using profile::RowGraph;
using profile::ShardingKind;
using profile::TrainingRow;

/// Bytes that the optimizer's step moves for a weight: gradient read, unscaled and clipped (8),
/// master weight and two moments read and written (24), the half-precision weight written (2), and
/// the gradient set to zero (2).
constexpr double kStepBytes = 36;
/// Bytes that each further microbatch moves for a weight: its gradient and the sum read, the sum
/// written, at half precision.
constexpr double kAccumulateBytes = 6;
constexpr double kHalf = 2;

bool divides_gradients(const TrainingRow& row) {
  return row.sharding == ShardingKind::zero2 || row.sharding == ShardingKind::zero3;
}

/// Bytes of a gradient that shards sum: single precision where weights are gathered at half, as
/// Composer's mixed_precision DEFAULT has it ("bf16"); half where all is ("bf16-pure": PURE).
double gradient_bytes(const TrainingRow& row) {
  return row.precision == "bf16" || row.precision == "fp8" ? 4 : kHalf;
}

/// Latency of the n - 1 steps of a ring that gathers or scatters between nodes: by NCCL's model of
/// its rings (src/graph/tuning.cc, simple protocol) 14 us to another node, 3.4 us over NVLink.
double ring_latency_ns(const profile::RankGroup& group, const profile::Machine& machine) {
  constexpr double kToNode = 14'000, kInNode = 3'400;
  if (group.inside_node) return 0;  // its table has it
  const int of_node = std::max(1, machine.gpus_per_node / group.rings);
  const int borders = (group.ranks + of_node - 1) / of_node - 1;
  return kToNode * borders + kInNode * (group.ranks - 1 - borders);
}

class SlotTimes {
public:
  SlotTimes(const RowGraph& graph, const ParameterValues& values)
      : graph_{graph},
        row_{graph.row},
        machine_{*graph.machine},
        values_{values},
        parts_{profile::graph_times(graph, values)} {}

  [[nodiscard]] SlotTime of(const Slot& slot) const {
    switch (slot.kind) {
      case SlotKind::forward:
        return blocks(slot, parts_.embedding.forward, parts_.layer.forward, parts_.head.forward, 0);
      case SlotKind::backward:
        return blocks(slot, parts_.embedding.backward, parts_.layer.backward, parts_.head.backward,
                      accumulation(slot));
      case SlotKind::message: return {.pipeline = message_ns(graph_, slot.stage, values_)};
      case SlotKind::latency: return {.pipeline = values_[Parameter::message_time]};
      case SlotKind::reduce: return {.data = row_.bucket ? exposed(slot) : reduced(slot.weights)};
      case SlotKind::tied: return {.data = tied(slot.weights)};
      case SlotKind::gather: return {.data = gathered(slot.weights)};
      case SlotKind::scatter: return {.data = scattered(slot.weights)};
      case SlotKind::step: return {.optimizer = step(slot.weights)};
    }
    return {};
  }

private:
  [[nodiscard]] SlotTime blocks(const Slot& slot, const PassTime& embedding, const PassTime& layer,
                                const PassTime& head, double more) const {
    SlotTime time{.compute = slot.layers * layer.compute + more +
                             slot.overheads * values_[Parameter::microbatch_time],
                  .tensor = slot.layers * layer.tensor};
    for (const auto& [is_there, pass] :
         {std::pair{slot.embedding, &embedding}, std::pair{slot.head, &head}}) {
      if (!is_there) continue;
      time.compute += pass->compute;
      time.tensor += pass->tensor;
    }
    time.compute += taken_by_collectives(slot, time.compute);
    return time;
  }

  [[nodiscard]] double accumulation(const Slot& slot) const {
    if (row_.microbatches() == 1) return 0;
    double weights = layer_weights_of_gpu(row_, slot.layers);
    if (slot.embedding || slot.head) weights += embedding_weights_of_gpu(row_);
    if (divides_gradients(row_)) weights /= row_.data;
    return profile::moved_ns(kAccumulateBytes * weights, machine_, values_);
  }

  [[nodiscard]] double reduced(double weights) const {
    return all_reduce_ns(kHalf * weights, data_group(row_, machine_), Parameter::alpha_data,
                         machine_, values_);
  }

  /// What of the sums of a slot's gradients lies after its block, whose layers hand theirs over one
  /// after the other, the last one first: a bucket leaves with the layer that fills it, after the
  /// one before (figure 5a). A layer is computed again right before its backward. With zero1, and
  /// zero2 between stages, a half of each sum, the gather of the weights, follows the step.
  [[nodiscard]] double exposed(const Slot& slot) const {
    const double hidden_share = row_.sharding == ShardingKind::none ? 1 : 0.5;
    const double layer = layer_weights_of_gpu(row_, 1), table = embedding_weights_of_gpu(row_);
    const double of_block = slot.layers * layer + (slot.embedding || slot.head ? table : 0);
    double now = 0, free = 0, waiting = std::max(0.0, slot.weights - of_block);
    const auto add = [&](double time, double weights, bool is_last) {
      now += time;
      waiting += weights;
      if (kHalf * waiting < static_cast<double>(row_.bucket->count()) && !is_last) return;
      free = std::max(free, now) + hidden_share * reduced(waiting);
      waiting = 0;
    };
    if (slot.head) add(parts_.head.backward.total(), slot.embedding ? 0 : table, false);
    for (int i = 0; i < static_cast<int>(slot.layers); ++i)
      add(parts_.layer.backward.total(), layer, false);
    add(slot.embedding ? parts_.embedding.backward.total() : 0, slot.embedding ? table : 0, true);
    return std::max(0.0, free - now) + (1 - hidden_share) * reduced(slot.weights);
  }

  [[nodiscard]] double gathered(double weights) const {
    return weights > 0 ? reduced(weights) / 2 + latency() : 0;
  }
  [[nodiscard]] double scattered(double weights) const {
    return weights > 0 ? reduced(weights) / 2 * gradient_bytes(row_) / kHalf + latency() : 0;
  }
  [[nodiscard]] double latency() const {
    return ring_latency_ns(data_group(row_, machine_), machine_);
  }

  /// What a block of `compute` ns loses to the collectives beside it, while they last.
  [[nodiscard]] double taken_by_collectives(const Slot& slot, double compute) const {
    const double share = machine_.gpu.collective_share;
    const double beside = gathered(slot.gathered) + scattered(slot.scattered);
    return share * std::min(beside, compute / (1 - share));
  }

  /// Two ranks a whole pipeline apart: each GPU has its share of the node's interfaces.
  [[nodiscard]] double tied(double weights) const {
    const int gpus = row_.tensor * row_.data * row_.pipeline;
    const profile::RankGroup pair{2, gpus <= machine_.gpus_per_node, machine_.gpus_per_node};
    return all_reduce_ns(kHalf * weights, pair, Parameter::alpha_data, machine_, values_);
  }

  [[nodiscard]] double step(double weights) const {
    if (row_.sharding != ShardingKind::none) weights /= row_.data;
    return profile::moved_ns(kStepBytes * weights, machine_, values_) +
           values_[Parameter::iteration_time];
  }

  const RowGraph& graph_;
  const TrainingRow& row_;
  const profile::Machine& machine_;
  const ParameterValues& values_;
  profile::GraphTimes parts_;
};

}  // namespace

Duration SlotTime::total() const {
  return Duration{std::llround(compute + tensor + pipeline + data + optimizer)};
}

double layer_weights_of_gpu(const TrainingRow& row, double layers) {
  return layers * row.layer_weights() / row.tensor;
}

double embedding_weights_of_gpu(const TrainingRow& row) {
  return double(row.vocabulary) * row.hidden / row.tensor;
}

std::vector<SlotTime> slot_times(const std::vector<Slot>& slots, const RowGraph& graph,
                                 const ParameterValues& values) {
  const SlotTimes times{graph, values};
  std::vector<SlotTime> all;
  all.reserve(slots.size());
  for (const Slot& slot : slots) all.push_back(times.of(slot));
  return all;
}

}  // namespace longhaul::planner
