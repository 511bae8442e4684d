#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

#include "nn/cuda/stream_memory_pool.hpp"

namespace longhaul::nn {

/// Which of cuBLASLt's algorithms takes a product: the one that is fastest when it is first asked
/// for, or the first that the library proposes. Each gives the same bits in every run; which is the
/// fastest may differ from run to run.
enum class GemmChoice : std::uint8_t { timed, first };

/// A matrix in memory, row-major: where its next row and the next matrix of a batch begin, in
/// numbers. As stored, before it is transposed.
struct Storage {
  std::int64_t row_length = 0;
  std::int64_t step = 0;
  auto operator<=>(const Storage&) const = default;
};

/// c = op(a) op(b) (+ c), `batch` times. a and b are bf16; c is bf16 or f32; sums are fp32.
struct Product {
  Gemm shape;
  int batch = 1;
  Storage a{}, b{}, c{};
};

/// Products by cuBLASLt on one stream. What a shape needs is made when it first appears; from then
/// on a product is one call that waits for nothing. Algorithms are chosen once for all threads of
/// the process that use a device.
class Gemms {
public:
  Gemms(int device, cudaStream_t stream, StreamMemoryPool& pool, GemmChoice choice);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  /// One product of whole matrices that lie without gaps.
  void multiply(const Gemm& shape, ArrayView a, ArrayView b, ArrayView c);
  void multiply(const Product& product, ArrayView a, ArrayView b, ArrayView c);

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace longhaul::nn
