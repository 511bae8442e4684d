#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/index.hpp"
#include "cuda/check.hpp"
#include "nn/cuda/attention.hpp"
#include "nn/cuda/kernels/kernels.hpp"

namespace longhaul::nn {
namespace {

std::vector<float> on_host(cudaStream_t stream, StreamMemoryPool& pool, ArrayView numbers) {
  const Scratch exact{pool, numbers.count, NumberType::f32, "attention's check"};
  convert(stream, numbers, exact.view());
  std::vector<float> there(numbers.count);
  cuda::check(cudaMemcpyAsync(there.data(), exact.view().data, exact.view().bytes(),
                              cudaMemcpyDeviceToHost, stream));
  cuda::check(cudaStreamSynchronize(stream));
  return there;
}

double distance(const std::vector<float>& got, const std::vector<float>& expected) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  const double ratio = std::sqrt(difference / length);
  return ratio == ratio ? ratio : std::numeric_limits<double>::infinity();
}

/// Sizes of what attention reads and writes.
struct Sizes {
  explicit Sizes(const AttentionShape& shape)
      : qkv{shape.tokens() * shape.width()},
        sums{shape.tokens() * to_size(shape.heads)},
        out{sums * to_size(shape.head_size)} {}
  std::size_t qkv, sums, out;
};

struct Results {
  std::vector<float> out, log_sums, dqkv;
};

Results results_of(cudaStream_t stream, StreamMemoryPool& pool, const AttentionShape& shape,
                   Attention& attention, ArrayView qkv, ArrayView dout) {
  const Sizes sizes{shape};
  const Scratch out{pool, sizes.out, NumberType::bf16, "attention's check"},
      log_sums{pool, sizes.sums, NumberType::f32, "attention's check"},
      dqkv{pool, sizes.qkv, NumberType::bf16, "attention's check"};
  for (const Scratch* const poisoned : {&out, &log_sums, &dqkv})  // all bits set: not a number
    cuda::check(cudaMemsetAsync(poisoned->view().data, 0xff, poisoned->view().bytes(), stream));
  attention.forward(shape, qkv, out.view(), log_sums.view());
  attention.backward(shape, qkv, out.view(), log_sums.view(), dout, dqkv.view());
  return {on_host(stream, pool, out.view()), on_host(stream, pool, log_sums.view()),
          on_host(stream, pool, dqkv.view())};
}

}  // namespace

double disagreement(cudaStream_t stream, StreamMemoryPool& pool, const AttentionShape& shape,
                    Attention& other, Attention& own) {
  const Sizes sizes{shape};
  const Scratch qkv{pool, sizes.qkv, NumberType::bf16, "attention's check"},
      dout{pool, sizes.out, NumberType::bf16, "attention's check"};
  fill_random(stream, 1, 2, qkv.view());
  fill_random(stream, 2, 1, dout.view());
  const Results expected = results_of(stream, pool, shape, own, qkv.view(), dout.view());
  const Results got = results_of(stream, pool, shape, other, qkv.view(), dout.view());
  return std::max({distance(got.out, expected.out), distance(got.log_sums, expected.log_sums),
                   distance(got.dqkv, expected.dqkv)});
}

}  // namespace longhaul::nn
