#include "nn/cuda/gemm_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::nn {
namespace {

constexpr std::uint32_t kMostAlignment = 256;

/// The largest power of two, up to 256, that divides the address of each matrix of a batch.
std::uint32_t alignment_of(ArrayView view, const Storage& storage, int batch) {
  auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(view.data));
  if (batch > 1) bits |= static_cast<std::uint64_t>(storage.step) * bytes_of(view.type);
  bits |= kMostAlignment;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

cudaDataType_t data_type(NumberType type) {
  return type == NumberType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtMatmulDesc_t describe(bool transpose_a, bool transpose_b) {
  cublasLtMatmulDesc_t description = nullptr;
  cuda::check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transpose) {
    const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    cuda::check(
        cublasLtMatmulDescSetAttribute(description, attribute, &operation, sizeof operation));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a);
  set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b);
  return description;
}

/// Layout of a row-major matrix of `rows` by `columns`, as stored.
cublasLtMatrixLayout_t lay_out(NumberType type, int rows, int columns, const Storage& storage,
                               int batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  cuda::check(cublasLtMatrixLayoutCreate(&layout, data_type(type),
                                         static_cast<std::uint64_t>(columns),
                                         static_cast<std::uint64_t>(rows), storage.row_length));
  if (batch == 1) return layout;
  const std::int32_t count = batch;
  const std::int64_t step = storage.step;
  cuda::check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof count));
  cuda::check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &step, sizeof step));
  return layout;
}

using Preference = CublasOwner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

Preference make_preference(const GemmKey& key, std::uint64_t workspace_bytes) {
  cublasLtMatmulPreference_t made = nullptr;
  cuda::check(cublasLtMatmulPreferenceCreate(&made));
  Preference preference{made};
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    cuda::check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.c_alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment);
  return preference;
}

}  // namespace

GemmKey GemmKey::of(const Product& product, ArrayView a, ArrayView b, ArrayView c) {
  const Gemm& shape = product.shape;
  LONGHAUL_ASSERT(a.type == NumberType::bf16 && b.type == NumberType::bf16,
                  "a product of types {} and {}", static_cast<int>(a.type),
                  static_cast<int>(b.type));
  return {shape.m,
          shape.n,
          shape.k,
          product.batch,
          shape.transpose_a,
          shape.transpose_b,
          shape.accumulate,
          c.type,
          product.a,
          product.b,
          product.c,
          alignment_of(a, product.a, product.batch),
          alignment_of(b, product.b, product.batch),
          alignment_of(c, product.c, product.batch)};
}

GemmPlan::GemmPlan(const GemmKey& key)
    : key_{key},
      description_{describe(key.transpose_b, key.transpose_a)},
      a_{lay_out(NumberType::bf16, key.transpose_a ? key.k : key.m, key.transpose_a ? key.m : key.k,
                 key.a, key.batch)},
      b_{lay_out(NumberType::bf16, key.transpose_b ? key.n : key.k, key.transpose_b ? key.k : key.n,
                 key.b, key.batch)},
      c_{lay_out(key.c_type, key.m, key.n, key.c, key.batch)} {}

cublasStatus_t GemmPlan::run(cublasLtHandle_t handle, const cublasLtMatmulAlgo_t& chosen,
                             const Operands& operands, const cuda::DeviceBuffer& workspace,
                             cudaStream_t stream) const {
  const float one = 1;
  const float kept = key_.accumulate ? 1 : 0;
  return cublasLtMatmul(handle, description_.get(), &one, operands.b, b_.get(), operands.a,
                        a_.get(), &kept, operands.before, c_.get(), operands.to, c_.get(), &chosen,
                        workspace.data(), workspace.bytes(), stream);
}

std::vector<cublasLtMatmulAlgo_t> GemmPlan::proposals(cublasLtHandle_t handle,
                                                      std::size_t workspace_bytes, int most) const {
  const Preference preference = make_preference(key_, workspace_bytes);
  std::vector<cublasLtMatmulHeuristicResult_t> results(to_size(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, description_.get(), b_.get(), a_.get(), c_.get(),
                                     c_.get(), preference.get(), most, results.data(), &found);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (status == CUBLAS_STATUS_SUCCESS)
    for (int i = 0; i < found; ++i)
      if (results[at(i)].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(results[at(i)].algo);
  if (algorithms.empty())
    throw Error{fmt::format("cuBLASLt has no algorithm for a product of {} x {} x {}, batch {} "
                            "({}). Use sizes that are multiples of 8, or another version.",
                            key_.m, key_.n, key_.k, key_.batch, cublasLtGetStatusName(status)),
                ExitCode::run_failed};
  return algorithms;
}

std::size_t GemmPlan::output_bytes() const {
  const std::int64_t last =
      (key_.batch - 1) * key_.c.step + (key_.m - 1) * key_.c.row_length + key_.n;
  return to_size(last) * bytes_of(key_.c_type);
}

}  // namespace longhaul::nn
