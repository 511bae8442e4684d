#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "nn/cuda/attention.hpp"

// cuDNN's attention through its front end (headers alone), which finds cuDNN's functions in the
// library that we load here: a program starts and runs without it.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the name that the front end asks for
}

namespace longhaul::nn {
namespace {

namespace front = cudnn_frontend;

/// As the loader finds it, or beside the toolkit this was built with; nullptr where there is none.
void* load(const std::string& soname) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
  void* const found = dlopen(soname.c_str(), kHow);
  return found != nullptr ? found : dlopen((LONGHAUL_CUDA_LIBRARIES "/" + soname).c_str(), kHow);
}

std::string runtime_library() { return fmt::format("libcudart.so.{}", CUDART_VERSION / 1000); }

/// Or the front end takes an older one, where there is one. Set before there are threads.
[[maybe_unused]] const int kRuntimeLibrary =
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime_library().c_str(), 0);

void expect(front::error_t outcome) {
  if (outcome.is_bad())
    throw Error{fmt::format("cuDNN: {}. Choose our own attention.", outcome.get_message()),
                ExitCode::run_failed};
}

void expect(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error{fmt::format("cuDNN: {} failed (status {}). Choose our own attention.", what,
                            static_cast<int>(status)),
                ExitCode::run_failed};
}

/// Numbers of the tensors of a graph.
enum Tensor : std::int64_t { kQ = 1, kK, kV, kOut, kLogSums, kDout, kDq, kDk, kDv };

/// Where the heads of Q, K or V, or of the output, lie: [batch, heads, sequence, head_size].
struct TensorLayout {
  std::vector<std::int64_t> sizes, steps;

  TensorLayout(const AttentionShape& shape, int heads, std::int64_t token_width)
      : sizes{shape.batch, heads, shape.sequence, shape.head_size},
        steps{token_width * shape.sequence, shape.head_size, token_width, 1} {}
  /// Shape of one number for each head and token.
  explicit TensorLayout(const AttentionShape& shape)
      : sizes{shape.batch, shape.heads, shape.sequence, 1},
        steps{std::int64_t{shape.heads} * shape.sequence, shape.sequence, 1, 1} {}
};

TensorLayout layout_of(const AttentionShape& shape, Tensor tensor) {
  const auto packed = static_cast<std::int64_t>(shape.width());
  switch (tensor) {
    case kQ:
    case kDq: return {shape, shape.heads, packed};
    case kK:
    case kV:
    case kDk:
    case kDv: return {shape, shape.kv_heads, packed};
    case kOut:
    case kDout: return {shape, shape.heads, std::int64_t{shape.heads} * shape.head_size};
    case kLogSums: break;
  }
  return TensorLayout{shape};
}

using Handle = std::shared_ptr<front::graph::Tensor_attributes>;

/// A graph of one operation, ready to run.
class Operation {
public:
  explicit Operation(const AttentionShape& shape) : shape_{shape} {
    graph_.set_io_data_type(front::DataType_t::BFLOAT16)
        .set_intermediate_data_type(front::DataType_t::FLOAT)
        .set_compute_data_type(front::DataType_t::FLOAT);
  }
  [[nodiscard]] Handle input(Tensor tensor) {
    const TensorLayout layout = layout_of(shape_, tensor);
    auto made = graph_.tensor(front::graph::Tensor_attributes()
                                  .set_uid(tensor)
                                  .set_dim(layout.sizes)
                                  .set_stride(layout.steps));
    if (tensor == kLogSums) made->set_data_type(front::DataType_t::FLOAT);
    return made;
  }
  void output(const Handle& handle, Tensor tensor) const {
    const TensorLayout layout = layout_of(shape_, tensor);
    handle->set_output(true).set_uid(tensor).set_dim(layout.sizes).set_stride(layout.steps);
    if (tensor == kLogSums) handle->set_data_type(front::DataType_t::FLOAT);
  }
  [[nodiscard]] front::graph::Graph& graph() { return graph_; }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_size)); }

  void build(cudnnHandle_t handle) {
    expect(graph_.build(handle, {front::HeurMode_t::A}, front::BuildPlanPolicy_t::HEURISTICS_CHOICE,
                        false));
    expect(graph_.get_workspace_size(workspace_bytes_));
  }
  void run(cudnnHandle_t handle, StreamMemoryPool& pool,
           std::unordered_map<std::int64_t, void*> tensors) const {
    const Scratch workspace{pool, to_size(workspace_bytes_) / 4 + 1, NumberType::f32,
                            "cuDNN's attention"};
    expect(graph_.execute(handle, tensors, workspace.view().data));
  }

private:
  AttentionShape shape_;
  front::graph::Graph graph_;
  std::int64_t workspace_bytes_ = 0;
};

std::unique_ptr<Operation> make_forward(cudnnHandle_t handle, const AttentionShape& shape) {
  auto made = std::make_unique<Operation>(shape);
  const auto options = front::graph::SDPA_attributes()
                           .set_generate_stats(true)
                           .set_diagonal_alignment(front::DiagonalAlignment_t::TOP_LEFT)
                           .set_diagonal_band_right_bound(0)
                           .set_attn_scale(made->scale());
  const auto [out, log_sums] =
      made->graph().sdpa(made->input(kQ), made->input(kK), made->input(kV), options);
  made->output(out, kOut);
  made->output(log_sums, kLogSums);
  made->build(handle);
  return made;
}

