#include "scenario/served_model.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul {

std::int64_t ServedDimensions::layer_matrices() const {
  const std::int64_t width = hidden;
  const std::int64_t queries = std::int64_t{heads} * head_size;
  const std::int64_t keys = std::int64_t{kv_heads} * head_size;
  return width * (2 * queries + 2 * keys) + 3 * width * intermediate;
}

std::int64_t ServedDimensions::parameters() const {
  const std::int64_t embedding = std::int64_t{vocabulary} * hidden;
  return layers * (layer_matrices() + 2 * std::int64_t{hidden}) + hidden +
         (tied ? 1 : 2) * embedding;
}

Bytes ServedDimensions::kv(std::int64_t tokens) const {
  return Bytes{2 * (2 * std::int64_t{layers} * kv_heads * head_size) * tokens};
}

double ServedDimensions::attention_flops(std::int64_t context, std::int64_t tokens) const {
  const auto before = static_cast<double>(context), count = static_cast<double>(tokens);
  return 2.0 * layers * (2 * before * count + count * count) * heads * head_size;
}

Bytes ServedDimensions::transient(std::int64_t tokens) const {
  const std::int64_t wide = std::max(intermediate, 2 * heads * head_size);
  return Bytes{2 * tokens * (2 * std::int64_t{hidden} + 2 * wide)};
}

double ServedDimensions::flops(std::int64_t tokens) const {
  const auto count = static_cast<double>(tokens);
  const double matrices = 2.0 * static_cast<double>(layers * layer_matrices()) * count;
  return matrices + attention_flops(0, tokens) + 2.0 * vocabulary * hidden;
}

std::optional<Duration> ServedModel::time(std::int64_t tokens) const {
  if (profile.empty()) {
    const double seconds = dimensions->flops(tokens) / achieved_flops;
    return std::max(floor, Duration{std::llround(seconds * 1e9)});
  }
  if (tokens <= profile.front().tokens) return profile.front().time;
  const auto above = std::ranges::lower_bound(profile, tokens, {}, &PrefillPoint::tokens);
  if (above == profile.end()) return std::nullopt;
  const PrefillPoint& high = *above;
  const PrefillPoint& low = *std::prev(above);
  // To the nearest, half a nanosecond up, where times fall too: floor((2 rise + span) / (2 span)).
  const auto rounded = [](auto rise, auto span) {
    const auto twice = 2 * rise + span;
    auto steps = twice / (2 * span);
    if (twice % (2 * span) < 0) --steps;
    return Duration{static_cast<std::int64_t>(steps)};
  };
  __extension__ using Wide = __int128;
  const std::int64_t span = high.tokens - low.tokens, higher = (high.time - low.time).count();
  constexpr std::int64_t kNarrow = std::int64_t{1} << 30;  // of both: products fit into 62 bits
  if (span < kNarrow && higher < kNarrow && higher > -kNarrow)
    return low.time + rounded(higher * (tokens - low.tokens), span);
  return low.time + rounded(static_cast<Wide>(higher) * (tokens - low.tokens), Wide{span});
}

double ServedModel::highest_flops() const {
  if (!dimensions) return 0;
  if (profile.empty()) return achieved_flops;
  double rate = 0;  // FLOPs a nanosecond
  // A convex count over a linear time is largest at an end of each part.
  for (const PrefillPoint& point : profile)
    rate =
        std::max(rate, dimensions->flops(point.tokens) / static_cast<double>(point.time.count()));
  return rate * 1e9;
}

std::optional<double> ServedModel::useful_ns(std::int64_t tokens) const {
  if (!dimensions) return std::nullopt;
  return dimensions->flops(tokens) / (highest_flops() / 1e9);
}

const std::vector<ServedPreset>& served_presets() {
  static const std::vector<ServedPreset> presets{
      {"llama3-1b", {16, 2048, 8192, 32, 8, 64, 128'256, true}},
      {"llama3-8b", {32, 4096, 14'336, 32, 8, 128, 128'256, false}},
      {"mistral-7b", {32, 4096, 14'336, 32, 8, 128, 32'000, false}},
      {"phi3-mini", {32, 3072, 8192, 32, 32, 96, 32'064, false}},
      {"gemma-2b", {18, 2048, 16'384, 8, 1, 256, 256'000, true}},
  };
  return presets;
}

}  // namespace longhaul
