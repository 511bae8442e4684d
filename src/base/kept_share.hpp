#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace longhaul {

/// "1%" or "0.01" as a number; none where the text is neither.
[[nodiscard]] inline std::optional<double> kept_share_in(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !std::isfinite(value)) return std::nullopt;
  return percent ? value / 100 : value;
}

/// Of numbers that are kept: some, at most all.
[[nodiscard]] constexpr bool is_kept_share(double share) { return share > 0 && share <= 1; }

/// Numbers that may be kept together.
[[nodiscard]] constexpr bool is_kept_block(int numbers) {
  return numbers == 1 || numbers == 2 || numbers == 4 || numbers == 8 || numbers == 16;
}

/// A short last block counts as one.
[[nodiscard]] constexpr std::int64_t blocks_in(std::int64_t count, int block) {
  return (count + block - 1) / block;
}

/// max(1, floor(count keep / block)), all of them where keep is 1, none of nothing. A product that
/// is a whole number but for rounding (29% of 100) is taken as one.
[[nodiscard]] constexpr std::int64_t blocks_to_keep(std::int64_t count, double keep, int block) {
  const std::int64_t all = blocks_in(count, block);
  if (keep >= 1 || all == 0) return all;
  constexpr double kRounding = 1 + 1e-12;
  const double exact = static_cast<double>(count) * keep / block * kRounding;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(exact), 1, all);
}

/// Mean bytes of the gap between two blocks that are kept, 7 bits a byte, where each is kept with
/// probability `share`.
[[nodiscard]] inline double mean_gap_bytes(double share) {
  double bytes = 1;
  for (int more = 1; more < 5; ++more) bytes += std::pow(1 - share, std::pow(128.0, more));
  return bytes;
}

}  // namespace longhaul
