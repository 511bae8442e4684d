#include <algorithm>
#include <cstring>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>

#include "device.hpp"
#include "memory.hpp"

// cublasLtMatmul after its manual: D = alpha op(A) op(B) + beta C, column-major, in fp32. C is not
// read where beta is 0. Types: A and B of one type, C and D of one type, each bf16 or f32.

struct on_host_cublas {};
struct on_host_preference {};
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

namespace {

using namespace longhaul::on_host;

float read(const on_host_layout& layout, const void* data, std::int64_t at) {
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]);
}

void write(const on_host_layout& layout, void* data, std::int64_t at, float value) {
  if (layout.type == CUDA_R_32F)
    static_cast<float*>(data)[at] = value;
  else
    static_cast<__nv_bfloat16*>(data)[at] = __float2bfloat16_rn(value);
}

/// Matrix `number` of a batch, op() done, as rows of f32 that lie one behind the other.
std::vector<float> rows_of(const on_host_layout& layout, const void* data, std::int32_t number,
                           cublasOperation_t operation) {
  const auto height = static_cast<std::int64_t>(layout.rows);
  const auto width = static_cast<std::int64_t>(layout.columns);
  const bool turned = operation == CUBLAS_OP_T;
  std::vector<float> rows(layout.rows * layout.columns);
  for (std::int64_t column = 0; column < width; ++column)
    for (std::int64_t row = 0; row < height; ++row) {
      const std::int64_t to = turned ? column * height + row : row * width + column;
      rows[static_cast<std::size_t>(to)] =
          read(layout, data, number * layout.step + column * layout.leading + row);
    }
  return rows;
}

struct Product {
  on_host_matmul how;
  float alpha, beta;
  on_host_layout a_layout, b_layout, c_layout, d_layout;
  const void *a, *b, *c;
  void* d;

  [[nodiscard]] std::uint64_t inner() const {
    return how.a == CUBLAS_OP_N ? a_layout.columns : a_layout.rows;
  }
  [[nodiscard]] bool fits() const;
  [[nodiscard]] bool in_memory() const;
  void multiply(std::int32_t number) const;
};

bool Product::fits() const {
  const std::uint64_t m = how.a == CUBLAS_OP_N ? a_layout.rows : a_layout.columns;
  const std::uint64_t n = how.b == CUBLAS_OP_N ? b_layout.columns : b_layout.rows;
  const std::uint64_t k = how.b == CUBLAS_OP_N ? b_layout.rows : b_layout.columns;
  const auto same = [](const on_host_layout& x, const on_host_layout& y) {
    return x.type == y.type && x.rows == y.rows && x.columns == y.columns && x.batch == y.batch;
  };
  return k == inner() && d_layout.rows == m && d_layout.columns == n && same(c_layout, d_layout) &&
         a_layout.type == b_layout.type && a_layout.batch == d_layout.batch &&
         b_layout.batch == d_layout.batch;
}

bool Product::in_memory() const {
  const auto there = [](const void* data, const on_host_layout& layout) {
    const auto piece = find_allocation(data);
    return piece && piece->kind == Memory::device && holds(*piece, data, layout.bytes());
  };
  return there(a, a_layout) && there(b, b_layout) && there(d, d_layout) &&
         (beta == 0 || there(c, c_layout));
}

void Product::multiply(std::int32_t number) const {
  const std::vector<float> left = rows_of(a_layout, a, number, how.a);
  const std::vector<float> right = rows_of(b_layout, b, number, how.b);
  const std::size_t m = d_layout.rows, n = d_layout.columns, depth = inner();
  std::vector<float> sums(n);
  for (std::size_t row = 0; row < m; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::size_t k = 0; k < depth; ++k) {
      const float factor = left[row * depth + k];
      const float* const others = right.data() + k * n;
      for (std::size_t column = 0; column < n; ++column) sums[column] += factor * others[column];
    }
    for (std::size_t column = 0; column < n; ++column) {
      const auto at = [&](const on_host_layout& layout) {
        return number * layout.step + static_cast<std::int64_t>(column) * layout.leading +
               static_cast<std::int64_t>(row);
      };
      const float before = beta == 0 ? 0 : beta * read(c_layout, c, at(c_layout));
      write(d_layout, d, at(d_layout), alpha * sums[column] + before);
    }
  }
}

template <typename T>
cublasStatus_t set(T& member, const void* value, std::size_t bytes) {
  if (bytes != sizeof member) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t make(T** handle) {
  if (device_count() == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
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

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle); }
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
  return set(attribute == CUBLASLT_MATMUL_DESC_TRANSA ? description->a : description->b, value,
             bytes);
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
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(layout->batch, value, bytes);
  return set(layout->step, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void*, std::size_t bytes) {
  const std::size_t due = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4;
  return bytes == due ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// Two proposals, so that a choice between them is made; they compute alike.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int asked,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const Product product{*description, 1, 0, *a, *b, *c, *d, nullptr, nullptr, nullptr, nullptr};
  *found = 0;
  if (!product.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  for (; *found < std::min(asked, 2); ++*found) {
    results[*found] = {};
    results[*found].algo.data[0] = static_cast<std::uint64_t>(*found) + 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*,
                              std::size_t, cudaStream_t stream) {
  const Product product{*description,
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
  if (!product.fits() || !product.in_memory()) return CUBLAS_STATUS_INVALID_VALUE;
  const auto queue = queue_of(stream);
  if (!queue || sticky_error() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  queue->put([product] {
    for (std::int32_t number = 0; number < product.d_layout.batch; ++number)
      product.multiply(number);
  });
  return CUBLAS_STATUS_SUCCESS;
}
