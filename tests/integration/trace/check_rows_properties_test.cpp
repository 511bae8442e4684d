// Checks that read rows piece by piece find the same as the plain ones that hold all rows.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "trace/reference_rows.hpp"
#include "trace/relayed_sample.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul {
namespace {

using Mutation = std::function<void(Timeline&, TimelineRow&, Random&)>;

std::int32_t small(Random& random) { return static_cast<std::int32_t>(random.between(-2, 5)); }

/// Faults of a row, each against some rule.
const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> all{
      [](Timeline&, TimelineRow& row, Random& r) { row.op += r.between(-3, 3); },
      [](Timeline&, TimelineRow& row, Random& r) { row.bound_by = r.between(-3, 700); },
      [](Timeline&, TimelineRow& row, Random& r) { row.start_ns -= r.between(0, 300'000); },
      [](Timeline&, TimelineRow& row, Random& r) { row.end_ns += r.between(0, 300'000); },
      [](Timeline&, TimelineRow& row, Random& r) { row.end_ns = row.start_ns = r.between(0, 9); },
      [](Timeline&, TimelineRow& row, Random& r) { row.rank = small(r); },
      [](Timeline&, TimelineRow& row, Random&) { row.rank = 100'000; },
      [](Timeline&, TimelineRow& row, Random& r) { row.peer = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.microbatch = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.chunk = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.owner = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.device = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.replica = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.datacenter = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.lane = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.resource = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.iteration = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) { row.schedule = small(r); },
      [](Timeline&, TimelineRow& row, Random& r) {
        row.kind = static_cast<RowKind>(r.between(0, kCountOf<RowKind>));
      },
      [](Timeline&, TimelineRow& row, Random& r) {
        row.leg = static_cast<MessageLeg>(r.between(0, kCountOf<MessageLeg>));
      },
      [](Timeline&, TimelineRow& row, Random& r) {
        row.pieces = static_cast<std::int32_t>(r.between(1, 3));
        row.piece = static_cast<std::int32_t>(r.between(0, row.pieces - 1));
      },
      [](Timeline&, TimelineRow& row, Random& r) { row.size_bytes = r.between(0, 9); },
      [](Timeline& t, TimelineRow& row, Random&) {
        t.rows.erase(t.rows.begin() + (&row - t.rows.data()));
      },
      [](Timeline& t, TimelineRow& row, Random&) { std::swap(row, t.rows.front()); }};
  return all;
}

/// Two iterations of a pipeline whose transfers hold its links, or relayed messages.
Timeline sample(Random& random) {
  if (random.between(0, 2) == 0) return testing::relayed();
  Timeline timeline = testing::random_timeline(static_cast<std::uint64_t>(random.between(1, 50)),
                                               {.ranks = 3, .microbatches = 4}, 2);
  timeline.resources = {"link 0>1", "link 1>0", "link 1>2", "link 2>1"};
  for (TimelineRow& row : timeline.rows)
    if (row.kind == RowKind::send)
      row.resource = row.rank + row.peer - (row.peer > row.rank ? 1 : 0);
  return timeline;
}

std::vector<std::string> reference(const Timeline& timeline, std::int64_t slack_ns) {
  trace::Diagnostics findings;
  testing::ReferenceRows{timeline, "rows", slack_ns, findings}.run();
  return findings.texts();
}

/// With room for `sort_bytes` in memory where rows have to be sorted.
std::vector<std::string> streamed(const Timeline& timeline, std::int64_t slack_ns,
                                  std::size_t sort_bytes) {
  trace::Diagnostics findings;
  trace::RowsInMemory rows{timeline};
  trace::check_rows(rows, "rows", slack_ns, findings, sort_bytes);
  return findings.texts();
}

TEST(CheckRowsProperties, FindTheSameAsWithAllRowsInMemory) {
  Random random{20};
  int wrong = 0;
  for (int round = 0; round < 3'000; ++round) {
    Timeline timeline = sample(random);
    for (std::int64_t changes = random.between(0, 4); changes > 0; --changes) {
      const auto what = static_cast<std::size_t>(random.between(0, std::ssize(mutations()) - 1));
      const auto row = static_cast<std::size_t>(random.between(0, std::ssize(timeline.rows) - 1));
      mutations()[what](timeline, timeline.rows[row], random);
    }
    const std::int64_t slack_ns = random.between(0, 1) * 50'000;
    const auto expected = reference(timeline, slack_ns);
    ASSERT_EQ(streamed(timeline, slack_ns, trace::kSortBytes), expected) << round;
    ASSERT_EQ(streamed(timeline, slack_ns, 500), expected) << round;  // spills
    wrong += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(wrong, 1'500);
  EXPECT_LT(wrong, 3'000);
}

/// Every rule has something to say in the rounds above.
TEST(CheckRowsProperties, MeetEveryRule) {
  Random random{20};
  std::map<std::string, int> met;
  for (int round = 0; round < 3'000; ++round) {
    Timeline timeline = sample(random);
    const auto what = static_cast<std::size_t>(random.between(0, std::ssize(mutations()) - 1));
    const auto row = static_cast<std::size_t>(random.between(0, std::ssize(timeline.rows) - 1));
    mutations()[what](timeline, timeline.rows[row], random);
    for (const std::string& text : streamed(timeline, 0, trace::kSortBytes)) {
      for (const char* sign :
           {"bound by op", "of its lane", "takes resource", "is missing", "sends it at",
            "stands behind", "only", "second piece", "another datacenter", "is one of",
            "belongs to a message", "cut evenly", "did not get", "does not pass on", "passes on",
            "brings the piece", "bytes (op"})
        met[sign] += text.find(sign) != std::string::npos ? 1 : 0;
    }
  }
  for (const auto& [sign, count] : met) EXPECT_GT(count, 0) << sign;
}

}  // namespace
}  // namespace longhaul
