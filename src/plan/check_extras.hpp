#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// Whether some of it needs order of time: windows, far dependencies, sources, overlap, or a lane
/// or resource that chooses.
[[nodiscard]] bool needs_order_of_time(const Plan& plan);

/// Whether ranks play it in order of time: what needs that, but for slowdown alone, and several
/// compute lanes of one.
[[nodiscard]] bool needs_event_player(const Plan& plan);

/// Why the plan, or the stream of it, cannot be: one line.
[[nodiscard]] std::optional<Refusal> why_unsound(const Plan& plan, const Stream& stream = {});

enum class MayNotRun : std::uint8_t {
  optional,            ///< ops with a window, and what depends on them
  optional_or_sourced  ///< those, ops of lanes with a source, and what depends on them
};
/// By op: 1 for those that may not run.
[[nodiscard]] std::vector<std::uint8_t> ops_that_may_not_run(const Plan& plan, MayNotRun which);

/// Of what may start in an instant, lanes that are an order come first and all that goes by arrival
/// last, whatever the time: this is taken from the iteration of the former, and added to the
/// readiness, in ns, of the latter.
inline constexpr std::int64_t kFarApart = std::int64_t{1} << 62;

/// How an op is picked: by its lane where that chooses, else by the first resource that does.
[[nodiscard]] Serve serving_of(const Plan& plan, OpId id);

}  // namespace longhaul::plan
