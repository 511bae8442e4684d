#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/environment/shared_options.hpp"
#include "harness/layers/beside.hpp"

namespace longhaul::harness {

/// Of bench_layers, as typed.
struct LayerOptions : SharedOptions {
  std::string model = "m8";
  int index = 0;
  int tokens = 4096;
  int samples = 20;
  int reference = 8192;
  int copied_mib = 1024;
  int vocabulary = 32'000;
  std::string parts = "all";
  std::filesystem::path products;
  std::string beside;  ///< "prefill", "copy", "all"; empty: blocks and kernels
  int prompt = 512;
  double load_parameters = 0;  ///< 0: the same
};

void declare_layer_options(Arguments& arguments, LayerOptions& options);
/// What --check measures: tiny. Refuses options that do not go together; throws Error.
void settle_layer_options(LayerOptions& options);

/// Of --device cuda; throws Error where there is no such GPU.
[[nodiscard]] std::string gpu_name(int index);
/// The device's arithmetic. Throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<nn::TensorOps> math_of(const LayerOptions& options,
                                                     cuda::Urgency urgency = cuda::Urgency::normal);
[[nodiscard]] std::string device_of(const LayerOptions& options);

/// --beside.
[[nodiscard]] BesideReport beside_report(const LayerOptions& options);

}  // namespace longhaul::harness
