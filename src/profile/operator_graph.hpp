#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "profile/machine.hpp"
#include "profile/training_row.hpp"

namespace longhaul::profile {

/// What an operator's time is a share of: the table of products; the memory's rate; both, the
/// slower counts (products of each head); the peak, for fused attention.
#define LONGHAUL_OPERATOR_LIMITS(X)   \
  X(matmul, "matmul")                 \
  X(memory, "memory")                 \
  X(batched_matmul, "batched matmul") \
  X(flash_forward, "attention")       \
  X(flash_backward, "attention backward")
LONGHAUL_LISTED_ENUM(OperatorLimit, LONGHAUL_OPERATOR_LIMITS);

/// A vertex of the operator graph (vTrain III-B): one operator of one pass of a part.
struct GraphOperator {
  const char* name = "";
  OperatorLimit limit = OperatorLimit::memory;
  MatmulShape shape;  ///< of products; otherwise m is the number of values
  double batch = 1;   ///< products of this shape
  double bytes = 0;   ///< read and written
  double ns = 0;      ///< of products and attention, where the parameter is 1
  TimeBasis basis = TimeBasis::interpolated;
  double beyond = 1;  ///< MatmulTime::beyond
};

/// "4096x12288x3072" of a product, "16x(2048x2048x128)" of a batched one, "12582912 values".
[[nodiscard]] std::string shape_text(const GraphOperator& of);

/// The operators of one part of the model, each pass in order, with the tensor-parallel collectives
/// that block between them. An all-reduce counts once; with sequence parallelism it is an
/// all-gather and a reduce-scatter of as many bytes, each of which counts half.
struct PartGraph {
  std::vector<GraphOperator> forward, recompute, backward;
  double all_reduces_forward = 0, all_reduces_recompute = 0, all_reduces_backward = 0;
  int loss_reduces = 0;  ///< of RowGraph::loss_bytes, forward
};

/// Ranks that communicate: how many, whether inside a node, and how many such groups share a node's
/// interfaces. Ranks are numbered tensor first, then data, then pipeline, nodes hold consecutive
/// ones.
struct RankGroup {
  int ranks = 1;
  bool inside_node = true;
  int rings = 1;
};
[[nodiscard]] RankGroup tensor_group(const TrainingRow& row, const Machine& machine);
[[nodiscard]] RankGroup data_group(const TrainingRow& row, const Machine& machine);
/// Do stages `stage` and `stage` + 1 of a pipeline lie in different nodes? Of the last stage: it
/// and the first, which an interleaved pipeline's messages cross.
[[nodiscard]] bool border_leaves_node(const TrainingRow& row, const Machine& machine, int stage);

/// The operator graph of a row, below its parts: what each part computes on one microbatch and one
/// GPU. Its size does not depend on layers, microbatches or ranks.
struct RowGraph {
  TrainingRow row;
  const Machine* machine = nullptr;
  PartGraph embedding, layer, head;
  double tensor_bytes = 0;   ///< of a tensor-parallel all-reduce
  double loss_bytes = 0;     ///< a number of each token, in single precision
  double message_bytes = 0;  ///< that a rank sends over a stage's border, of its tensor share
  TimeBasis basis = TimeBasis::interpolated;  ///< the worst of all operators
  double beyond = 1;                          ///< the largest of all operators
};

/// How far beyond the measured sides a product may lie before row_graph() refuses.
inline constexpr double kFarthest = 4;
enum class Extrapolation { refused, allowed };

/// `machine` outlives it. Throws Error where a product lies beyond kFarthest and none may.
[[nodiscard]] RowGraph row_graph(const TrainingRow& row, const Machine& machine,
                                 Extrapolation extrapolation = Extrapolation::refused);

}  // namespace longhaul::profile
