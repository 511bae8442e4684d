#pragma once

#include "base/index.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// A linear map: y[rows, out] = x[rows, in] W[out, in]^T.
struct Linear {
  ArrayView weights, gradient;
  int in = 0, out = 0;

  [[nodiscard]] std::size_t count() const { return to_size(in) * to_size(out); }
  void forward(TensorOps& math, int rows, ArrayView x, ArrayView y) const {
    math.gemm({rows, out, in, false, true, false}, x, weights, y);
  }
  /// y += x W^T: y holds the residual already.
  void forward_onto(TensorOps& math, int rows, ArrayView x, ArrayView y) const {
    math.gemm({rows, out, in, false, true, true}, x, weights, y);
  }
  void input_gradient(TensorOps& math, int rows, ArrayView dy, ArrayView dx) const {
    math.gemm({rows, in, out, false, false, false}, dy, weights, dx);
  }
  void weight_gradient(TensorOps& math, int rows, ArrayView dy, ArrayView x) const {
    math.gemm({out, in, rows, true, false, true}, dy, x, gradient);
  }
};

struct Norm {
  ArrayView weight, gradient;
  int width = 0;
};

}  // namespace longhaul::nn
