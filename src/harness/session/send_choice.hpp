#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/options.hpp"
#include "engine/payloads/sent_sizes.hpp"
#include "engine/ranks.hpp"
#include "harness/options/pipeline_options.hpp"
#include "plan/plan.hpp"

namespace longhaul::harness {

struct PipelineInput;

/// What a run really sends of its messages, and why not all of it.
struct SendChoice {
  engine::SendCaps caps;
  engine::SentSizes sizes;  ///< the largest of all schedules
  std::string why;          ///< where neither asked for nor whole
};

/// Caps of a run with those plans: as `asked`; otherwise 64 KiB where links are emulated, and whole
/// messages over the network as it is, as far as payloads of a rank take no more than `room` (and a
/// message no more than 1 GiB, a vector no more than 256 MiB). Throws Error where what was asked
/// for takes more.
[[nodiscard]] SendChoice choose_caps(const std::vector<const Plan*>& plans,
                                     const std::optional<Bytes>& asked, engine::Emulation emulation,
                                     Bytes room);

/// Collective: the same on all ranks, in half of each host's memory. Payloads in a GPU's memory are
/// whole only where that is asked for; real layers send whole tensors.
[[nodiscard]] SendChoice choose_caps(const engine::Ranks& ranks, const PipelineInput& input,
                                     const PipelineSettings& settings);

/// "sent 64 KiB of 64 MiB", or "64 MiB sent whole"; of collectives likewise, where there are any.
[[nodiscard]] std::string sent_text(const engine::SentSizes& sizes);
/// Of record and trace.
[[nodiscard]] nlohmann::ordered_json sent_json(const SendChoice& choice);

}  // namespace longhaul::harness
