#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/program/arguments.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "nn/layers/optimizer.hpp"

namespace longhaul::harness {

/// Options of how blocks are computed, as typed.
struct ComputeOptions {
  std::string compute = "timed";
  std::string device = "cpu";
  std::string optimizer = "adamw";
  double learning_rate = 1e-3;
  std::string check_gradients;  ///< empty: all of a small model, first of others
};
void add_compute_options(Arguments& arguments, ComputeOptions& options);
/// For --resume and the record.
[[nodiscard]] nlohmann::ordered_json compute_json(const ComputeOptions& options);

/// The iterations whose numbers are compared with a one-rank reference.
#define LONGHAUL_GRADIENT_CHECKS(X) \
  X(by_size, "by size") X(all, "all") X(first, "first") X(off, "off")
LONGHAUL_LISTED_ENUM(GradientChecks, LONGHAUL_GRADIENT_CHECKS);

/// The same on every rank.
struct ComputeSettings {
  bool real = false;
  DeviceKind device = DeviceKind::cpu;
  nn::OptimizerOptions optimizer;
  GradientChecks checks = GradientChecks::by_size;
};
/// Throws Error for what is no choice.
[[nodiscard]] ComputeSettings compute_settings_of(const ComputeOptions& options);

}  // namespace longhaul::harness
