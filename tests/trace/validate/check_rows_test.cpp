#include "trace/validate/check_rows.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/sample_timeline.hpp"

namespace longhaul::trace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Diagnostics about two iterations that were changed.
std::vector<std::string> after(const std::function<void(Timeline&)>& change,
                               std::int64_t slack_ns = 0) {
  Timeline timeline = testing::random_timeline(1, {}, 2);
  change(timeline);
  Diagnostics findings;
  check_rows(timeline, "rows", slack_ns, findings);
  return findings.texts();
}

std::size_t first_of(const Timeline& timeline, RowKind kind) {
  const auto at = std::ranges::find(timeline.rows, kind, &TimelineRow::kind);
  return static_cast<std::size_t>(at - timeline.rows.begin());
}

TEST(CheckRows, AcceptsWhatIsRight) {
  EXPECT_THAT(after([](Timeline&) {}), IsEmpty());
  EXPECT_THAT(after([](Timeline& t) { t = {}; }), IsEmpty());
}

TEST(CheckRows, FindsIndicesOutsideTheirTables) {
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].lane = 99; }), Contains(HasSubstr("lane 99")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].lane = -1; }), Contains(HasSubstr("lane -1")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].datacenter = 2; }),
              Contains(HasSubstr("datacenter 2")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].resource = 0; }),
              Contains(HasSubstr("resource 0 (resources has 0 names)")));
  EXPECT_THAT(after([](Timeline& t) { t.schedules.clear(); }), Contains(HasSubstr("schedule 0")));
}

TEST(CheckRows, FindsIdsThatCannotBe) {
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].kind = static_cast<RowKind>(77); }),
              Contains(HasSubstr("kind 77")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].bound_kind = static_cast<BoundKind>(77); }),
              Contains(HasSubstr("bound_kind 77")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].rank = 2'000'000'000; }),
              Contains(HasSubstr("lower ranks have none")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].rank = -1; }), Not(IsEmpty()));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].peer = -2; }), Contains(HasSubstr("peer -2")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].part = 1; }), Contains(HasSubstr("part 1 of 1")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].bound_by = 100'000; }),
              Contains(HasSubstr("bound by op 100000 (no such op)")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].bound_by = -9; }), Not(IsEmpty()));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].op = 4; }), Contains(HasSubstr("behind op 4")));
}

TEST(CheckRows, AcceptsWhatSchema3Adds) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_THAT(after([&](Timeline& t) { testing::add_columns_of_schema_3(t, seed); }), IsEmpty());
}

TEST(CheckRows, FindsWhatSchema3DoesNotAllow) {
  const auto about = [](std::int32_t TimelineRow::*member, std::int32_t value) {
    return after([&](Timeline& t) {
      t.collectives = {"all_reduce of chunk 0"};
      t.operators = {"attention", "mlp"};
      t.rows[5].*member = value;
    });
  };
  EXPECT_THAT(about(&TimelineRow::collective, 0), IsEmpty());
  EXPECT_THAT(about(&TimelineRow::collective, 1),
              Contains(HasSubstr("collective 1 (collectives has 1 names)")));
  EXPECT_THAT(about(&TimelineRow::collective, -2), Contains(HasSubstr("collective -2")));
  EXPECT_THAT(about(&TimelineRow::operator_index, 1), IsEmpty());
  EXPECT_THAT(about(&TimelineRow::operator_index, 2),
              Contains(HasSubstr("operator 2 (operators has 2 names)")));
  EXPECT_THAT(about(&TimelineRow::step, -2), Contains(HasSubstr("step -2")));
  EXPECT_THAT(about(&TimelineRow::level, 2), IsEmpty());
  EXPECT_THAT(about(&TimelineRow::level, 3), Contains(HasSubstr("level 3")));
  EXPECT_THAT(about(&TimelineRow::level, -2), Contains(HasSubstr("level -2")));
  EXPECT_THAT(about(&TimelineRow::layer, -2), Contains(HasSubstr("layer -2")));
  EXPECT_THAT(about(&TimelineRow::version, -2), Contains(HasSubstr("version -2")));
  EXPECT_THAT(about(&TimelineRow::slice, 1), Contains(HasSubstr("slice 1 of 1")));
  EXPECT_THAT(about(&TimelineRow::slice, -1), Contains(HasSubstr("slice -1 of 1")));
  EXPECT_THAT(about(&TimelineRow::slices, 0), Contains(HasSubstr("slice 0 of 0")));
  EXPECT_THAT(about(&TimelineRow::outcome, 2), IsEmpty());
  EXPECT_THAT(about(&TimelineRow::outcome, 5), Contains(HasSubstr("outcome 5")));
  EXPECT_THAT(about(&TimelineRow::outcome, 256), Contains(HasSubstr("outcome 256")));
  EXPECT_THAT(about(&TimelineRow::outcome, -1), Contains(HasSubstr("outcome -1")));
}

