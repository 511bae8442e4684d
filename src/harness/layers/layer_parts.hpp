#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nn/layers/shape.hpp"
#include "nn/memory.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::harness {

/// A part that is measured on a device: a block of a layer, a product, a kernel.
struct LayerPart {
  std::string group;  ///< "reference", "block", "gemm", "kernel"
  std::string name;
  double flops = 0;  ///< of matrix products
  double bytes = 0;  ///< that pass through the device's memory (docs/kernels.md)
  std::vector<double> seconds;
};

struct TimingOptions {
  int samples = 20;
  double batch_seconds = 5e-3;  ///< a sample is the mean of calls that take at least so long
};

/// One sequence of `tokens` for a preset's layer, or that of the model "tiny"; `vocabulary` where
/// the preset names none. Throws Error for other names.
[[nodiscard]] nn::ModelShape preset_shape(const std::string& model, int tokens, int vocabulary);

/// Seconds of a call, `samples` times: of many calls between two waits for the device, so that
/// neither the launch nor the wait counts. call(n) is call number n since the start, to change to
/// other inputs with.
[[nodiscard]] std::vector<double> time_calls(nn::TensorOps& math, const TimingOptions& options,
                                             const std::function<void(int)>& call);

/// Seconds from an idle device to an idle device.
[[nodiscard]] double time_once(nn::TensorOps& math, const std::function<void()>& work);

/// FLOPs of the matrix products of one decoder layer for one microbatch: weights, and causal
/// attention, of whose square half is counted.
struct LayerFlops {
  explicit LayerFlops(const nn::ModelShape& shape);
  double weights = 0;    ///< of one pass: F, D and W take one each
  double attention = 0;  ///< of F; D takes two
  double down = 0;  ///< the MLP's last product, which R leaves out: nothing asks for its result
};

/// Throws Error (the answer is no) unless the calls of a layer's F, D and W sum to these FLOPs.
void check_flops(nn::TensorOps& math, const nn::ModelShape& shape);

/// F, D, W, B and R of one decoder layer, several microbatches one after the other. Throws Error
/// (the answer is no) where outputs or gradients are not finite or all zero.
[[nodiscard]] std::vector<LayerPart> time_blocks(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                 const nn::ModelShape& shape, int samples);

/// F alone, as prefill has it: nothing is kept. Throws as time_blocks() does.
[[nodiscard]] LayerPart time_forward(nn::TensorOps& math, nn::DeviceMemory& memory,
                                     const nn::ModelShape& shape, int samples);

/// Other work that goes on while something is measured: begins, calls that, and ends.
using Beside = std::function<void(const std::function<void()>& measured)>;

/// Seconds of F of one decoder layer beside each of these, in turn, so that a change of the
/// device's clock meets all of them: options.samples of each, each the mean of as many microbatches
/// as take options.batch_seconds. Throws as time_blocks does.
[[nodiscard]] std::vector<std::vector<double>> time_forward_beside(
    nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
    const TimingOptions& options, const std::vector<Beside>& beside);

/// A large copy, then a large product: what the device can do at most. `size` of the product's
/// sides; `copied` numbers.
[[nodiscard]] std::vector<LayerPart> time_references(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                     int size, std::size_t copied,
                                                     const TimingOptions& options);

/// The products and the other calls of a layer, of embedding, head and optimizer, at the sizes of
/// `shape`, each on inputs that change from call to call and are larger than a cache together.
[[nodiscard]] std::vector<LayerPart> time_kernels(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                  const nn::ModelShape& shape,
                                                  const TimingOptions& options);

/// A product of activations (m x k) and weights (k x n, stored by rows of n), as forward passes
/// have them; `source_ns` is the time that the list gives (0: none).
struct ListedProduct {
  int m = 1, n = 1, k = 1;
  double source_ns = 0;
};

/// The products of a CSV with columns m, n and k, each once, in its order; others are left alone,
/// but for `median_ns` (becomes source_ns); lines without m are no products. Throws Error.
[[nodiscard]] std::vector<ListedProduct> read_products(const std::filesystem::path& file);

/// Each product in turn. One that takes less than a launch is timed as the launch.
[[nodiscard]] std::vector<LayerPart> time_products(nn::TensorOps& math, nn::DeviceMemory& memory,
                                                   const std::vector<ListedProduct>& products,
                                                   const TimingOptions& options);

/// m, n, k, median_ns, min_ns, source_ns: a line each.
[[nodiscard]] std::string products_csv(const std::vector<ListedProduct>& products,
                                       const std::vector<LayerPart>& parts);

/// Measurements of bench_layers.
struct LayerReport {
  nn::ModelShape shape;
  std::string device, notes;
  std::vector<LayerPart> parts;
  double most_flops = 0, most_bytes = 0;  ///< a second, of the references; 0: without these
};

[[nodiscard]] nlohmann::ordered_json json_of_shape(const nn::ModelShape& shape);

[[nodiscard]] std::string layer_table(const LayerReport& report);
[[nodiscard]] nlohmann::ordered_json layer_record(const LayerReport& report,
                                                  const std::string& command_line);

}  // namespace longhaul::harness
