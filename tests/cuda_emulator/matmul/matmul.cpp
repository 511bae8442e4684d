#include "matmul/matmul.hpp"

#include <algorithm>
#include <vector>

#include <cuda_bf16.h>

#include "device_memory/memory.hpp"

namespace longhaul::on_host {
namespace {

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

/// Matrix `number` of a batch, op() done, as rows of f32 that lie one after the other.
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

}  // namespace

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

bool Product::in_memory(int device) const {
  const auto there = [device](const void* data, const on_host_layout& layout) {
    const auto piece = find_allocation(data);
    return piece && piece->kind == Memory::device && piece->device == device &&
           holds(*piece, data, layout.bytes());
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

}  // namespace longhaul::on_host
