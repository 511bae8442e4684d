#include "prefill/prompt/passes.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::prefill {
namespace {

/// Attention of the parts beyond that of their tokens as one prompt, in ns; may be negative.
double attention_beside(const ServedModel& model, std::span<const PassPart> parts,
                        std::int64_t tokens) {
  double flops = -model.dimensions->attention_flops(0, tokens);
  for (const PassPart& part : parts)
    flops += model.dimensions->attention_flops(part.context, part.tokens);
  const double rate = model.attention_flops > 0 && !model.profile.empty() ? model.attention_flops
                                                                          : model.highest_flops();
  return flops * 1e9 / rate;
}

}  // namespace

std::optional<Duration> pass_time(const ServedModel& model, std::span<const PassPart> parts) {
  std::int64_t tokens = 0;
  Duration longest{};
  for (const PassPart& part : parts) {
    tokens += part.tokens;
    const auto alone = model.time(part.tokens);
    if (!alone) return std::nullopt;
    longest = std::max(longest, *alone);
  }
  auto time = model.time(tokens);
  if (!time || (parts.size() == 1 && parts.front().context == 0)) return time;
  if (model.dimensions)
    return std::max(longest,
                    *time + Duration{std::llround(attention_beside(model, parts, tokens))});
  for (const PassPart& part : parts) {
    if (part.context == 0) continue;
    const auto before = model.time(part.context), after = model.time(part.context + part.tokens);
    if (!before || !after) return std::nullopt;
    *time += std::max(Duration{}, *after - *before - *model.time(part.tokens));
  }
  return std::max(longest, *time);
}

std::int64_t most_tokens(const ServedModel& model, std::int64_t context, std::int64_t most,
                         Duration room) {
  const auto fits = [&](std::int64_t tokens) {
    const PassPart part{context, tokens};
    const auto time = pass_time(model, {&part, 1});
    return time && *time <= room;
  };
  if (most < 1 || !fits(1)) return 0;
  if (fits(most)) return most;
  std::int64_t low = 1, high = most;  // fits(low), not fits(high)
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

bool is_worth(const ServedModel& model, std::span<const PassPart> parts, Duration time) {
  if (!model.dimensions) return true;
  double flops = 0;
  for (const PassPart& part : parts)
    flops += 2.0 * model.dimensions->layers *
                 static_cast<double>(model.dimensions->layer_matrices() * part.tokens) +
             model.dimensions->attention_flops(part.context, part.tokens);
  return 2 * flops >= model.highest_flops() * static_cast<double>(time.count()) / 1e9;
}

}  // namespace longhaul::prefill
