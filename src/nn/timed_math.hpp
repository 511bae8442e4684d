#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "nn/math.hpp"

namespace longhaul {

/// One call of a device's arithmetic, and how long it took.
struct MathCall {
  std::string operation;  ///< "gemm", "attention", "rms_norm_weight_gradient"
  std::string shape;  ///< "m=64 n=128 k=256 nt add": what its time depends on, see docs/profile.md
  NumberType type{};  ///< of what it works on
  double flops = 0;   ///< of matrix products, as docs/scenario.md counts them
  double bytes = 0;   ///< read and written if every operand passes through memory once
  Duration time{};
};

/// Hands every call on to another Math and keeps how long it took. Waits for the device before and
/// after each, so that calls do not overlap: a block takes longer than it does without this.
class TimedMath final : public Math {
public:
  /// `math` outlives this.
  explicit TimedMath(Math& math) : math_{math} {}

  /// The calls since the last take(), in their order; without allocations, copies from and to the
  /// host, and fill_random.
  [[nodiscard]] std::vector<MathCall> take();

  [[nodiscard]] NumberType working_type() const override { return math_.working_type(); }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override { return math_.allocate(bytes); }
  void release(std::byte* memory) override { math_.release(memory); }
  void copy_in(std::span<const float> from, View to) override { math_.copy_in(from, to); }
  void copy_in(std::span<const std::int32_t> from, View to) override { math_.copy_in(from, to); }
  void copy_out(View from, std::span<float> to) override { math_.copy_out(from, to); }
  void fill_random(std::uint64_t seed, float bound, View what) override {
    math_.fill_random(seed, bound, what);
  }
  void finish() override { math_.finish(); }

  void copy(View from, View to) override;
  void zero(View what) override;
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
  /// Runs `work` with the device idle before and after it; `call` says what it is.
  template <typename Work>
  void timed(MathCall call, Work work);

  Math& math_;
  std::vector<MathCall> calls_;
};

/// "f32", "bf16", "i32".
[[nodiscard]] const char* name_of(NumberType type);

}  // namespace longhaul
