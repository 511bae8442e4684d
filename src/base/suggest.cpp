#include "base/suggest.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace longhaul {
namespace {

/// Optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongestWord = 64;  // longer slips are rare, and the cost is quadratic
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = word.size() / 3 + 2;
  for (const std::string& candidate : known) {
    const std::size_t here = distance(word, candidate);
    if (here < best_distance) {
      best = candidate;
      best_distance = here;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  if (const auto near = nearest(word, known)) return fmt::format("Did you mean \"{}\"?", *near);
  return fmt::format("Known: {}.", fmt::join(known, ", "));
}

}  // namespace longhaul
