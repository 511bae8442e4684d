#include "plan/critical_messages.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

/// Is it the end of the path that its message is counted at? A receive that waited for its own send
/// leaves that to it.
bool counts_as_message(const Op& op, const OpTime& time) {
  return op.kind == OpKind::send || (op.kind == OpKind::recv && time.bound_by != OpId{op.match});
}

/// The last of these iterations in which `before` ended before an op of `from` that it bound
/// started; its own where a receive follows its send. nullopt: it is none of these.
std::optional<std::size_t> iteration_of(OpId before, const Op& op, Duration start,
                                        std::span<const OpTimes> iterations, std::size_t from) {
  if (op.kind == OpKind::recv && before == OpId{op.match}) return from;
  for (std::size_t i = iterations.size(); i-- > 0;)
    if (iterations[i][index(before)].end <= start) return i;
  return std::nullopt;
}

}  // namespace

int messages_on_critical_path(const Plan& plan, const OpTimes& times, OpId last, Duration since) {
  int messages = 0;
  for (std::size_t steps = 0; steps < times.size(); ++steps) {
    const OpTime& time = times[index(last)];
    if (time.end <= since) break;
    if (counts_as_message(plan.op(last), time)) ++messages;
    if (time.bound_by == kNone<OpId>) break;
    last = time.bound_by;
  }
  return messages;
}

int messages_on_critical_path(const Plan& plan, const OpTimes& times) {
  if (times.empty()) return 0;
  const auto last = std::ranges::max_element(times, {}, &OpTime::end);
  return messages_on_critical_path(plan, times,
                                   OpId{static_cast<std::uint32_t>(last - times.begin())});
}

double messages_on_critical_path(const Plan& plan, std::span<const OpTimes> iterations, OpId op) {
  constexpr std::size_t kReach = 2;  // what ended in these is still waited for later
  if (iterations.size() < 2 || iterations.front().empty()) return 0;
  const std::size_t first = std::min(kReach, iterations.size() - 2);
  const Duration begin = iterations[first][index(op)].start;
  std::size_t at = iterations.size() - 1;
  int messages = 0;
  for (std::size_t steps = 0; steps < iterations.size() * plan.ops.size(); ++steps) {
    const OpTime& time = iterations[at][index(op)];
    if (time.start <= begin) break;
    if (counts_as_message(plan.op(op), time)) ++messages;
    if (time.bound_by == kNone<OpId>) break;
    const auto of_cause = iteration_of(time.bound_by, plan.op(op), time.start, iterations, at);
    if (!of_cause) break;
    at = *of_cause;
    op = time.bound_by;
  }
  return static_cast<double>(messages) / static_cast<double>(iterations.size() - 1 - first);
}

std::optional<Duration> late_per_message(double measured_ns, Duration predicted, double messages) {
  if (!(messages > 0)) return std::nullopt;
  const double late = measured_ns - static_cast<double>(predicted.count());
  return Duration{std::llround(late / messages)};
}

std::string late_text(const std::optional<Duration>& late) {
  return late ? fmt::format("{:.1f}", static_cast<double>(late->count()) / 1e3) : "-";
}

}  // namespace longhaul::plan
