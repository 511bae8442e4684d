#include <algorithm>
#include <cstdio>
#include <cstring>

#include "activity/activity.hpp"
#include "device.hpp"
#include "device_memory/memory.hpp"
#include "matmul/matmul.hpp"

namespace {

using namespace longhaul::on_host;

/// Conditions for which an algorithm was proposed.
struct Needs {
  std::uint64_t workspace = 0;
  std::uint32_t a = 0, b = 0, c = 0, d = 0;  ///< alignments
};

/// No algorithm (the library chooses one at each call): it needs nothing that is not there.
Needs needs_of(const cublasLtMatmulAlgo_t* algorithm) {
  Needs needs;
  if (algorithm != nullptr) std::memcpy(&needs, algorithm->data, sizeof needs);
  return needs;
}

void write_needs(const Needs& needs, cublasLtMatmulAlgo_t& algorithm) {
  static_assert(sizeof needs <= sizeof algorithm.data);
  std::memcpy(algorithm.data, &needs, sizeof needs);
}

/// Is each matrix of the batch aligned so?
bool is_aligned(const void* data, const on_host_layout& layout, std::uint32_t alignment) {
  if (alignment == 0) return true;
  const auto step = static_cast<std::uint64_t>(layout.step) * layout.number_bytes();
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0 &&
         (layout.batch == 1 || step % alignment == 0);
}

bool meets(const Needs& needs, const longhaul::on_host::Product& product) {
  return is_aligned(product.a, product.a_layout, needs.a) &&
         is_aligned(product.b, product.b_layout, needs.b) &&
         (product.beta == 0 || is_aligned(product.c, product.c_layout, needs.c)) &&
         is_aligned(product.d, product.d_layout, needs.d);
}

bool has_workspace(const Needs& needs, const void* workspace, std::size_t bytes, int device) {
  if (needs.workspace == 0) return true;
  const auto piece = longhaul::on_host::find_allocation(workspace);
  return needs.workspace <= bytes && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0 &&
         piece && piece->kind == longhaul::on_host::Memory::device && piece->device == device &&
         longhaul::on_host::holds(*piece, workspace, bytes);
}

cublasStatus_t refuse(const char* why) {
  std::fprintf(stderr, "cuda_on_host: cublasLtMatmul: %s\n", why);
  return CUBLAS_STATUS_INVALID_VALUE;
}

template <typename T>
cublasStatus_t set(T& member, const void* value, std::size_t bytes) {
  if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t make(T** handle) {
  if (longhaul::on_host::device_count() == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new T{};
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t destroy(T* handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "CUBLAS_STATUS_?";
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }
std::size_t cublasLtGetVersion() { return 130000; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const cublasStatus_t status = make(handle);
  if (status == CUBLAS_STATUS_SUCCESS) (*handle)->device = longhaul::on_host::current_device();
  return status;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make(description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return destroy(description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(description->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(description->b, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new on_host_layout{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return set(layout->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return set(layout->step, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(preference->a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(preference->b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(preference->c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(preference->d, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

// Two proposals, so that a choice between them is made; they compute the same. The first needs all
// of the workspace, both the alignments that were promised.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const longhaul::on_host::Product product{*description, 1,       0,       *a,      *b,     *c,
                                           *d,           nullptr, nullptr, nullptr, nullptr};
  *found = 0;
  if (!product.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  for (; *found < std::min(asked, 2); ++*found) {
    const std::uint64_t needed = *found == 0 ? preference->workspace : 0;
    results[*found] = {};
    results[*found].workspaceSize = needed;
    write_needs({needed, preference->a, preference->b, preference->c, preference->d},
                results[*found].algo);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const longhaul::on_host::Product product{*description,
                                           *static_cast<const float*>(alpha),
                                           *static_cast<const float*>(beta),
                                           *a_layout,
                                           *b_layout,
                                           *c_layout,
                                           *d_layout,
                                           a,
                                           b,
                                           c,
                                           d};
  const auto queue = longhaul::on_host::queue_of(stream);
  if (!queue || longhaul::on_host::sticky_error() != cudaSuccess)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (handle->device != queue->device() || handle->device != longhaul::on_host::current_device())
    return refuse("the handle, the stream and the thread are not of one device");
  if (!product.fits() || !product.in_memory(handle->device)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!meets(needs_of(algo), product)) return refuse("an operand is less aligned than promised");
  if (!has_workspace(needs_of(algo), workspace, workspace_bytes, handle->device))
    return refuse("the workspace is too small, not aligned to 256 bytes, or not the device's");
  queue->put(longhaul::on_host::recorded(
      longhaul::on_host::Activity::kernel, "product_of_the_emulator", [product] {
        for (std::int32_t number = 0; number < product.d_layout.batch; ++number)
          product.multiply(number);
      }));
  return CUBLAS_STATUS_SUCCESS;
}
