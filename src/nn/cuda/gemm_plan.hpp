#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cublasLt.h>

#include "cuda/check_cublas.hpp"
#include "cuda/handles.hpp"
#include "nn/cuda/gemm.hpp"

namespace longhaul::nn {

/// All that decides how a product is best made.
struct GemmKey {
  int m, n, k, batch;
  bool transpose_a, transpose_b, accumulate;
  NumberType c_type;
  Storage a, b, c;
  std::uint32_t a_alignment, b_alignment, c_alignment;  ///< bytes
  auto operator<=>(const GemmKey&) const = default;

  [[nodiscard]] static GemmKey of(const Product& product, ArrayView a, ArrayView b, ArrayView c);
};

/// `kDestroy` of cuBLASLt as an Owner wants it.
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
cudaError_t destroyed(Handle handle) {
  return kDestroy(handle) == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}
template <typename Handle, cublasStatus_t (*kDestroy)(Handle)>
using CublasOwner = cuda::Owner<Handle, nullptr, destroyed<Handle, kDestroy>>;

/// cuBLASLt is column-major: what it sees of a row-major matrix is its transpose, and so it is
/// given c^T = op(b)^T op(a)^T: b is its A, a is its B.
class GemmPlan {
public:
  explicit GemmPlan(const GemmKey& key);

  struct Operands {
    const void *a, *b;
    const void* before;  ///< what is added to: c
    void* to;
  };
  /// Returns what cuBLASLt says.
  [[nodiscard]] cublasStatus_t run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& algorithm,
                                   const Operands& operands, const cuda::DeviceBuffer& workspace,
                                   cudaStream_t stream) const;
  /// The library's proposals, best first; throws Error where it has nothing.
  [[nodiscard]] std::vector<cublasLtMatmulAlgo_t> proposals(cublasLtHandle_t handle,
                                                            std::size_t workspace_bytes,
                                                            int most) const;
  [[nodiscard]] const GemmKey& key() const { return key_; }
  /// Bytes from the first to the last number of c.
  [[nodiscard]] std::size_t output_bytes() const;

  cublasLtMatmulAlgo_t algorithm{};

private:
  using Layout = CublasOwner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
  using Description = CublasOwner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
  GemmKey key_;
  Description description_;
  Layout a_, b_, c_;
};

}  // namespace longhaul::nn
