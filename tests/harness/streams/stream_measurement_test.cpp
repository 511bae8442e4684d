#include "harness/streams/stream_measurement.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/critical_messages.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;

/// Starts of the first op of each iteration.
std::vector<Duration> starts(Bandwidth rate, int stale, int iterations) {
  std::vector<Duration> all;
  const Plan plan = plan_of_exchange(2, {rate, stale}, {});
  sim::simulate_stream(plan, {iterations, {}}, [&](const sim::StreamedIteration& done) {
    all.push_back(done.results.times.front().start);
  });
  return all;
}

// Two ranks and transfers of 20 or 40 ms: the known values of the exchange of three parts.
TEST(StreamMeasurement, TwoRanksHaveKnownTimes) {
  const auto transfer = [](std::int64_t ms) {
    return Bandwidth{25e6 * 8 / (static_cast<double>(ms) / 1e3)};
  };
  EXPECT_EQ(starts(transfer(20), 0, 3), (std::vector<Duration>{0ms, 115ms, 230ms}));
  EXPECT_EQ(starts(transfer(20), 1, 3), (std::vector<Duration>{0ms, 90ms, 180ms}));
  EXPECT_EQ(starts(transfer(40), 0, 4), (std::vector<Duration>{0ms, 135ms, 300ms, 465ms}));
}

// Between two iterations of 115 ms lies the exchange of part 0, whose B is the last; those of
// 90 ms wait for none.
TEST(StreamMeasurement, KnowsItsMessagesOnTheCriticalPath) {
  const auto messages = [](int stale, double rate = 10e9, int ranks = 2) {
    const Plan plan = plan_of_exchange(ranks, {Bandwidth{rate}, stale}, {});
    std::vector<OpTimes> all;
    sim::simulate_stream(plan, {8, {}}, [&](const sim::StreamedIteration& done) {
      all.push_back(done.results.times);
    });
    return plan::messages_on_critical_path(plan, std::span{all}.last(6), OpId{0});
  };
  EXPECT_DOUBLE_EQ(messages(0), 1);
  EXPECT_DOUBLE_EQ(messages(1), 0);
  // Three transfers of 25 ms, one after the other, and a replica's blocks: 150 ms, but for the
  // ends.
  EXPECT_NEAR(messages(0, 8e9, 4), 3, 0.5);
}

TEST(StreamMeasurement, SaysHowLateItIsForEachMessage) {
  StreamMeasurement measured{.of = {Bandwidth{10e9}, 0},
                             .periods = 5,
                             .predicted = 115ms,
                             .measured = 115'500us,
                             .messages = 2};
  EXPECT_EQ(measured.late_per_message(), Duration{250us});
  EXPECT_NE(stream_table({measured}).find("250.0"), std::string::npos);
  measured.periods = 0;
  EXPECT_EQ(measured.late_per_message(), std::nullopt);
}

// What may not run takes no time of the rest.
TEST(StreamMeasurement, ExtrasAreBesideTheStream) {
  StreamSettings settings;
  settings.extras = true;
  const Plan plan = plan_of_exchange(2, {Bandwidth{10e9}, 0}, settings);
  Timeline rows;
  append_predicted(rows, plan, 3);
  ASSERT_EQ(rows.rows.size(), 3 * plan.ops.size());
  std::vector<int> skipped(3, 0), met;
  for (const TimelineRow& row : rows.rows) {
    if (row.outcome == static_cast<std::int32_t>(Outcome::skipped)) ++skipped[at(row.iteration)];
    if (row.op != 0) continue;
    EXPECT_EQ(row.start_ns, 0) << "times are from the iteration's first op";
    met.push_back(row.version);
  }
  EXPECT_EQ(skipped, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(met, (std::vector<int>{-1, 0, 1}));
  Duration last{};
  sim::simulate_stream(plan, {3, {}}, [&](const sim::StreamedIteration& done) {
    last = done.results.times.front().start;
  });
  EXPECT_EQ(last, starts(Bandwidth{10e9}, 0, 3).back());
}

TEST(StreamMeasurement, ReadsRates) {
  EXPECT_EQ(parse_rates("10Gbps,40Gbps").size(), 2U);
  EXPECT_THROW((void)parse_rates(""), Error);
  EXPECT_THROW((void)parse_rates("fast"), Error);
}

}  // namespace
}  // namespace longhaul::harness
