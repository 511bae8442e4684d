#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/statistics/sample.hpp"
#include "cuda/task_trace.hpp"
#include "nn/layers/chunk.hpp"
#include "nn/timed_tensor_ops.hpp"

namespace longhaul::harness {

/// One operator of one block of one kind of layer: what it is, how often the block calls it, and
/// how long a call takes, in ns.
struct OperatorTimes {
  std::string part;        ///< "embedding", "layer", "head"
  std::string block;       ///< "F", "R", "D", "W", "update"
  nn::TensorOpsCall call;  ///< its time aside
  int calls = 0;
  std::vector<double> samples;
  std::vector<std::uint64_t> ranges{};  ///< of the samples in a trace; empty: there was none
};

/// A kind of layer: all layers of a model between embedding and head are equal, so that one
/// represents all of them (vTrain section III-C: "necessary operators").
struct ModelPart {
  const char* name;
  nn::LayerRange layers;
  int count = 1;  ///< of them in the model
};
[[nodiscard]] std::vector<ModelPart> parts_of(const nn::ModelShape& shape);

/// Every operator of every block of one layer of each kind, and of an optimizer's step on its
/// weights ("update": SGD and AdamW), in the order in which blocks call them first. With a trace,
/// which the caller starts and stops, each sample has a range of it.
[[nodiscard]] std::vector<OperatorTimes> operator_times(nn::TensorOps& math,
                                                        const nn::ModelShape& shape, int samples,
                                                        cuda::TaskTrace* trace = nullptr);

/// The addition of one number: hardly more than what the host takes to begin work and to see its
/// end.
[[nodiscard]] OperatorTimes smallest_operator(nn::TensorOps& math, int samples,
                                              cuda::TaskTrace* trace = nullptr);

/// "part,block,operator,shape,type,calls,n,median_ns,low_ns,high_ns,min_ns,flops,bytes":
/// docs/profile.md.
[[nodiscard]] std::string operators_csv(const std::vector<OperatorTimes>& operators);

/// Time of a block by its operators: the sum of calls times medians, ns.
[[nodiscard]] double block_time(const std::vector<OperatorTimes>& operators,
                                const std::string& part, const std::string& block);
/// FLOPs of a block's matrix products.
[[nodiscard]] double block_flops(const std::vector<OperatorTimes>& operators,
                                 const std::string& part, const std::string& block);

}  // namespace longhaul::harness
