#include "harness/options/stopping.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/statistics/sample.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

class StoppingOnRanks : public testing::OnRanks {};

std::string complaint(const std::string& confidence, std::optional<int> most, int iterations) {
  try {
    (void)stopping_rule(confidence, most, iterations);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Stopping, TheNumberIsFixedUnlessAWidthIsGiven) {
  const StoppingRule rule = stopping_rule("", std::nullopt, 3);
  EXPECT_TRUE(rule.is_fixed());
  EXPECT_FALSE(is_enough(rule, std::vector<double>{1, 1}));
  EXPECT_TRUE(is_enough(rule, std::vector<double>{1, 2, 9}));
  EXPECT_EQ(stopped_json(rule, std::vector<double>{1, 2, 9})["reason"], "fixed number");
  EXPECT_TRUE(stopped_json(rule, std::vector<double>{1, 2, 9})["width_percent"].is_null());
}

TEST(Stopping, NeedsAsManyAsAnIntervalNeeds) {
  const StoppingRule rule = stopping_rule("5%", std::nullopt, 3);
  EXPECT_DOUBLE_EQ(rule.width, 0.05);
  EXPECT_EQ(rule.least, 6);
  EXPECT_EQ(rule.most, 100);
  EXPECT_EQ(stopping_rule("5%", 20, 8).least, 8);
  EXPECT_EQ(stopping_rule("5%", std::nullopt, 300).most, 300);
  EXPECT_FALSE(is_enough(rule, std::vector<double>(5, 1.0)));
  EXPECT_TRUE(is_enough(rule, std::vector<double>(6, 1.0)));
}

TEST(Stopping, EndsWhereTheIntervalIsNarrowerThanAsked) {
  const StoppingRule rule = stopping_rule("5%", 10, 6);
  const std::vector<double> wide{100, 101, 102, 103, 104, 105};  // 5 wide of 102.5: 4.88%
  EXPECT_TRUE(is_enough(rule, wide));
  EXPECT_EQ(stopped_json(rule, wide)["reason"], "narrow enough");
  EXPECT_EQ(stopping_note("x", rule, wide), "");
  std::vector<double> wider{100, 101, 102, 103, 104, 106};
  EXPECT_FALSE(is_enough(rule, wider));
  wider.insert(wider.end(), {90, 110, 90, 110});
  EXPECT_TRUE(is_enough(rule, wider));
  EXPECT_EQ(stopped_json(rule, wider)["reason"], "at most so many");
  EXPECT_THAT(stopping_note("x", rule, wider), HasSubstr("x: stopped after 10"));
}

TEST(Stopping, RefusesWhatItCannotDo) {
  EXPECT_THAT(complaint("5", std::nullopt, 8), HasSubstr("Write --confidence 5%"));
  EXPECT_THAT(complaint("0%", std::nullopt, 8), HasSubstr("above 0%"));
  EXPECT_THAT(complaint("-1%", std::nullopt, 8), HasSubstr("above 0%"));
  EXPECT_THAT(complaint("nan%", std::nullopt, 8), HasSubstr("above 0%"));
  EXPECT_THAT(complaint("100%", std::nullopt, 8), HasSubstr("below 100%"));
  EXPECT_THAT(complaint("5%%", std::nullopt, 8), HasSubstr("is no width"));
  EXPECT_THAT(complaint("5%", 4, 3), HasSubstr("--max-iterations 4 is less"));
  EXPECT_THAT(complaint("5%", 10, 12), HasSubstr("a smaller --iterations"));
  EXPECT_THAT(complaint("", 10, 8), HasSubstr("has no effect without --confidence"));
}

/// Only rank 0 has a sample; the others follow it.
RANKS_TEST(StoppingOnRanks, AllStopTogether) {
  const StoppingRule rule = stopping_rule("5%", 9, 6);
  std::vector<double> sample;
  int done = 0;
  while (goes_on(rule, done, sample, ranks().world())) {
    ++done;
    if (ranks().is_first()) sample.push_back(done == 1 ? 1000 : 100 + done);
  }
  // Of 7 values the interval is the whole range; of 9 it leaves the first out, but then it ends.
  EXPECT_EQ(done, 9);
  EXPECT_EQ(ranks().world().minimum(done), ranks().world().maximum(done));
  EXPECT_FALSE(goes_on(stopping_rule("", std::nullopt, 3), 3, {}, ranks().world()));
}

/// A rule that looks again and again stops where the sample happens to agree, so that the interval
/// covers less often than 95%: by how much, docs/metrics.md says, from this.
TEST(Stopping, LookingAgainAndAgainCostsLittleCoverage) {
  constexpr int kTrials = 2000;
  Random random{1};
  const StoppingRule rule = stopping_rule("5%", std::nullopt, 6);
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> sample;
    while (!is_enough(rule, sample)) sample.push_back(100 + 4 * random.normal());
    const auto interval = summarize(sample).median_interval;
    covered += interval->low <= 100 && 100 <= interval->high ? 1 : 0;
  }
  RecordProperty("covered", covered);
  EXPECT_GT(covered, kTrials * 9 / 10);
}

}  // namespace
}  // namespace longhaul::harness
