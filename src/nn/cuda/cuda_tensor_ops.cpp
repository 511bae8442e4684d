#include "nn/cuda/cuda_tensor_ops.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "cuda/accelerator.hpp"
#include "nn/cuda/attention.hpp"
#include "nn/cuda/factory.hpp"
#include "nn/cuda/kernels/kernels.hpp"

namespace longhaul::nn {
namespace {

/// Chooses the device of this thread, before any handle of CUDA is made.
cuda::Urgency urgent_on(int device, cuda::Urgency urgency) {
  cuda::use_device(device);
  return urgency;
}

constexpr std::size_t kPieceNumbers = Staging::kPieceBytes / sizeof(float);

/// f(first, count) for the stretches of `count` numbers that go through the staging in one piece.
template <typename F>
void each_piece(std::size_t count, F&& f) {
  for (std::size_t first = 0; first < count; first += kPieceNumbers)
    f(first, std::min(kPieceNumbers, count - first));
}

}  // namespace

CudaTensorOps::CudaTensorOps(int device, const CudaTensorOpsOptions& options)
    : device_{device},
      stream_{urgent_on(device, options.urgency)},
      pool_{device, stream_.get()},
      staging_{stream_.get()},
      gemms_{device, stream_.get(), pool_, options.gemm},
      own_attention_{stream_.get(), pool_, gemms_, options.most_queries} {
  if (options.attention == AttentionChoice::own) {
    attention_name_ = "own (chosen)";
    return;
  }
  CudnnOffer offer = offer_cudnn(stream_.get(), pool_, own_attention_);
  cudnn_ = std::move(offer.attention);
  attention_name_ = std::move(offer.name);
}

/// Work that still runs uses what is given back here.
CudaTensorOps::~CudaTensorOps() {
  cuda::report(cudaStreamSynchronize(stream_.get()), "waiting for a device");
}

void CudaTensorOps::copy_in(std::span<const float> from, ArrayView to) {
  LONGHAUL_ASSERT(from.size() == to.count, "{} numbers to {}", from.size(), to.count);
  if (to.type == NumberType::f32) {
    each_piece(from.size(), [&](std::size_t first, std::size_t count) {
      staging_.to_device(std::as_bytes(from.subspan(first, count)), to.part(first, count).data);
    });
    return;
  }
  const Scratch piece{pool_, std::min(kPieceNumbers, from.size()), NumberType::f32,
                      "numbers on their way in"};
  each_piece(from.size(), [&](std::size_t first, std::size_t count) {
    const ArrayView there = piece.view().part(0, count);
    staging_.to_device(std::as_bytes(from.subspan(first, count)), there.data);
    convert(stream_.get(), there, to.part(first, count));
  });
}

void CudaTensorOps::copy_in(std::span<const std::int32_t> from, ArrayView to) {
  LONGHAUL_ASSERT(from.size() == to.count && to.type == NumberType::i32,
                  "{} integers to {} numbers of type {}", from.size(), to.count,
                  static_cast<int>(to.type));
  each_piece(from.size(), [&](std::size_t first, std::size_t count) {
    staging_.to_device(std::as_bytes(from.subspan(first, count)), to.part(first, count).data);
  });
}

void CudaTensorOps::copy_out(ArrayView from, std::span<float> to) {
  LONGHAUL_ASSERT(from.count == to.size(), "{} numbers to {}", from.count, to.size());
  const Scratch piece{pool_, std::min(kPieceNumbers, to.size()), NumberType::f32,
                      "numbers on their way out"};
  each_piece(to.size(), [&](std::size_t first, std::size_t count) {
    ArrayView there = from.part(first, count);
    if (from.type != NumberType::f32) {
      there = piece.view().part(0, count);
      convert(stream_.get(), from.part(first, count), there);
    }
    staging_.to_host(there.data, std::as_writable_bytes(to.subspan(first, count)));
  });
  if (to.empty()) finish();
}

void CudaTensorOps::copy(ArrayView from, ArrayView to) {
  LONGHAUL_ASSERT(from.count == to.count, "{} numbers to {}", from.count, to.count);
  if (from.type == to.type)
    cuda::check(
        cudaMemcpyAsync(to.data, from.data, to.bytes(), cudaMemcpyDeviceToDevice, stream()));
  else
    convert(stream(), from, to);
}

void CudaTensorOps::zero(ArrayView what) {
  if (what.count > 0) cuda::check(cudaMemsetAsync(what.data, 0, what.bytes(), stream()));
}

void CudaTensorOps::fill_random(std::uint64_t seed, float bound, ArrayView what) {
  nn::fill_random(stream(), seed, bound, what);
}

void CudaTensorOps::gemm(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) {
  gemms_.multiply(shape, a, b, c);
}

void CudaTensorOps::add(ArrayView a, ArrayView b, ArrayView sum) { nn::add(stream(), a, b, sum); }

void CudaTensorOps::rms_norm(ArrayView x, ArrayView weight, int width, ArrayView y,
                             ArrayView inverse_rms) {
  nn::rms_norm(stream(), x, weight, width, y, inverse_rms);
}

void CudaTensorOps::rms_norm_input_gradient(ArrayView x, ArrayView weight, ArrayView inverse_rms,
                                            ArrayView dy, int width, bool accumulate,
                                            ArrayView dx) {
  nn::rms_norm_input_gradient(stream(), x, weight, inverse_rms, dy, width, accumulate, dx);
}

void CudaTensorOps::rms_norm_weight_gradient(ArrayView x, ArrayView inverse_rms, ArrayView dy,
                                             int width, ArrayView dweight) {
  const std::size_t rows = x.count / to_size(width);
  const Scratch partial{pool_, weight_gradient_scratch(rows, width), NumberType::f32,
                        "sums of a norm's gradient"};
  nn::rms_norm_weight_gradient(stream(), x, inverse_rms, dy, width, partial.view(), dweight);
}

ArrayView CudaTensorOps::turns(const AttentionShape& shape, float theta) {
  auto& made = turns_[{shape.sequence, shape.head_size, theta}];
  if (made) return made->view();
  const auto pairs = to_size(shape.head_size / 2);
  std::vector<float> numbers;
  numbers.reserve(2 * pairs * to_size(shape.sequence));
  for (int position = 0; position < shape.sequence; ++position)
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double turn = -2 * static_cast<double>(pair) / shape.head_size;
      const double angle = position * std::pow(static_cast<double>(theta), turn);
      numbers.push_back(static_cast<float>(std::cos(angle)));
      numbers.push_back(static_cast<float>(std::sin(angle)));
    }
  made = std::make_unique<Scratch>(pool_, numbers.size(), NumberType::f32, "rotary turns");
  copy_in(numbers, made->view());
  return made->view();
}

