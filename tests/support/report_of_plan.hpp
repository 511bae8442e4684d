#pragma once

#include <gtest/gtest.h>

#include "plan/rows.hpp"
#include "trace/report/report_rows.hpp"

namespace longhaul::testing {

/// Rows that are made when they are asked for say the same as rows that are kept: the other sides
/// of messages, which the plan knows, are found by their names there.
inline void expect_equal_reports(const Plan& plan, const OpTimes& times, std::int64_t budget_bytes,
                                 std::uint64_t seed) {
  Timeline timeline;
  plan::append_rows(timeline, plan, times, 0);
  const plan::PlanRows rows{plan, times};
  ASSERT_EQ(rows.size(), timeline.rows.size());
  const std::vector<std::size_t> others = trace::match_messages(timeline.rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_message(timeline.rows[i].kind)) {
      ASSERT_EQ(rows.other_side(i), others[i]) << seed;
    }
    ASSERT_EQ(rows[i].start_ns, timeline.rows[i].start_ns) << seed;
  }
  const trace::IterationReport kept = trace::report_iteration(timeline, 0, 0, budget_bytes);
  const trace::IterationReport made = trace::report_rows(rows, budget_bytes, plan.datacenters);
  EXPECT_EQ(made.makespan_ns, kept.makespan_ns) << seed;
  EXPECT_EQ(made.device_span_ns, kept.device_span_ns) << seed;
  EXPECT_EQ(made.bubble_ratio, kept.bubble_ratio) << seed;
  EXPECT_EQ(made.peak_activation_bytes, kept.peak_activation_bytes) << seed;
  for (const trace::IdlePart& part : trace::idle_parts())
    EXPECT_EQ(made.idle.*part.member, kept.idle.*part.member) << part.name << ", " << seed;
  EXPECT_EQ(made.wan_busy_ns, kept.wan_busy_ns) << seed;
  EXPECT_EQ(made.wan_crossings_on_critical_path, kept.wan_crossings_on_critical_path) << seed;
  EXPECT_EQ(made.dp_overlap, kept.dp_overlap) << seed;
  EXPECT_EQ(made.traffic, kept.traffic) << seed;
  // Nothing is lost between the parts.
  std::int64_t busy = 0;
  for (const TimelineRow& row : timeline.rows)
    if (is_compute(row.kind)) busy += row.end_ns - row.start_ns;
  EXPECT_EQ(made.idle.total(), made.makespan_ns * std::ssize(made.bubble_ratio) - busy) << seed;
}

}  // namespace longhaul::testing
