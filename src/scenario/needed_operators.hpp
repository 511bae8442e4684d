#pragma once

#include <string>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// A call of a layer of one kind, as `bench_profile` names it (docs/profile.md, operators.csv).
struct OperatorCall {
  std::string part;       ///< "embedding", "layer", "head"
  std::string block;      ///< "F", "R", "D", "W", "update"
  std::string below;      ///< the operator that it belongs to: "qkv"; "optimizer" of an update
  std::string operation;  ///< "gemm", "all_reduce", ...
  std::string shape;
  std::string type;  ///< "f32", "f16", "bf16"
};

/// An operator of a part and how often a block of it calls it, on one microbatch (vTrain section
/// III-C: "necessary operators").
struct NeededOperator {
  std::string part, block, operation, shape, type;
  int calls = 0;
};

/// Of a part's operators, in the order of a forward.
struct PartOperator {
  const char* name;
  OperatorKind kind;
  double weights = 0;  ///< numbers, of the whole layer
};

/// How the ranks of a stage share a layer, and what its backward needs.
struct LayerLayout {
  int tensor = 1;
  int nodes = 1;  ///< that the tensor ranks lie on
  bool sequence_parallel = false;
  bool recompute = false;
  int optimizer_ranks = 1;  ///< that divide the optimizer's step
};
[[nodiscard]] LayerLayout layout_of(const Scenario& scenario);

/// Of one part, block by block.
[[nodiscard]] std::vector<OperatorCall> calls_of_part(const Model& model, const LayerLayout& layout,
                                                      const std::string& part);
[[nodiscard]] std::vector<PartOperator> operators_of_part(const Model& model,
                                                          const LayerLayout& layout,
                                                          const std::string& part);

/// "layer" for all layers of a model without a vocabulary, whose embedding and head are as layers.
[[nodiscard]] const char* part_of_layer(const Model& model, int layer);
/// The operators of a part; those of collectives too, where tensor ranks share it.
[[nodiscard]] std::vector<PartOperator> operators_of_part(const Scenario& scenario,
                                                          const std::string& part);
/// "f32" of fp32; of a model that says nothing "bf16".
[[nodiscard]] const char* type_name(const Model& model);

/// Every call of every block of one layer of each kind that the model has, in the order of the
/// blocks; of one of the ranks that share a stage, whose collectives (all_reduce, or all_gather and
/// reduce_scatter) are among them. Not more for more layers, microbatches or stages. Throws Error
/// where tensor ranks do not divide heads or widths.
[[nodiscard]] std::vector<OperatorCall> calls_of_model(const Scenario& scenario);
/// The same, each once.
[[nodiscard]] std::vector<NeededOperator> needed_operators(const Scenario& scenario);

}  // namespace longhaul::scenario
