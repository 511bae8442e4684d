#pragma once

#include <string>

#include <fmt/format.h>

#include "plan/plan.hpp"
#include "sim/simulate.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

/// Where a stream of one iteration gives other times than `times`; "" where nowhere.
inline std::string difference_of_a_stream(const Plan& plan, const OpTimes& times,
                                          const plan::WeatherOfIteration& at) {
  std::string difference = "no iteration was handed over";
  const auto compare = [&](const sim::StreamedIteration& done) {
    difference = done.iteration == 0 ? "" : "another iteration";
    for (std::size_t i = 0; i < times.size() && difference.empty(); ++i)
      if (done.results.times[i].start != times[i].start ||
          done.results.times[i].end != times[i].end)
        difference =
            fmt::format("{}: start {}, end {}; in a stream {}, {}",
                        to_text(plan, OpId{static_cast<std::uint32_t>(i)}), times[i].start.count(),
                        times[i].end.count(), done.results.times[i].start.count(),
                        done.results.times[i].end.count());
  };
  sim::simulate_stream(plan, {}, compare, at);
  return difference;
}

/// Where the driver in order of time gives other times or causes than `times`, alone or as a stream
/// of one iteration; "" where nowhere.
inline std::string difference_in_order_of_time(const Plan& plan, const OpTimes& times,
                                               const plan::WeatherOfIteration& at = {}) {
  const Result<OpResults> results = sim::simulate_in_order_of_time(plan, at);
  if (!results) return results.refusal().reason;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const OpTime& a = times[i];
    const OpTime& b = results->times[i];
    if (a.ready == b.ready && a.start == b.start && a.end == b.end && a.bound_by == b.bound_by &&
        a.bound_kind == b.bound_kind)
      continue;
    return fmt::format(
        "{}: ready {}, start {}, end {}, bound by {} ({}); in order of time {}, {}, {}, {} ({})",
        to_text(plan, OpId{static_cast<std::uint32_t>(i)}), a.ready.count(), a.start.count(),
        a.end.count(), index(a.bound_by), to_string(a.bound_kind), b.ready.count(), b.start.count(),
        b.end.count(), index(b.bound_by), to_string(b.bound_kind));
  }
  if (times.size() != results->times.size()) return "another number of ops";
  return difference_of_a_stream(plan, times, at);
}

}  // namespace longhaul::testing
