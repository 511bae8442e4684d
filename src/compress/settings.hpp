#pragma once

#include <cstdint>
#include <string_view>

#include "base/listed_enum.hpp"

namespace longhaul::compress {

#define LONGHAUL_SPARSIFIER_METHODS(X) \
  X(block, "block") X(threshold, "threshold") X(topk, "topk") X(randomk, "randomk")
LONGHAUL_LISTED_ENUM(Method, LONGHAUL_SPARSIFIER_METHODS);

/// How the places of the numbers that are kept travel: 4 bytes a number (StellaTrain's COO), 2
/// bytes a number, or the gap before each block.
#define LONGHAUL_INDEX_FORMATS(X) X(coo32, "coo32") X(coo16, "coo16") X(gaps, "gaps")
LONGHAUL_LISTED_ENUM(IndexFormat, LONGHAUL_INDEX_FORMATS);

#define LONGHAUL_VALUE_FORMATS(X) X(f32, "f32") X(bf16, "bf16") X(int8, "int8")
LONGHAUL_LISTED_ENUM(ValueFormat, LONGHAUL_VALUE_FORMATS);

/// What is kept of a vector of numbers, and how it travels.
struct Settings {
  Method method = Method::block;
  double keep = 0.01;  ///< of all numbers, in (0, 1]
  int block = 16;      ///< numbers: 1, 2, 4, 8 or 16; 1 of `topk`
  ValueFormat values = ValueFormat::f32;
  IndexFormat index = IndexFormat::gaps;
  std::uint64_t seed = 1;  ///< of `randomk`
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// The most numbers that a vector may have: their places fit 32 bits.
inline constexpr std::int64_t kMostNumbers = 0xffff'0000;

/// "1%" or "0.01". Throws Error, called `what` ("--keep"), unless it is above 0 and at most 1.
[[nodiscard]] double parse_keep(std::string_view what, std::string_view text);

/// Throws Error where settings cannot be: a block of 3, `topk` of blocks.
void check(const Settings& settings);

}  // namespace longhaul::compress
