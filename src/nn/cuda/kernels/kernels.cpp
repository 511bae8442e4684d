#include "nn/cuda/kernels/kernels.hpp"

#include "base/error.hpp"

namespace longhaul::nn {

void expect_type(ArrayView view, NumberType type) {
  LONGHAUL_ASSERT(view.type == type, "numbers of type {} where {} was meant",
                  static_cast<int>(view.type), static_cast<int>(type));
}

}  // namespace longhaul::nn