std::unique_ptr<Operation> make_backward(cudnnHandle_t handle, const AttentionShape& shape) {
  auto made = std::make_unique<Operation>(shape);
  const auto options = front::graph::SDPA_backward_attributes()
                           .set_diagonal_alignment(front::DiagonalAlignment_t::TOP_LEFT)
                           .set_diagonal_band_right_bound(0)
                           .set_deterministic_algorithm(true)
                           .set_attn_scale(made->scale());
  const auto [dq, dk, dv] = made->graph().sdpa_backward(
      made->input(kQ), made->input(kK), made->input(kV), made->input(kOut), made->input(kDout),
      made->input(kLogSums), options);
  made->output(dq, kDq);
  made->output(dk, kDk);
  made->output(dv, kDv);
  made->build(handle);
  return made;
}

/// Where Q, K and V of a packed tensor begin.
std::array<void*, 3> heads_of(const AttentionShape& shape, ArrayView packed) {
  const auto first = [&](int heads) {
    return packed.part(to_size(heads) * to_size(shape.head_size), 0).data;
  };
  return {first(0), first(shape.heads), first(shape.heads + shape.kv_heads)};
}

class CudnnAttention final : public Attention {
public:
  CudnnAttention(cudaStream_t stream, StreamMemoryPool& pool) : pool_{pool} {
    expect(front::detail::create_handle(&handle_), "cudnnCreate");
    auto* const set_stream =
        reinterpret_cast<decltype(&cudnnSetStream)>(dlsym(front::cudnn_dlhandle, "cudnnSetStream"));
    if (set_stream == nullptr) fail("cuDNN has no cudnnSetStream. Choose our own attention.");
    expect(set_stream(handle_, stream), "cudnnSetStream");
  }
  ~CudnnAttention() override { static_cast<void>(front::detail::destroy_handle(handle_)); }

  [[nodiscard]] bool takes(const AttentionShape& shape) override {
    return graphs_of(shape).forward != nullptr;
  }
  void forward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
               ArrayView log_sums) override {
    const auto [q, k, v] = heads_of(shape, qkv);
    graphs_of(shape).forward->run(
        handle_, pool_, {{kQ, q}, {kK, k}, {kV, v}, {kOut, out.data}, {kLogSums, log_sums.data}});
  }
  void backward(const AttentionShape& shape, ArrayView qkv, ArrayView out, ArrayView log_sums,
                ArrayView dout, ArrayView dqkv) override {
    const auto [q, k, v] = heads_of(shape, qkv);
    const auto [dq, dk, dv] = heads_of(shape, dqkv);
    graphs_of(shape).backward->run(handle_, pool_,
                                   {{kQ, q},
                                    {kK, k},
                                    {kV, v},
                                    {kOut, out.data},
                                    {kLogSums, log_sums.data},
                                    {kDout, dout.data},
                                    {kDq, dq},
                                    {kDk, dk},
                                    {kDv, dv}});
  }
  /// Why the shape asked for last is not taken.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

private:
  struct Graphs {
    std::unique_ptr<Operation> forward, backward;  ///< both or none
  };
  Graphs& graphs_of(const AttentionShape& shape) {
    const auto [at, is_new] = graphs_.try_emplace(
        {shape.batch, shape.sequence, shape.heads, shape.kv_heads, shape.head_size});
    if (!is_new) return at->second;
    if (shape.head_size % 8 != 0) {
      refusal_ = "heads are no multiple of 8 numbers";
      return at->second;
    }
    try {
      Graphs made{make_forward(handle_, shape), make_backward(handle_, shape)};
      at->second = std::move(made);
    } catch (const std::exception& error) {
      refusal_ = error.what();
    }
    return at->second;
  }

  StreamMemoryPool& pool_;
  cudnnHandle_t handle_ = nullptr;
  std::map<std::tuple<int, int, int, int, int>, Graphs> graphs_;
  std::string refusal_;
};

/// Both within 2^-8 or so of the truth; a wrong mask, scale or head is off by more than a tenth.
constexpr double kMostDisagreement = 2e-2;
constexpr AttentionShape kChecked[] = {{2, 192, 4, 4, 64}, {1, 320, 8, 2, 128}};

CudnnOffer offer(cudaStream_t stream, StreamMemoryPool& pool, Attention& own) {
  auto made = std::make_unique<CudnnAttention>(stream, pool);
  for (const AttentionShape& shape : kChecked) {
    if (!made->takes(shape))
      return {nullptr, fmt::format("own (cuDNN refuses: {})", made->refusal())};
    const double off = disagreement(stream, pool, shape, *made, own);
    if (!(off <= kMostDisagreement))
      return {nullptr, fmt::format("own (cuDNN's results are {:.1e} off ours)", off)};
  }
  const std::size_t version = front::detail::get_backend_version();
  return {std::move(made),
          fmt::format("cuDNN {}.{}.{}", version / 10'000, version / 100 % 100, version % 100)};
}

}  // namespace

CudnnOffer offer_cudnn(cudaStream_t stream, StreamMemoryPool& pool, Attention& own) {
  static void* const library = [] {
    // The front end asks the loader for CUDA's runtime by this name: one that is there already.
    static_cast<void>(load(runtime_library()));
    return front::cudnn_dlhandle = load(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
  }();
  if (library == nullptr) return {nullptr, "own (cuDNN cannot be loaded)"};
  try {
    return offer(stream, pool, own);
  } catch (const std::exception& error) {
    return {nullptr, fmt::format("own ({})", error.what())};
  }
}

}  // namespace longhaul::nn
