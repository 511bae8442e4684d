#include "harness/profile/stream_measurement.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;

/// Starts of the first op of each iteration.
std::vector<Duration> starts(Bandwidth rate, int stale, int iterations) {
  std::vector<Duration> all;
  const Plan plan = plan_of_exchange(2, rate, stale, {});
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

TEST(StreamMeasurement, ReadsRates) {
  EXPECT_EQ(parse_rates("10Gbps,40Gbps").size(), 2U);
  EXPECT_THROW((void)parse_rates(""), Error);
  EXPECT_THROW((void)parse_rates("fast"), Error);
}

}  // namespace
}  // namespace longhaul::harness
