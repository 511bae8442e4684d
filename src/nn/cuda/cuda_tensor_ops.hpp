#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <cuda_runtime_api.h>

#include "cuda/handles.hpp"
#include "nn/cuda/gemm.hpp"
#include "nn/cuda/own_attention.hpp"
#include "nn/cuda/stream_memory_pool.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// Whose attention: cuDNN's where it is built in, found and right on a small problem; else our own.
enum class AttentionChoice : std::uint8_t { best, own };

struct CudaTensorOpsOptions {
  GemmChoice gemm = GemmChoice::timed;
  AttentionChoice attention = AttentionChoice::best;
  cuda::Urgency urgency = cuda::Urgency::normal;  ///< of its stream
  /// Blocks of our own attention; small ones for tests.
  int most_queries = OwnAttention::kMostQueries;
};

/// bf16 on one GPU with sums in fp32: products by cuBLASLt, the rest by kernels of our own, all on
/// one stream. A call gives its work to the stream and returns; only copy_out, finish, the first
/// product of a shape (its algorithm is chosen) and the first turn of a sequence's length wait.
/// Equal calls give equal bits: no sum depends on who comes first. Threads that use it have chosen
/// its device. Scratch (docs/kernels.md) comes beside what allocate() gives.
class CudaTensorOps final : public TensorOps {
public:
  explicit CudaTensorOps(int device, const CudaTensorOpsOptions& options = {});
  ~CudaTensorOps() override;

  [[nodiscard]] int device() const { return device_; }
  /// All work is given to this one; wait for events here to order it after other streams.
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  /// "cuDNN 9.19", or "own (why)".
  [[nodiscard]] const std::string& attention_name() const { return attention_name_; }

  [[nodiscard]] NumberType working_type() const override { return NumberType::bf16; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override { return pool_.allocate(bytes); }
  void release(std::byte* memory) override { pool_.release(memory); }
  void copy_in(std::span<const float> from, ArrayView to) override;
  void copy_in(std::span<const std::int32_t> from, ArrayView to) override;
  void copy_out(ArrayView from, std::span<float> to) override;
  void copy(ArrayView from, ArrayView to) override;
  void zero(ArrayView what) override;
  void fill_random(std::uint64_t seed, float bound, ArrayView what) override;
  void finish() override { stream_.wait_on_host(); }

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
  [[nodiscard]] Attention& attention_for(const AttentionShape& shape);
  /// Cosine and sine of each position and pair: exact, and made once for a length, head and theta.
  [[nodiscard]] ArrayView turns(const AttentionShape& shape, float theta);

  int device_;
  cuda::Stream stream_;
  StreamMemoryPool pool_;
  Staging staging_;
  Gemms gemms_;
  OwnAttention own_attention_;
  std::unique_ptr<Attention> cudnn_;  ///< nullptr where our own is used alone
  std::string attention_name_;
  std::map<std::tuple<int, int, float>, std::unique_ptr<Scratch>> turns_;
};

}  // namespace longhaul::nn
