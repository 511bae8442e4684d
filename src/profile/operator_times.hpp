#pragma once

#include "profile/operator_graph.hpp"

namespace longhaul::profile {

/// Time of one pass of a part on one microbatch, in ns.
struct PassTime {
  double compute = 0;
  double tensor = 0;  ///< tensor-parallel collectives, which nothing hides
  [[nodiscard]] double total() const { return compute + tensor; }
};
struct PartTimes {
  PassTime forward;
  PassTime backward;  ///< recomputation included
};

[[nodiscard]] double operator_ns(const GraphOperator& of, const Machine& machine,
                                 const ParameterValues& values);

/// An all-reduce of a group. Inside a node by the table; between nodes by equation 1 of vTrain,
/// t = S / (alpha B) 2 (n - 1) / n, where B is the group's share of the node's interfaces.
[[nodiscard]] double all_reduce_ns(double bytes, const RankGroup& group, Parameter alpha,
                                   const Machine& machine, const ParameterValues& values);

/// A message of a rank to the next stage, without its latency. All GPUs of a node send at once.
[[nodiscard]] double message_ns(const RowGraph& graph, int stage, const ParameterValues& values);

[[nodiscard]] PartTimes part_times(const PartGraph& part, const RowGraph& graph,
                                   const ParameterValues& values);

/// What all of a row's layers, embeddings and heads take.
struct GraphTimes {
  PartTimes embedding, layer, head;
};
[[nodiscard]] GraphTimes graph_times(const RowGraph& graph, const ParameterValues& values);

/// `bytes` moved at the memory's rate.
[[nodiscard]] double moved_ns(double bytes, const Machine& machine, const ParameterValues& values);

}  // namespace longhaul::profile
