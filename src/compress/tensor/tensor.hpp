#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/listed_enum.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::compress {

/// A tensor that one stage of a pipeline sends another: all its numbers (ValueFormat), or the
/// largest of them, as bf16, with their places as gaps.
#define LONGHAUL_TENSOR_FORMATS(X) X(f32, "f32") X(bf16, "bf16") X(int8, "int8") X(topk, "topk")
LONGHAUL_LISTED_ENUM(TensorFormat, LONGHAUL_TENSOR_FORMATS);

struct TensorCoding {
  TensorFormat format = TensorFormat::f32;
  double keep = 0.1;  ///< of the numbers, where `topk`
};

/// The payload of a tensor: that of values alone (write_values), of `topk` that of a SparseSet. The
/// numbers become what a receiver decodes, 0 where `topk` leaves them out. Throws NotFinite.
[[nodiscard]] std::vector<std::byte> encode_tensor(std::span<float> numbers,
                                                   const TensorCoding& coding);

/// Takes nothing on trust, as decode(): `expected` has the count. A payload of `topk` keeps as many
/// numbers as the coding says.
[[nodiscard]] std::vector<float> decode_tensor(std::span<const std::byte> payload,
                                               const TensorCoding& coding,
                                               const Expected& expected);

/// That a payload of so many numbers may have.
[[nodiscard]] std::size_t most_tensor_bytes(std::size_t count, const TensorCoding& coding);

}  // namespace longhaul::compress
