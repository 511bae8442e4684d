#pragma once

#include <memory>
#include <vector>

#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// The CPU reference that every other device is compared with: fp32, matrix products by OpenBLAS on
/// one thread, sums of rows in double precision. Calls have taken effect when they return, and
/// equal calls give equal bits. Memory is the host's; attention's scratch (128 rows of scores) is
/// not counted.
class CpuTensorOps final : public TensorOps {
public:
  CpuTensorOps();

  [[nodiscard]] NumberType working_type() const override { return NumberType::f32; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) override;
  void copy_in(std::span<const float> from, ArrayView to) override;
  void copy_in(std::span<const std::int32_t> from, ArrayView to) override;
  void copy_out(ArrayView from, std::span<float> to) override;
  void copy(ArrayView from, ArrayView to) override;
  void zero(ArrayView what) override;
  void fill_random(std::uint64_t seed, float bound, ArrayView what) override;
  void finish() override {}

  void gemm(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) override;
  void add(ArrayView a, ArrayView b, ArrayView sum) override;
  void rms_norm(ArrayView x, ArrayView weight, int width, ArrayView y,
                ArrayView inverse_rms) override;
  void rms_norm_input_gradient(ArrayView x, ArrayView weight, ArrayView inverse_rms, ArrayView dy,
                               int width, bool accumulate, ArrayView dx) override;
  void rms_norm_weight_gradient(ArrayView x, ArrayView inverse_rms, ArrayView dy, int width,
                                ArrayView dweight) override;
  void rotary(const AttentionShape& shape, float theta, Direction direction,
              ArrayView qkv) override;
  void attention(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                 ArrayView log_sums) override;
  void attention_gradient(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                          ArrayView log_sums, ArrayView dout, ArrayView dqkv) override;
  void swiglu(ArrayView gate_up, int width, ArrayView y) override;
  void swiglu_gradient(ArrayView gate_up, ArrayView dy, int width, ArrayView dgate_up) override;
  void embed(ArrayView tokens, ArrayView table, int width, ArrayView y) override;
  void embed_gradient(ArrayView tokens, ArrayView dy, int width, ArrayView dtable) override;
  void cross_entropy(ArrayView targets, int vocabulary, float scale, ArrayView logits,
                     ArrayView loss) override;
  void sgd(float learning_rate, ArrayView gradient, ArrayView master, ArrayView weights) override;
  void adamw(const AdamW& options, ArrayView gradient, ArrayView mean, ArrayView square,
             ArrayView master, ArrayView weights) override;

private:
  std::size_t physical_memory_ = 0;
  std::vector<float> scores_, gradients_;  ///< attention's scratch
};

[[nodiscard]] std::unique_ptr<TensorOps> make_cpu_math();

}  // namespace longhaul::nn
