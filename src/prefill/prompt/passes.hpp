#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scenario/served_model.hpp"

namespace longhaul::prefill {

/// What a pass computes of one prompt: `tokens` after `context` that were computed before.
struct PassPart {
  std::int64_t context = 0;
  std::int64_t tokens = 0;
};

/// The time of a pass, the whole model on one GPU: that of all its tokens as one prompt, with the
/// attention that its parts have instead (FLOPs at attention_flops, or at the profile's highest
/// rate). Without dimensions attention is not known: a part after a context then takes what the
/// profile rises from its first token to its last, and never less than alone. At least the time of
/// the longest part alone. nullopt: a size is above the profile's last.
[[nodiscard]] std::optional<Duration> pass_time(const ServedModel& model,
                                                std::span<const PassPart> parts);

/// The most tokens, at most `most`, of a prompt of which `context` are computed that a pass of them
/// alone computes in `room`; 0: none.
[[nodiscard]] std::int64_t most_tokens(const ServedModel& model, std::int64_t context,
                                       std::int64_t most, Duration room);

/// Is a pass worth its time: are its FLOPs at least half of those that the GPU computes in it at
/// the profile's highest rate? Yes without dimensions.
[[nodiscard]] bool is_worth(const ServedModel& model, std::span<const PassPart> parts,
                            Duration time);

}  // namespace longhaul::prefill
