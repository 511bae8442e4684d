#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"

namespace longhaul::profile {

/// The numbers that stand between data sheets and tables on one side and a training iteration on
/// the other. Each machine kind has them once, for all models, layouts and rows; no other number is
/// ever fitted. X(enumerator, name, default, lowest, highest, spread, unit, meaning): `spread` is
/// the standard deviation of the logarithm that is assumed before anything is fitted.
#define LONGHAUL_PROFILE_PARAMETERS(X)                                                             \
  X(matmul_rate, "matmul_rate", 1.0, 0.5, 1.2, 0.10, "of the table",                               \
    "rate of matrix products in training, of the rate that the table measured alone")              \
  X(memory_rate, "memory_rate", 0.75, 0.3, 1.0, 0.20, "of the data sheet",                         \
    "rate of operators that move bytes and compute little, and of the optimizer")                  \
  X(flash_forward_rate, "flash_forward_rate", 0.40, 0.05, 0.9, 0.30, "of the peak",                \
    "rate of fused attention forward, half of its products counted (causal)")                      \
  X(flash_backward_rate, "flash_backward_rate", 0.30, 0.05, 0.8, 0.30, "of the peak",              \
    "rate of fused attention backward, counted as 2.5 forwards")                                   \
  X(alpha_data, "alpha_data", 0.7, 0.05, 1.0, 0.35, "of the interfaces",                           \
    "equation 1's alpha between nodes, of gradients and sharded weights")                          \
  X(alpha_tensor, "alpha_tensor", 0.8, 0.05, 1.0, 0.35, "of the interfaces",                       \
    "equation 1's alpha of tensor-parallel groups that span nodes")                                \
  X(alpha_pipeline, "alpha_pipeline", 0.5, 0.02, 1.0, 0.5, "of the interfaces",                    \
    "the same for activations between stages")                                                     \
  X(nvlink_rate, "nvlink_rate", 1.0, 0.3, 1.3, 0.20, "of the table",                               \
    "rate of collectives inside a node, of the rate that the table measured alone")                \
  X(kernel_time, "kernel_time", 7e3, 1e3, 80e3, 0.4, "ns",                                         \
    "the least time of a kernel, its launch included")                                             \
  X(microbatch_time, "microbatch_time", 5e5, 1e4, 5e7, 0.7, "ns",                                  \
    "what a stage spends on each microbatch beside its operators (host, loader, accumulation)")    \
  X(message_time, "message_time", 5e5, 1e4, 1e7, 0.7, "ns", "latency of a message between stages") \
  X(iteration_time, "iteration_time", 2e7, 1e6, 1e9, 0.7, "ns",                                    \
    "what each iteration spends beside microbatches and the optimizer's bytes")
LONGHAUL_LISTED_ENUM(Parameter, LONGHAUL_PROFILE_PARAMETERS);

/// What is known about a parameter before it is fitted.
struct ParameterFacts {
  double value = 1;  ///< the default
  double low = 0, high = 1;
  double spread = 0.1;  ///< of the logarithm
  const char* unit = "";
  const char* meaning = "";
};
[[nodiscard]] const ParameterFacts& facts_of(Parameter parameter);

/// A value for each parameter, index: the enumerator.
class ParameterValues {
public:
  ParameterValues();  ///< the defaults
  [[nodiscard]] double operator[](Parameter parameter) const {
    return values_[static_cast<std::size_t>(parameter)];
  }
  double& operator[](Parameter parameter) { return values_[static_cast<std::size_t>(parameter)]; }
  friend bool operator==(const ParameterValues&, const ParameterValues&) = default;

private:
  std::array<double, static_cast<std::size_t>(kCountOf<Parameter>)> values_;
};

}  // namespace longhaul::profile
