#pragma once

#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// The numbers of a view in the host's memory.
[[nodiscard]] inline std::span<float> floats(ArrayView view) {
  LONGHAUL_ASSERT(view.type == NumberType::f32, "type {}", static_cast<int>(view.type));
  return {reinterpret_cast<float*>(view.data), view.count};
}

[[nodiscard]] inline std::span<std::int32_t> integers(ArrayView view) {
  LONGHAUL_ASSERT(view.type == NumberType::i32, "type {}", static_cast<int>(view.type));
  return {reinterpret_cast<std::int32_t*>(view.data), view.count};
}

[[nodiscard]] inline std::span<std::uint16_t> halves(ArrayView view) {
  LONGHAUL_ASSERT(view.type == NumberType::bf16, "type {}", static_cast<int>(view.type));
  return {reinterpret_cast<std::uint16_t*>(view.data), view.count};
}

/// How many rows of `width` a view has.
[[nodiscard]] inline std::size_t rows_of(ArrayView view, int width) {
  LONGHAUL_ASSERT(width > 0 && view.count % to_size(width) == 0, "{} numbers, rows of {}",
                  view.count, width);
  return view.count / to_size(width);
}

}  // namespace longhaul::nn
