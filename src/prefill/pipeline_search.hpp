#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prefill/bubbles/free_time.hpp"
#include "prefill/pipelines/pipelines.hpp"

namespace longhaul::prefill {

/// A pass of a prompt in chunks, or one that several prompts share.
struct PlacedPass {
  Duration start{};          ///< of its first stage
  Duration time{};           ///< of all stages
  std::int64_t tokens = 0;   ///< of this prompt
  std::int64_t in_pass = 0;  ///< of all prompts in it
  friend bool operator==(const PlacedPass&, const PlacedPass&) = default;
};

/// From the start of a pass to the end of its last stage.
[[nodiscard]] inline Duration pass_span(const ServedModel& model, Duration whole) {
  return whole + (model.stages - 1) * model.hop;
}

/// The earliest start of a pass from `from` to `limit` at which each stage i is idle from start +
/// (time of earlier stages) + i hop on for its whole time, inside one bubble less `guard`.
[[nodiscard]] std::optional<Duration> earliest_pass(FreeTime& free, const ServedModel& model,
                                                    const Pipeline& pipeline, Duration whole,
                                                    Duration from, Duration limit);

/// The passes of a prompt's tokens after `context` in chunks, each as early as it can be after the
/// one before: of ServedModel::chunk tokens, or of as many as fit where that is earlier (and worth
/// it, is_worth()). The first starts by `limit`; nullopt: some pass fits nowhere. Where something
/// else runs between iterations (FillRange::apart), all lie in one.
[[nodiscard]] std::optional<std::vector<PlacedPass>> earliest_chunks(
    FreeTime& free, const ServedModel& model, const Pipeline& pipeline, std::int64_t context,
    std::int64_t tokens, Duration from, Duration limit);

}  // namespace longhaul::prefill
