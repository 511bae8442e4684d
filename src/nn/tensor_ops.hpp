#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/index.hpp"
#include "base/vocabulary.hpp"

namespace longhaul::nn {

/// Numbers in a row in a device's memory. Does not own them.
struct ArrayView {
  std::byte* data = nullptr;
  std::size_t count = 0;
  NumberType type = NumberType::f32;
  [[nodiscard]] std::size_t bytes() const { return count * bytes_of(type); }
  [[nodiscard]] ArrayView part(std::size_t first, std::size_t length) const {
    return {data + first * bytes_of(type), length, type};
  }
};

/// c[m, n] = op(a) op(b), added to what c holds where `accumulate`. Row-major; op(a) is [m, k] and
/// op(b) is [k, n], stored the other way round where transposed.
struct Gemm {
  int m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
};

/// Heads of one microbatch: `batch` sequences of `sequence` tokens. Rows of Q, K, V of a token lie
/// side by side: [batch * sequence, (heads + 2 * kv_heads) * head_size].
struct AttentionShape {
  int batch = 1, sequence = 0, heads = 0, kv_heads = 0, head_size = 0;
  [[nodiscard]] std::size_t tokens() const { return to_size(batch) * to_size(sequence); }
  [[nodiscard]] std::size_t width() const {  ///< of a token's row of Q, K and V
    return to_size(heads + 2 * kv_heads) * to_size(head_size);
  }
};

enum class Direction : std::uint8_t { forward, inverse };

/// Decoupled weight decay (Loshchilov and Hutter 2019). `step` counts from 1.
struct AdamW {
  float learning_rate = 1e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, weight_decay = 0.1F;
  int step = 1;
};

/// The arithmetic of one device. Calls take effect one after the other, on CUDA some time after
/// they return: finish() waits for all. Activations, messages and the weights that the layers
/// multiply with are of working_type(); gradients of weights, master weights, statistics and sums
/// are f32. Sums are taken in fp32 or better. Outputs alias inputs only where said. For example,
/// y[m, n] = x[m, k] w[k, n], and its numbers on the host:
///     math->gemm({.m = m, .n = n, .k = k}, x, w, y);
///     std::vector<float> numbers(y.count);
///     math->copy_out(y, numbers);
class TensorOps {
public:
  TensorOps() = default;
  virtual ~TensorOps() = default;
  TensorOps(const TensorOps&) = delete;
  TensorOps& operator=(const TensorOps&) = delete;

  [[nodiscard]] virtual NumberType working_type() const = 0;

  /// nullptr where the device has not that much left. Released memory may be handed out again at
  /// once: calls that still use it take effect before those of its next owner.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;

  /// From and to the host, converted to and from `to.type` (f32, bf16); copy_out waits.
  virtual void copy_in(std::span<const float> from, ArrayView to) = 0;
  virtual void copy_in(std::span<const std::int32_t> from, ArrayView to) = 0;
  virtual void copy_out(ArrayView from, std::span<float> to) = 0;
  /// On the device, converted where the types differ.
  virtual void copy(ArrayView from, ArrayView to) = 0;
  virtual void zero(ArrayView what) = 0;
  /// Uniform in (-bound, bound): number i is counter_random(seed, i), the same on every device up
  /// to rounding to the type.
  virtual void fill_random(std::uint64_t seed, float bound, ArrayView what) = 0;
  /// Waits until all calls so far have taken effect.
  virtual void finish() = 0;

  virtual void gemm(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) = 0;
  /// sum = a + b; `sum` may be a or b.
  virtual void add(ArrayView a, ArrayView b, ArrayView sum) = 0;

  /// y = x / rms(x) * weight over rows of `width`, rms(x)^2 = mean(x^2) + epsilon (1e-5);
  /// inverse_rms: one f32 a row. (Zhang and Sennrich 2019.)
  virtual void rms_norm(ArrayView x, ArrayView weight, int width, ArrayView y,
                        ArrayView inverse_rms) = 0;
  /// dx = gradient of x, added to `dx` where `accumulate`.
  virtual void rms_norm_input_gradient(ArrayView x, ArrayView weight, ArrayView inverse_rms,
                                       ArrayView dy, int width, bool accumulate, ArrayView dx) = 0;
  /// dweight (f32) += gradient of the weight.
  virtual void rms_norm_weight_gradient(ArrayView x, ArrayView inverse_rms, ArrayView dy, int width,
                                        ArrayView dweight) = 0;

  /// Turns pairs (i, i + head_size / 2) of each head of Q and K in place by position * theta^(-2 i
  /// / head_size); V stays. `inverse` turns back, which is the gradient. (Su et al. 2021; the
  /// pairing of Llama's reference in its transposed, "rotate half" form.)
  virtual void rotary(const AttentionShape& shape, float theta, Direction direction,
                      ArrayView qkv) = 0;
  /// out[tokens, heads * head_size] = softmax(Q K^T / sqrt(head_size)) V, causal; query head h uses
  /// key head h / (heads / kv_heads). log_sums: [batch * heads, sequence] f32, log of each row's
  /// sum of exponentials, for the gradient.
  virtual void attention(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                         ArrayView log_sums) = 0;
  virtual void attention_gradient(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                                  ArrayView log_sums, ArrayView dout, ArrayView dqkv) = 0;

  /// gate_up: [tokens, 2 * width], gate first; y = silu(gate) * up: [tokens, width].
  virtual void swiglu(ArrayView gate_up, int width, ArrayView y) = 0;
  virtual void swiglu_gradient(ArrayView gate_up, ArrayView dy, int width, ArrayView dgate_up) = 0;

  /// y[t] = table[tokens[t]]; `tokens` i32.
  virtual void embed(ArrayView tokens, ArrayView table, int width, ArrayView y) = 0;
  /// dtable (f32) += ; the same sum in every run.
  virtual void embed_gradient(ArrayView tokens, ArrayView dy, int width, ArrayView dtable) = 0;
  /// Cross-entropy of logits [tokens, vocabulary] against `targets` (i32; below 0: not counted).
  /// loss (f32, one number) += scale * sum of the tokens' losses; logits become scale * gradient.
  virtual void cross_entropy(ArrayView targets, int vocabulary, float scale, ArrayView logits,
                             ArrayView loss) = 0;

  /// master -= learning_rate * gradient; weights = master in their type (may be the same memory).
  virtual void sgd(float learning_rate, ArrayView gradient, ArrayView master,
                   ArrayView weights) = 0;
  /// mean and square: the moments, f32.
  virtual void adamw(const AdamW& options, ArrayView gradient, ArrayView mean, ArrayView square,
                     ArrayView master, ArrayView weights) = 0;
};

}  // namespace longhaul::nn
