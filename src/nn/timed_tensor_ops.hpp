#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cuda/task_trace.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// One call of a device's arithmetic, and how long it took.
struct TensorOpsCall {
  std::string operation;  ///< "gemm", "attention", "rms_norm_weight_gradient"
  std::string shape;  ///< "m=64 n=128 k=256 nt add": what its time depends on, see docs/profile.md
  NumberType type{};  ///< of what it works on
  double flops = 0;   ///< of matrix products, as docs/scenario.md counts them
  double bytes = 0;   ///< read and written if every operand passes through memory once
  Duration time{};
  std::uint64_t range = 0;  ///< of the trace, that its tasks lie in; 0: there is no trace
};

/// Hands every call on to another TensorOps and keeps how long it took. Waits for the device before
/// and after each, so that calls do not overlap: a block takes longer than it does without this.
class TimedTensorOps final : public TensorOps {
public:
  /// `math` outlives this, and so does `trace`, which records when it is asked to: nullptr: none.
  explicit TimedTensorOps(TensorOps& math, cuda::TaskTrace* trace = nullptr)
      : math_{math}, trace_{trace} {}

  /// The calls since the last take(), in their order; without allocations, copies from and to the
  /// host, and fill_random.
  [[nodiscard]] std::vector<TensorOpsCall> take();

  [[nodiscard]] NumberType working_type() const override { return math_.working_type(); }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override { return math_.allocate(bytes); }
  void release(std::byte* memory) override { math_.release(memory); }
  void copy_in(std::span<const float> from, ArrayView to) override { math_.copy_in(from, to); }
  void copy_in(std::span<const std::int32_t> from, ArrayView to) override {
    math_.copy_in(from, to);
  }
  void copy_out(ArrayView from, std::span<float> to) override { math_.copy_out(from, to); }
  void fill_random(std::uint64_t seed, float bound, ArrayView what) override {
    math_.fill_random(seed, bound, what);
  }
  void finish() override { math_.finish(); }

  void copy(ArrayView from, ArrayView to) override;
  void zero(ArrayView what) override;
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
  /// Runs `work` with the device idle before and after it; `call` says what it is.
  template <typename Work>
  void timed(TensorOpsCall call, Work work);

  TensorOps& math_;
  cuda::TaskTrace* trace_;
  std::vector<TensorOpsCall> calls_;
};

}  // namespace longhaul::nn