TEST(CheckRows, AllowsBoundsByOpsThatWereLeftOut) {
  const auto without_op_5 = [](Timeline& t) {
    const std::int64_t gone = t.rows[5].op;
    std::erase_if(t.rows, [&](const TimelineRow& row) { return row.op == gone; });
    t.rows[5].bound_by = gone;
  };
  EXPECT_THAT(after(without_op_5), Contains(HasSubstr("bound by op 5 (no such op)")));
  EXPECT_THAT(after([&](Timeline& t) {
                without_op_5(t);
                t.left_out = {{40, "barrier", 2}};
              }),
              Not(Contains(HasSubstr("no such op"))));
}

TEST(CheckRows, FindsTimesAndSizesOutOfRange) {
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].end_ns = t.rows[5].start_ns - 1; }),
              Contains(HasSubstr("before its start")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[0].start_ns = -1; }), Contains(HasSubstr("start -1")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].end_ns = INT64_MAX; }), Not(IsEmpty()));
  constexpr std::int64_t kLast = std::int64_t{1} << 53;
  EXPECT_THAT(after([&](Timeline& t) { t.rows[5].end_ns = kLast + 1; }),
              Contains(HasSubstr("has ready")));
  EXPECT_THAT(after([&](Timeline& t) { t.rows[5].end_ns = kLast; }),
              Not(Contains(HasSubstr("has ready"))));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].ready_ns = INT64_MIN; }), Not(IsEmpty()));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].planned_ns = -1; }), Not(IsEmpty()));
  EXPECT_THAT(after([](Timeline& t) { t.rows[5].size_bytes = INT64_MIN; }), Not(IsEmpty()));
}

TEST(CheckRows, FindsIterationsInPieces) {
  EXPECT_THAT(after([](Timeline& t) {
                for (TimelineRow& row : t.rows) row.iteration = row.op < 40 ? 0 : row.iteration;
                t.rows[3].iteration = 1;
              }),
              Contains(HasSubstr("second piece")));
}

constexpr std::int64_t kSlackNs = 1'000'000;

TEST(CheckRows, FindsLanesOutOfOrder) {
  const auto one_nanosecond_early = [](Timeline& t) { t.rows[1].start_ns = t.rows[0].end_ns - 1; };
  EXPECT_THAT(after(one_nanosecond_early), Contains(HasSubstr("before op 0 of its lane ends")));
  EXPECT_THAT(after(one_nanosecond_early, kSlackNs), IsEmpty());
  const auto two_milliseconds_early = [](Timeline& t) {
    t.rows[0].end_ns = t.rows[1].start_ns + 2 * kSlackNs;
  };
  EXPECT_THAT(after(two_milliseconds_early, kSlackNs),
              Contains(HasSubstr("before op 0 of its lane ends")));
}

void skip(TimelineRow& row) {
  row.outcome = static_cast<std::int32_t>(Outcome::skipped);
  row.ready_ns = row.start_ns = row.end_ns = 0;
}

TEST(CheckRows, ALaneIsTheOrderOfWhatRan) {
  EXPECT_THAT(after([](Timeline& t) { skip(t.rows[1]); }), IsEmpty());
  EXPECT_THAT(after([](Timeline& t) {
                skip(t.rows[1]);
                t.rows[2].start_ns = t.rows[0].end_ns - 1;
              }),
              Contains(HasSubstr("before op 0 of its lane ends")));
}

// Rows 0 and 1 are blocks of one lane.
TEST(CheckRows, OpsOfSomeLanesMayPassEachOther) {
  const auto exchanged = [](Timeline& t) {
    const std::int64_t between = t.rows[0].end_ns - t.rows[0].start_ns;
    std::swap(t.rows[0].start_ns, t.rows[1].start_ns);
    t.rows[0].end_ns = t.rows[0].start_ns + between;
    t.rows[1].end_ns = std::min(t.rows[1].end_ns, t.rows[0].start_ns);
  };
  const auto in_any_order = [](Timeline& t) {
    t.resources = {"device 0"};
    const std::int32_t lane = t.rows[0].lane;
    t.lanes[static_cast<std::size_t>(lane)] += kAnyOrder;
    for (TimelineRow& row : t.rows)
      if (row.rank == t.rows[0].rank && row.lane == lane) row.resource = 0;
  };
  EXPECT_THAT(after(exchanged), Contains(HasSubstr("of its lane ends")));
  EXPECT_THAT(after([&](Timeline& t) {
                exchanged(t);
                in_any_order(t);
              }),
              IsEmpty());
  EXPECT_THAT(after([&](Timeline& t) {
                in_any_order(t);
                t.rows[1].start_ns = t.rows[0].end_ns - 1;
              }),
              Contains(HasSubstr("takes resource device 0")));
}

// Two stamps by two clocks, each off by what is stated of it.
TEST(CheckRows, ForgivesWhatClocksStateAndNoMore) {
  EXPECT_EQ(measured_slack_ns(""), 0);
  EXPECT_EQ(measured_slack_ns("no JSON"), 0);
  EXPECT_EQ(measured_slack_ns(R"({"clocks": null, "hosts": []})"), 0) << "one host";
  EXPECT_EQ(measured_slack_ns(R"({"clocks": {"largest_error_ns": 7000}})"), 14'000);
  EXPECT_EQ(measured_slack_ns(R"({"clocks": null, "accelerators": [
                                   {"clock_largest_error_ns": 300},
                                   {"clock_largest_error_ns": 900}, {}]})"),
            1800);
  EXPECT_EQ(measured_slack_ns(R"({"clocks": {"largest_error_ns": -5}})"), 0);
  EXPECT_EQ(measured_slack_ns(R"({"clocks": {"largest_error_ns": "much"}, "accelerators": 3})"), 0);
}

