#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include <cuda_runtime_api.h>

#include "cuda/handles.hpp"
#include "nn/cuda/gemm.hpp"
#include "nn/cuda/own_attention.hpp"
#include "nn/cuda/pool.hpp"
#include "nn/cuda/staging.hpp"
#include "nn/math.hpp"

namespace longhaul::cuda {

/// Whose attention: cuDNN's where it is built in, found and right on a small problem; else our own.
enum class AttentionChoice : std::uint8_t { best, own };

struct CudaMathOptions {
  GemmChoice gemm = GemmChoice::timed;
  AttentionChoice attention = AttentionChoice::best;
  /// Blocks of our own attention; small ones for tests.
  int most_queries = OwnAttention::kMostQueries;
};

/// bf16 on one GPU with sums in fp32: products by cuBLASLt, the rest by kernels of our own, all on
/// one stream. A call gives its work to the stream and returns; only copy_out, finish, the first
/// product of a shape (its algorithm is chosen) and the first turn of a sequence's length wait.
/// Equal calls give equal bits: no sum depends on who comes first. Threads that use it have chosen
/// its device. Scratch (docs/kernels.md) comes beside what allocate() gives.
class CudaMath final : public Math {
public:
  explicit CudaMath(int device, const CudaMathOptions& options = {});
  ~CudaMath() override;

  /// All work is given to this one; wait for events here to order it behind other streams.
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  /// "cuDNN 9.19", or "own (why)".
  [[nodiscard]] const std::string& attention_name() const { return attention_name_; }

  [[nodiscard]] NumberType working_type() const override { return NumberType::bf16; }
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override { return pool_.allocate(bytes); }
  void release(std::byte* memory) override { pool_.release(memory); }
  void copy_in(std::span<const float> from, View to) override;
  void copy_in(std::span<const std::int32_t> from, View to) override;
  void copy_out(View from, std::span<float> to) override;
  void copy(View from, View to) override;
  void zero(View what) override;
  void fill_random(std::uint64_t seed, float bound, View what) override;
  void finish() override { stream_.wait_on_host(); }

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
  [[nodiscard]] Attention& attention_for(const AttentionShape& shape);
  /// Cosine and sine of each position and pair: exact, and made once for a length, head and theta.
  [[nodiscard]] View turns(const AttentionShape& shape, float theta);

  Stream stream_;
  StreamMemoryPool pool_;
  Staging staging_;
  Gemms gemms_;
  OwnAttention own_attention_;
  std::unique_ptr<Attention> cudnn_;  ///< nullptr where our own is used alone
  std::string attention_name_;
  std::map<std::tuple<int, int, float>, std::unique_ptr<Scratch>> turns_;
};

}  // namespace longhaul::cuda
