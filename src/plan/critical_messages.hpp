#pragma once

#include <optional>
#include <span>
#include <string>

#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// Messages on the critical path of a plan whose ops were bound as `times` says: back from the op
/// `last`, as far as what ended after `since`. A message counts once, and also where its send alone
/// is on the path, since the next one waited for the link that it held.
[[nodiscard]] int messages_on_critical_path(const Plan& plan, const OpTimes& times, OpId last,
                                            Duration since = Duration::min());
/// The same from the op that ends last.
[[nodiscard]] int messages_on_critical_path(const Plan& plan, const OpTimes& times);
/// Of a stream: between two starts of `op`, on average over these iterations, which follow each
/// other. Their times count from the stream's start.
[[nodiscard]] double messages_on_critical_path(const Plan& plan,
                                               std::span<const OpTimes> iterations, OpId op);

/// By how much a measured time is above its prediction, both as played, for each message of the
/// critical path: unlike percents it does not depend on time_scale. nullopt: the path has none.
///
///     late_per_message(102e6, 100ms, 14);  // 142,857 ns
[[nodiscard]] std::optional<Duration> late_per_message(double measured_ns, Duration predicted,
                                                       double messages);
/// A cell of the column us/hop: "142.9"; "-" where there is no message.
[[nodiscard]] std::string late_text(const std::optional<Duration>& late);

}  // namespace longhaul::plan