void CudaTensorOps::rotary(const AttentionShape& shape, float theta, Direction direction,
                           ArrayView qkv) {
  nn::rotary(stream(), shape, turns(shape, theta), direction, qkv);
}

Attention& CudaTensorOps::attention_for(const AttentionShape& shape) {
  if (cudnn_ && cudnn_->takes(shape)) return *cudnn_;
  return own_attention_;
}

void CudaTensorOps::attention(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                              ArrayView log_sums) {
  attention_for(shape).forward(shape, qkv, out, log_sums);
}

void CudaTensorOps::attention_gradient(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                                       ArrayView log_sums, ArrayView dout, ArrayView dqkv) {
  attention_for(shape).backward(shape, qkv, out, log_sums, dout, dqkv);
}

void CudaTensorOps::swiglu(ArrayView gate_up, int width, ArrayView y) {
  nn::swiglu(stream(), gate_up, width, y);
}

void CudaTensorOps::swiglu_gradient(ArrayView gate_up, ArrayView dy, int width,
                                    ArrayView dgate_up) {
  nn::swiglu_gradient(stream(), gate_up, dy, width, dgate_up);
}

void CudaTensorOps::embed(ArrayView tokens, ArrayView table, int width, ArrayView y) {
  nn::embed(stream(), tokens, table, width, y);
}

void CudaTensorOps::embed_gradient(ArrayView tokens, ArrayView dy, int width, ArrayView dtable) {
  const Scratch chains{pool_, 2 * tokens.count, NumberType::i32, "places of tokens"};
  nn::embed_gradient(stream(), tokens, dy, width, chains.view(), dtable);
}

void CudaTensorOps::cross_entropy(ArrayView targets, int vocabulary, float scale, ArrayView logits,
                                  ArrayView loss) {
  const Scratch losses{pool_, targets.count, NumberType::f32, "losses of tokens"};
  nn::cross_entropy(stream(), targets, vocabulary, scale, logits, losses.view(), loss);
}

void CudaTensorOps::sgd(float learning_rate, ArrayView gradient, ArrayView master,
                        ArrayView weights) {
  nn::sgd(stream(), learning_rate, gradient, master, weights);
}

void CudaTensorOps::adamw(const AdamW& options, ArrayView gradient, ArrayView mean,
                          ArrayView square, ArrayView master, ArrayView weights) {
  nn::adamw(stream(), options, gradient, mean, square, master, weights);
}

}  // namespace longhaul::nn

namespace longhaul::nn {

std::unique_ptr<TensorOps> make_cuda_tensor_ops(int index, cuda::Urgency urgency) {
  const std::string why = cuda::why_no_accelerator();
  if (!why.empty())
    fail("no CUDA device (there is none: {}). Use --device cpu, or start where there is one.", why);
  const std::size_t count = cuda::accelerators().size();
  if (index < 0 || to_size(index) >= count)
    fail("no CUDA device {} (there are {}, counted from 0). Choose one of these.", index, count);
  return std::make_unique<CudaTensorOps>(index, CudaTensorOpsOptions{.urgency = urgency});
}

std::string accelerator_notes(const TensorOps& math) {
  const auto* const gpu = dynamic_cast<const CudaTensorOps*>(&math);
  return gpu == nullptr ? std::string{} : "attention: " + gpu->attention_name();
}

}  // namespace longhaul::nn
