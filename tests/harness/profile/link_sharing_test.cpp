#include "harness/profile/link_sharing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulate.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

Duration end_of(const OpTimes& times) { return std::ranges::max(times, {}, &OpTime::end).end; }

// The simulator, which knows nothing of these tests, takes what they expect.
TEST(SharingPlan, TakesWhatIsExpected) {
  for (const int ranks : {2, 3, 4, 6})
    for (const SharingTest test : every<SharingTest>())
      for (const Duration target : {Duration{1'500'000}, Duration{7}}) {
        const SharingPlan made = sharing_plan(test, target, ranks, 1_MiB);
        EXPECT_EQ(end_of(sim::simulate(made.plan)), made.expected)
            << to_string(test) << ' ' << ranks;
      }
}

TEST(SharingPlan, HasTheTimesOfAHand) {
  const auto expected = [](SharingTest test) { return sharing_plan(test, 2ms, 6, 1_MiB).expected; };
  EXPECT_EQ(expected(SharingTest::isolated), 2ms);
  EXPECT_EQ(expected(SharingTest::one_link), 6ms) << "three senders";
  EXPECT_EQ(expected(SharingTest::both_ways), 2ms);
  EXPECT_EQ(expected(SharingTest::beside_ring), 10ms) << "five steps";
}

class LinkSharing : public testing::OnRanks {};

RANKS_TEST(LinkSharing, IsNeverFasterThanItsLinks) {
  NEEDS_RANKS(2);
  engine::Checks checks;
  const LinkSettings settings{3, 1_MiB, 4_KiB};
  const auto measured = measure_sharing({2ms}, ranks(), settings, checks);
  EXPECT_EQ(checks.wrong(), 0);
  ASSERT_EQ(measured.size(), 4U);
  if (!ranks().is_first()) return;
  for (const SharingMeasurement& each : measured) {
    ASSERT_EQ(each.samples_ns.size(), 3U);
    // What follows a late look begins where it was due: at most 2% of an op earlier (credit).
    for (const double sample : each.samples_ns)
      EXPECT_GE(sample, 0.98 * static_cast<double>(each.expected.count())) << to_string(each.test);
  }
  const std::string text = sharing_table(measured, 31us, settings);
  EXPECT_THAT(text, HasSubstr("floor 31 us: half a round trip of 4 KiB"));
  EXPECT_THAT(text, HasSubstr("beside-ring"));
}

// Two senders on one link are on two hosts there, which lease it by messages; only where the offset
// of their clocks is known.
RANKS_TEST(LinkSharing, IsMeasuredBetweenHosts) {
  NEEDS_RANKS(4);
  engine::Ranks apart{engine::WatchdogOptions{std::chrono::seconds{60}}, 1};
  engine::Checks checks;
  LinkSettings settings{3, 1_MiB, 4_KiB};
  EXPECT_TRUE(measure_sharing({5ms}, apart, settings, checks).empty());
  settings.clock_offset = Duration::zero();
  const auto measured = measure_sharing({5ms}, apart, settings, checks);
  EXPECT_EQ(checks.wrong(), 0);
  ASSERT_EQ(measured.size(), 4U);
  if (!apart.is_first()) return;
  for (const SharingMeasurement& each : measured)
    for (const double sample : each.samples_ns)
      EXPECT_GE(sample, 0.98 * static_cast<double>(each.expected.count())) << to_string(each.test);
}

}  // namespace
}  // namespace longhaul::harness