TEST(CheckRows, FindsResourcesHeldTwice) {
  const auto share_a_link = [](Timeline& t) {
    t.resources = {"link west>east"};
    for (TimelineRow& row : t.rows) {
      if (row.kind == RowKind::send && row.rank == 0) row.resource = 0;
    }
  };
  EXPECT_THAT(after(share_a_link), IsEmpty());
  EXPECT_THAT(after([&](Timeline& t) {
                share_a_link(t);
                t.rows[first_of(t, RowKind::send)].end_ns += 300'000;
              }),
              Contains(HasSubstr("link west>east")));
}

/// Two collectives of rank 0 in turn, each with rank 1, on `resources` of rank 0 and rank 1.
Timeline two_collectives(std::int32_t resource_of_rank_1) {
  testing::TimelineBuilder t;
  for (const std::int32_t rank : {0, 1}) {
    for (const std::int64_t start : {0, 5'000'000}) {
      const auto op =
          t.collective(rank, RowKind::reduce_scatter, {start, start, start + 5'000'000});
      t.row(op).resource = rank == 0 ? 0 : resource_of_rank_1;
    }
  }
  Timeline timeline = t.timeline();
  timeline.resources = {"collective 0", "collective 1"};
  return timeline;
}

TEST(CheckRows, FindsCollectivesOfARankThatOverlap) {
  const auto first_ends_later = [](std::int64_t by_ns, std::int64_t slack_ns) {
    return after(
        [&](Timeline& t) {
          t = two_collectives(1);
          t.rows[0].end_ns += by_ns;
        },
        slack_ns);
  };
  EXPECT_THAT(first_ends_later(0, 0), IsEmpty());
  EXPECT_THAT(first_ends_later(1, 0),
              Contains(HasSubstr("takes resource collective 0 at 5000000 ns (op 0 holds it")));
  EXPECT_THAT(first_ends_later(kSlackNs, kSlackNs), IsEmpty());
  EXPECT_THAT(first_ends_later(kSlackNs + 1, kSlackNs), Contains(HasSubstr("collective 0")));
}

TEST(CheckRows, LetsMembersOfACollectiveHoldAResourceTogether) {
  EXPECT_THAT(after([](Timeline& t) { t = two_collectives(0); }), IsEmpty());
}

TEST(CheckRows, FindsArrivalsBeforeTheirDeparture) {
  EXPECT_THAT(after([](Timeline& t) {
                TimelineRow& arrival = t.rows[first_of(t, RowKind::recv)];
                arrival.start_ns = arrival.end_ns = 0;
              }),
              Contains(HasSubstr("arrives at 0 ns")));
}

// Nor does it help to say that nothing, or less than nothing, was sent.
TEST(CheckRows, FindsMessagesOfTwoSizes) {
  EXPECT_THAT(after([](Timeline& t) { ++t.rows[first_of(t, RowKind::recv)].size_bytes; }),
              Contains(AllOf(HasSubstr(" brings 1 bytes (op "), HasSubstr(" sends 0)."))));
  EXPECT_THAT(after([](Timeline& t) { --t.rows[first_of(t, RowKind::send)].size_bytes; }),
              Contains(HasSubstr("has a size of -1 bytes")));
}

TEST(CheckRows, FindsArrivalsOfWhatWasNotSent) {
  const auto skip = [](Timeline& t) {
    t.rows[first_of(t, RowKind::send)].outcome = static_cast<std::int32_t>(Outcome::skipped);
  };
  EXPECT_THAT(after(skip), Contains(HasSubstr(" arrives (op ")));
}

TEST(CheckRows, FindsMessagesWithOneSide) {
  EXPECT_THAT(
      after([](Timeline& t) { t.rows[first_of(t, RowKind::send)].microbatch = MicrobatchId{77}; }),
      Contains(HasSubstr("is a send whose other side, on rank 1, is missing")));
  EXPECT_THAT(after([](Timeline& t) { t.rows[first_of(t, RowKind::recv)].peer = 2; }),
              Contains(HasSubstr("is a recv whose other side, on rank 2, is missing")));
}

TEST(CheckRows, FindsRanksInTwoPlaces) {
  EXPECT_THAT(after([](Timeline& t) { t.rows[1].datacenter = 1; }),
              Contains(HasSubstr("another datacenter")));
}

TEST(CheckRows, CountsAlikeFindingsInsteadOfListingThem) {
  const auto found = after([](Timeline& t) {
    for (TimelineRow& row : t.rows) row.lane = 1000;
  });
  EXPECT_LT(found.size(), 10U);
  EXPECT_THAT(found, Contains(HasSubstr("more: rows: index outside its table")));
}

}  // namespace
}  // namespace longhaul::trace
