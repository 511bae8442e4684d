#include "trace/report/report.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/report/report_rows.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {
namespace {

auto key_of(const TimelineRow& row) { return IterationKey{row.schedule, row.iteration}; }

constexpr std::array kParts{IdlePart{"dependency", &IdleTime::dependency},
                            IdlePart{"link_wait", &IdleTime::link_wait},
                            IdlePart{"link_busy", &IdleTime::link_busy},
                            IdlePart{"rendezvous", &IdleTime::rendezvous},
                            IdlePart{"memory", &IdleTime::memory},
                            IdlePart{"straggler", &IdleTime::straggler},
                            IdlePart{"collective", &IdleTime::collective},
                            IdlePart{"host_task", &IdleTime::host_task, true},
                            IdlePart{"copy", &IdleTime::copy, true},
                            IdlePart{"prefill", &IdleTime::prefill, true},
                            IdlePart{"drained", &IdleTime::drained}};

}  // namespace

std::span<const IdlePart> idle_parts() { return kParts; }

std::int64_t IdleTime::total() const {
  std::int64_t sum = 0;
  for (const IdlePart& part : kParts) sum += this->*part.member;
  return sum;
}

std::vector<IterationKey> iterations_of(const Timeline& timeline) {
  std::vector<IterationKey> keys;
  for (const TimelineRow& row : timeline.rows) {
    if (keys.empty() || keys.back() != key_of(row)) keys.push_back(key_of(row));
  }
  return keys;
}

std::span<const TimelineRow> rows_of(const Timeline& timeline, int schedule, int iteration) {
  const IterationKey key{schedule, iteration};
  const std::span rows{timeline.rows};
  // Traces are written in order; any other order only costs a scan.
  auto first = std::ranges::lower_bound(rows, key, {}, key_of);
  if (first == rows.end() || key_of(*first) != key) first = std::ranges::find(rows, key, key_of);
  while (first != rows.begin() && key_of(*(first - 1)) == key) --first;
  const auto last =
      std::find_if(first, rows.end(), [&](const TimelineRow& row) { return key_of(row) != key; });
  return {first, last};
}

std::vector<PathStep> critical_path(std::span<const TimelineRow> rows) {
  return critical_path(IterationView{rows});
}

IdleTime attribute_idle(std::span<const TimelineRow> rows, std::int64_t activation_budget_bytes) {
  return Attribution{IterationView{rows}}.run(activation_budget_bytes);
}

std::vector<Traffic> traffic_of(std::span<const TimelineRow> rows,
                                std::span<const std::string> datacenters) {
  return traffic_of(IterationView{rows}, datacenters);
}

IterationReport report_iteration(const Timeline& timeline, int schedule, int iteration,
                                 std::int64_t activation_budget_bytes) {
  const auto rows = rows_of(timeline, schedule, iteration);
  if (rows.empty())
    fail(
        "there is no iteration {} of schedule {}. List what the trace holds with "
        "`longhaul trace`.",
        iteration, schedule);
  IterationReport report = report_rows(rows, activation_budget_bytes, timeline.datacenters);
  report.schedule = timeline.schedules[at(schedule)];
  report.iteration = iteration;
  return report;
}

}  // namespace longhaul::trace
