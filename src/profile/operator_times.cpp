#include "profile/operator_times.hpp"

#include <algorithm>

namespace longhaul::profile {
namespace {

double sum_ns(const std::vector<GraphOperator>& operators, const RowGraph& graph,
              const ParameterValues& values) {
  double sum = 0;
  for (const GraphOperator& each : operators) sum += operator_ns(each, *graph.machine, values);
  return sum;
}

}  // namespace

double moved_ns(double bytes, const Machine& machine, const ParameterValues& values) {
  return bytes / (machine.memory_bytes_per_ns * values[Parameter::memory_rate]);
}

double operator_ns(const GraphOperator& of, const Machine& machine, const ParameterValues& values) {
  const double least = values[Parameter::kernel_time];
  switch (of.limit) {
    case OperatorLimit::matmul: return std::max(of.ns / values[Parameter::matmul_rate], least);
    case OperatorLimit::memory: return std::max(moved_ns(of.bytes, machine, values), least);
    case OperatorLimit::batched_matmul:
      return std::max(
          {of.ns / values[Parameter::matmul_rate], moved_ns(of.bytes, machine, values), least});
    case OperatorLimit::flash_forward:
      return std::max(of.ns / values[Parameter::flash_forward_rate], least);
    case OperatorLimit::flash_backward:
      return std::max(of.ns / values[Parameter::flash_backward_rate], 2 * least);
  }
  return least;
}

double all_reduce_ns(double bytes, const RankGroup& group, Parameter alpha, const Machine& machine,
                     const ParameterValues& values) {
  if (group.ranks < 2) return 0;
  if (group.inside_node)
    return machine.gpu.all_reduce.ns(group.ranks, bytes) / values[Parameter::nvlink_rate];
  const double rate = values[alpha] * machine.node_bytes_per_ns / group.rings;
  return bytes / rate * 2 * (group.ranks - 1) / group.ranks;
}

double message_ns(const RowGraph& graph, int stage, const ParameterValues& values) {
  const Machine& machine = *graph.machine;
  if (!border_leaves_node(graph.row, machine, stage))
    return graph.message_bytes / (machine.gpu.link_bytes_per_ns * values[Parameter::nvlink_rate]);
  return graph.message_bytes * machine.gpus_per_node /
         (machine.node_bytes_per_ns * values[Parameter::alpha_pipeline]);
}

PartTimes part_times(const PartGraph& part, const RowGraph& graph, const ParameterValues& values) {
  const auto reduced = [&](double bytes) {
    return all_reduce_ns(bytes, tensor_group(graph.row, *graph.machine), Parameter::alpha_tensor,
                         *graph.machine, values);
  };
  const double all_reduce = reduced(graph.tensor_bytes);
  PartTimes times;
  times.forward = {sum_ns(part.forward, graph, values), part.all_reduces_forward * all_reduce};
  if (part.loss_reduces > 0) times.forward.tensor += part.loss_reduces * reduced(graph.loss_bytes);
  times.backward = {sum_ns(part.recompute, graph, values) + sum_ns(part.backward, graph, values),
                    (part.all_reduces_recompute + part.all_reduces_backward) * all_reduce};
  return times;
}

GraphTimes graph_times(const RowGraph& graph, const ParameterValues& values) {
  return {part_times(graph.embedding, graph, values), part_times(graph.layer, graph, values),
          part_times(graph.head, graph, values)};
}

}  // namespace longhaul::profile
