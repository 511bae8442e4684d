#include <cmath>
#include <random>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using longhaul::testing::BufferOf;
using longhaul::testing::StreamOf;

struct Shape {
  int m, n, k, batch;
  cublasOperation_t a, b;
  float alpha, beta;
};

/// A column-major matrix in memory that is `pad` numbers longer than it must be.
struct Matrix {
  int rows, columns, leading, step;
  Matrix(int m, int n, int pad) : rows{m}, columns{n}, leading{m + pad}, step{leading * n + pad} {}
  [[nodiscard]] std::size_t at(int batch, int row, int column) const {
    return static_cast<std::size_t>(batch * step + column * leading + row);
  }
  [[nodiscard]] std::size_t size(int batch) const { return static_cast<std::size_t>(batch * step); }
  [[nodiscard]] cublasLtMatrixLayout_t layout(cudaDataType_t type, int batch) const {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), leading),
              CUBLAS_STATUS_SUCCESS);
    const std::int64_t wide = step;
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                     sizeof batch);
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &wide,
                                     sizeof wide);
    return layout;
  }
};

template <typename T>
std::vector<T> draw(std::size_t count, std::mt19937& random) {
  std::vector<T> values(count);
  for (T& value : values)
    value = static_cast<T>(std::uniform_real_distribution<float>{-1, 1}(random));
  return values;
}

template <typename In, typename Out>
void compare(const Shape& shape, cudaDataType_t in_type, cudaDataType_t out_type, float tolerance) {
  std::mt19937 random{7};
  const bool turn_a = shape.a == CUBLAS_OP_T, turn_b = shape.b == CUBLAS_OP_T;
  const Matrix a{turn_a ? shape.k : shape.m, turn_a ? shape.m : shape.k, 3};
  const Matrix b{turn_b ? shape.n : shape.k, turn_b ? shape.k : shape.n, 1};
  const Matrix c{shape.m, shape.n, 2};
  const auto a_values = draw<In>(a.size(shape.batch), random);
  const auto b_values = draw<In>(b.size(shape.batch), random);
  auto c_values = draw<Out>(c.size(shape.batch), random);
  if (shape.beta == 0)  // must not be read
    for (Out& value : c_values) value = static_cast<Out>(NAN);
  const longhaul::testing::BufferOf<In> a_there{a_values}, b_there{b_values};
  const longhaul::testing::BufferOf<Out> c_there{c_values};
  const longhaul::testing::StreamOf stream;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &shape.a,
                                 sizeof shape.a);
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &shape.b,
                                 sizeof shape.b);
  const auto a_layout = a.layout(in_type, shape.batch), b_layout = b.layout(in_type, shape.batch);
  const auto c_layout = c.layout(out_type, shape.batch);
  ASSERT_EQ(cublasLtMatmul(handle, description, &shape.alpha, a_there.get(), a_layout,
                           b_there.get(), b_layout, &shape.beta, c_there.get(), c_layout,
                           c_there.get(), c_layout, nullptr, nullptr, 0, stream.get()),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  const auto got = c_there.read();
  for (int batch = 0; batch < shape.batch; ++batch)
    for (int row = 0; row < shape.m; ++row)
      for (int column = 0; column < shape.n; ++column) {
        double sum = 0;
        for (int k = 0; k < shape.k; ++k)
          sum += static_cast<double>(a_values[turn_a ? a.at(batch, k, row) : a.at(batch, row, k)]) *
                 static_cast<double>(
                     b_values[turn_b ? b.at(batch, column, k) : b.at(batch, k, column)]);
        sum *= static_cast<double>(shape.alpha);
        const std::size_t at = c.at(batch, row, column);
        if (shape.beta != 0)
          sum += static_cast<double>(shape.beta) * static_cast<double>(c_values[at]);
        ASSERT_NEAR(static_cast<double>(got[at]), sum,
                    static_cast<double>(tolerance) * (1 + std::abs(sum)));
      }
  for (const auto layout : {a_layout, b_layout, c_layout}) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
}

