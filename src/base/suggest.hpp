#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace longhaul {

/// The known word nearest to `word` by edit distance (insert, delete, replace, swap of
/// neighbours), if it is near enough to be a slip: at most a third of the word's length, plus one.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> known);

/// "Did you mean \"latency\"?" or, where nothing is near, "Known: a, b, c."
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace longhaul
