#pragma once

#include <memory>
#include <vector>

#include "nn/math.hpp"

namespace longhaul {

/// The twin that every other device is held against: fp32, matrix products by OpenBLAS on one
/// thread, sums of rows in double precision. Calls have taken effect when they return, and equal
/// calls give equal bits. Memory is the host's; attention's scratch (128 rows of scores) is not
/// counted.
class CpuMath final : public Math {
public:
  CpuMath();

  [[nodiscard]] NumberType working_type() const override { return NumberType::f32; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) override;
  void copy_in(std::span<const float> from, View to) override;
  void copy_in(std::span<const std::int32_t> from, View to) override;
  void copy_out(View from, std::span<float> to) override;
  void copy(View from, View to) override;
  void zero(View what) override;
  void fill_random(std::uint64_t seed, float bound, View what) override;
  void finish() override {}

  void gemm(const Gemm& shape, View a, View b, View c) override;
  void add(View a, View b, View sum) override;
  void rms_norm(View x, View weight, int width, View y, View inverse_rms) override;
  void rms_norm_input_gradient(View x, View weight, View inverse_rms, View dy, int width,
                               bool accumulate, View dx) override;
  void rms_norm_weight_gradient(View x, View inverse_rms, View dy, int width,
                                View dweight) override;
  void rotary(const AttentionShape& shape, float theta, Direction direction, View qkv) override;
  void attention(const AttentionShape& shape, View qkv, View out, View log_sums) override;
  void attention_gradient(const AttentionShape& shape, View qkv, View out, View log_sums, View dout,
                          View dqkv) override;
  void swiglu(View gate_up, int width, View y) override;
  void swiglu_gradient(View gate_up, View dy, int width, View dgate_up) override;
  void embed(View tokens, View table, int width, View y) override;
  void embed_gradient(View tokens, View dy, int width, View dtable) override;
  void cross_entropy(View targets, int vocabulary, float scale, View logits, View loss) override;
  void sgd(float learning_rate, View gradient, View master, View weights) override;
  void adamw(const AdamW& options, View gradient, View mean, View square, View master,
             View weights) override;

private:
  std::size_t physical_memory_ = 0;
  std::vector<float> scores_, gradients_;  ///< attention's scratch
};

[[nodiscard]] std::unique_ptr<Math> make_cpu_math();

}  // namespace longhaul