TEST(Matmul, IsWhatTheSumsSay) {
  for (const auto a : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (const auto b : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (const float beta : {0.0F, 1.0F}) {
        compare<float, float>({5, 7, 9, 1, a, b, 1, beta}, CUDA_R_32F, CUDA_R_32F, 1e-5F);
        compare<__nv_bfloat16, float>({8, 3, 33, 3, a, b, 0.5F, beta}, CUDA_R_16BF, CUDA_R_32F,
                                      1e-5F);
        compare<__nv_bfloat16, __nv_bfloat16>({4, 6, 17, 2, a, b, 1, beta}, CUDA_R_16BF,
                                              CUDA_R_16BF, 5e-3F);
      }
}

/// A product of 8 x 8 numbers by the algorithm that was proposed first for `promised` bytes of
/// alignment and 1024 bytes of workspace.
class Promised {
public:
  explicit Promised(std::uint32_t promised) {
    EXPECT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulPreferenceCreate(&preference_);
    const std::uint64_t workspace = 1024;
    cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &workspace, sizeof workspace);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      EXPECT_EQ(
          cublasLtMatmulPreferenceSetAttribute(preference_, which, &promised, sizeof promised),
          CUBLAS_STATUS_SUCCESS);
  }
  Promised(const Promised&) = delete;
  Promised& operator=(const Promised&) = delete;
  ~Promised() {
    cublasLtMatrixLayoutDestroy(layout_);
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtMatmulDescDestroy(description_);
    cublasLtDestroy(handle_);
  }
  cublasStatus_t multiply(const float* a, float* c, void* workspace, std::size_t bytes) const {
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(handle_, description_, layout_, layout_, layout_,
                                             layout_, preference_, 1, &result, &found),
              CUBLAS_STATUS_SUCCESS);
    const float one = 1, none = 0;
    return cublasLtMatmul(handle_, description_, &one, a, layout_, a, layout_, &none, c, layout_, c,
                          layout_, &result.algo, workspace, bytes, nullptr);
  }

private:
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatrixLayout_t layout_ = Matrix{8, 8, 0}.layout(CUDA_R_32F, 1);
};

TEST(Matmul, HoldsCallersToTheirPromises) {
  const longhaul::testing::BufferOf<float> a{std::vector<float>(80, 1.0F)},
      c{std::vector<float>(80)};
  const longhaul::testing::BufferOf<float> space{std::vector<float>(256)};
  const auto last = [&](const Promised& how, std::size_t from_a, std::size_t from_c,
                        std::size_t bytes) {
    return how.multiply(a.get() + from_a, c.get() + from_c, space.get(), bytes);
  };
  EXPECT_EQ(last(Promised{16}, 4, 8, 1024), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(last(Promised{4}, 1, 3, 1024), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(last(Promised{16}, 1, 0, 1024), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(last(Promised{16}, 0, 2, 1024), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(last(Promised{16}, 0, 0, 1023), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(Promised{16}.multiply(a.get(), c.get(), space.get() + 1, 1020),
            CUBLAS_STATUS_INVALID_VALUE);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  cublasLtMatmulDesc_t description = nullptr;
  EXPECT_EQ(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_16BF),
            CUBLAS_STATUS_NOT_SUPPORTED);
  cublasLtMatrixLayout_t layout = nullptr;
  EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 4, 4, 3), CUBLAS_STATUS_INVALID_VALUE);
  const Matrix two{2, 2, 0}, three{3, 3, 0};
  const auto small = two.layout(CUDA_R_32F, 1), large = three.layout(CUDA_R_32F, 1);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 1;
  ASSERT_EQ(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulAlgoGetHeuristic(nullptr, description, small, large, small, small,
                                           nullptr, 1, &result, &found),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(found, 0);
  cublasLtMatrixLayoutDestroy(small);
  cublasLtMatrixLayoutDestroy(large);
  cublasLtMatmulDescDestroy(description);
}

}  // namespace
