#pragma once

#include <map>
#include <string>

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::cli {

/// The operator graph of an iteration (vTrain figure 8) in Graphviz' language: of one rank of each
/// stage, for all ranks of a stage do the same.
struct OperatorGraph {
  std::string dot;
  std::size_t nodes = 0, edges = 0;
  std::map<std::string, std::size_t> kinds;  ///< "F qkv", "tp all_reduce", "send": how many
};
/// Of a plan with its communications. Throws Error where it has more than 20,000 nodes.
[[nodiscard]] OperatorGraph operator_graph(const collective::IterationPlan& plan);

}  // namespace longhaul::cli
