#pragma once

#include <charconv>
#include <cmath>
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

}  // namespace longhaul
