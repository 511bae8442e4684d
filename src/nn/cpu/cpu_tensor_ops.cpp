#include "nn/cpu/cpu_tensor_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include <cblas.h>
#include <unistd.h>

#include "base/bf16.hpp"
#include "base/index.hpp"
#include "nn/counter_random.hpp"
#include "nn/cpu/numbers.hpp"

namespace longhaul::nn {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

CpuTensorOps::CpuTensorOps()
    : physical_memory_{to_size(sysconf(_SC_PHYS_PAGES)) * to_size(sysconf(_SC_PAGESIZE))} {
  openblas_set_num_threads(1);  // ranks share the cores; and equal calls are to give equal bits
}

std::unique_ptr<TensorOps> make_cpu_math() { return std::make_unique<CpuTensorOps>(); }

std::byte* CpuTensorOps::allocate(std::size_t bytes) {
  if (bytes > physical_memory_) return nullptr;  // the kernel promises more than there is
  return static_cast<std::byte*>(operator new(bytes, kAlignment, std::nothrow));
}

void CpuTensorOps::release(std::byte* memory) { operator delete(memory, kAlignment); }

void CpuTensorOps::copy_in(std::span<const float> from, ArrayView to) {
  LONGHAUL_ASSERT(from.size() == to.count, "{} numbers into {}", from.size(), to.count);
  if (to.type == NumberType::bf16) {
    std::transform(from.begin(), from.end(), halves(to).begin(), to_bf16);
  } else {
    std::copy(from.begin(), from.end(), floats(to).begin());
  }
}

void CpuTensorOps::copy_in(std::span<const std::int32_t> from, ArrayView to) {
  LONGHAUL_ASSERT(from.size() == to.count, "{} numbers into {}", from.size(), to.count);
  std::copy(from.begin(), from.end(), integers(to).begin());
}

void CpuTensorOps::copy_out(ArrayView from, std::span<float> to) {
  LONGHAUL_ASSERT(from.count == to.size(), "{} numbers into {}", from.count, to.size());
  if (from.type == NumberType::bf16) {
    std::transform(halves(from).begin(), halves(from).end(), to.begin(), from_bf16);
  } else {
    std::copy(floats(from).begin(), floats(from).end(), to.begin());
  }
}

void CpuTensorOps::copy(ArrayView from, ArrayView to) {
  LONGHAUL_ASSERT(from.count == to.count, "{} numbers into {}", from.count, to.count);
  if (from.type == to.type) {
    std::memmove(to.data, from.data, from.bytes());
  } else if (to.type == NumberType::f32) {
    copy_out(from, floats(to));
  } else {
    copy_in(std::span<const float>{floats(from)}, to);
  }
}

void CpuTensorOps::zero(ArrayView what) { std::fill_n(what.data, what.bytes(), std::byte{0}); }

void CpuTensorOps::fill_random(std::uint64_t seed, float bound, ArrayView what) {
  for (std::size_t i = 0; i < what.count; ++i) {
    const float number = bound * counter_random(seed, i);
    if (what.type == NumberType::bf16) {
      halves(what)[i] = to_bf16(number);
    } else {
      floats(what)[i] = number;
    }
  }
}

void CpuTensorOps::gemm(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c) {
  const auto count = [](int rows, int columns) { return to_size(rows) * to_size(columns); };
  LONGHAUL_ASSERT(a.count == count(shape.m, shape.k) && b.count == count(shape.k, shape.n) &&
                      c.count == count(shape.m, shape.n),
                  "{} x {} x {}: a {}, b {}, c {} numbers", shape.m, shape.n, shape.k, a.count,
                  b.count, c.count);
  cblas_sgemm(CblasRowMajor, shape.transpose_a ? CblasTrans : CblasNoTrans,
              shape.transpose_b ? CblasTrans : CblasNoTrans, shape.m, shape.n, shape.k, 1.0F,
              floats(a).data(), shape.transpose_a ? shape.m : shape.k, floats(b).data(),
              shape.transpose_b ? shape.k : shape.n, shape.accumulate ? 1.0F : 0.0F,
              floats(c).data(), shape.n);
}

void CpuTensorOps::add(ArrayView a, ArrayView b, ArrayView sum) {
  LONGHAUL_ASSERT(a.count == b.count && a.count == sum.count, "{}, {}, {} numbers", a.count,
                  b.count, sum.count);
  std::transform(floats(a).begin(), floats(a).end(), floats(b).begin(), floats(sum).begin(),
                 [](float left, float right) { return left + right; });
}

void CpuTensorOps::sgd(float learning_rate, ArrayView gradient, ArrayView master,
                       ArrayView weights) {
  const auto numbers = floats(master);
  const auto slope = floats(gradient);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= learning_rate * slope[i];
  if (weights.data != master.data) copy(master, weights);
}

void CpuTensorOps::adamw(const AdamW& options, ArrayView gradient, ArrayView mean, ArrayView square,
                         ArrayView master, ArrayView weights) {
  const double mean_bias = 1 - std::pow(static_cast<double>(options.beta1), options.step);
  const double square_bias = 1 - std::pow(static_cast<double>(options.beta2), options.step);
  const auto step = static_cast<float>(options.learning_rate / mean_bias);
  const auto root = static_cast<float>(1 / std::sqrt(square_bias));
  const float keep = 1 - options.learning_rate * options.weight_decay;
  const auto numbers = floats(master), slope = floats(gradient);
  const auto first = floats(mean), second = floats(square);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    first[i] = options.beta1 * first[i] + (1 - options.beta1) * slope[i];
    second[i] = options.beta2 * second[i] + (1 - options.beta2) * slope[i] * slope[i];
    const float scale = std::sqrt(second[i]) * root + options.epsilon;
    numbers[i] = keep * numbers[i] - step * first[i] / scale;
  }
  if (weights.data != master.data) copy(master, weights);
}

}  // namespace longhaul::nn
