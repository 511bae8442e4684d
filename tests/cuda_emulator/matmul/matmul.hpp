#pragma once

#include <cstddef>
#include <cstdint>

#include <cublasLt.h>

// Products of cuBLASLt, on the host: cublaslt.cpp says what may be asked for.

/// The device that was current when the handle was made.
struct on_host_cublas {
  int device = 0;
};
struct on_host_preference {
  std::uint64_t workspace = 0;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  ///< least alignments, as the manual's defaults
};
struct on_host_matmul {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct on_host_layout {
  cudaDataType_t type = CUDA_R_32F;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, step = 0;
  std::int32_t batch = 1;

  [[nodiscard]] std::size_t number_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
  /// From the first to the last number of all matrices.
  [[nodiscard]] std::size_t bytes() const {
    const std::int64_t last = (batch - 1) * step +
                              (static_cast<std::int64_t>(columns) - 1) * leading +
                              static_cast<std::int64_t>(rows);
    return static_cast<std::size_t>(last) * number_bytes();
  }
};

namespace longhaul::on_host {

/// D = alpha op(A) op(B) + beta C, column-major, in fp32. C is not read where beta is 0. Types: A
/// and B of one type, C and D of one type, each bf16 or f32.
struct Product {
  on_host_matmul how;
  float alpha, beta;
  on_host_layout a_layout, b_layout, c_layout, d_layout;
  const void *a, *b, *c;
  void* d;

  /// Do the matrices fit each other?
  [[nodiscard]] bool fits() const;
  /// Do they lie in `device`'s memory?
  [[nodiscard]] bool in_memory(int device) const;
  /// Matrix `number` of the batch.
  void multiply(std::int32_t number) const;

private:
  [[nodiscard]] std::uint64_t inner() const {
    return how.a == CUBLAS_OP_N ? a_layout.columns : a_layout.rows;
  }
};

}  // namespace longhaul::on_host
