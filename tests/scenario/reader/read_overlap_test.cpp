#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Scenario with_overlap(const std::string& line, const std::vector<std::string>& set = {}) {
  return parse_scenario(joined(kLines) + "[overlap]\n" + line, "s.toml", set);
}

TEST(ReadOverlap, OneSlowdownIsOfAllLevels) {
  EXPECT_EQ(parse_scenario(joined(kLines), "s.toml").overlap, OverlapSlowdown{});
  EXPECT_EQ(with_overlap("slowdown = 1.3").overlap, (OverlapSlowdown{1.3, 1.3, 1.3}));
  EXPECT_EQ(with_overlap("slowdown = 2").overlap.largest(), 2);
  EXPECT_EQ(with_overlap("slowdown = 1").overlap, OverlapSlowdown{});
}

TEST(ReadOverlap, ATableHasOneForSomeLevels) {
  EXPECT_EQ(with_overlap("slowdown = {node = 1.3, datacenter = 1.1, wan = 1.0}").overlap,
            (OverlapSlowdown{1.3, 1.1, 1}));
  EXPECT_EQ(with_overlap("slowdown = {wan = 1000}").overlap, (OverlapSlowdown{1, 1, 1000}));
  const std::vector<std::string> set{"overlap.slowdown.wan=1.5"};
  EXPECT_EQ(with_overlap("slowdown = {node = 2}", set).overlap, (OverlapSlowdown{2, 1, 1.5}));
}

TEST(ReadOverlap, IsKeptToAThousandth) {
  EXPECT_EQ(with_overlap("slowdown = 1.23449").overlap.wan, 1.234);
  EXPECT_EQ(with_overlap("slowdown = 1.0004").overlap, OverlapSlowdown{});
}

TEST(ReadOverlap, RefusesInOneLine) {
  const auto said = [](const std::string& line) {
    return complaint(joined(kLines) + "[overlap]\n" + line);
  };
  EXPECT_THAT(said("slowdown = 0.9"),
              AllOf(StartsWith("s.toml:17:12: overlap.slowdown = 0.9"), HasSubstr("1 to 1000")));
  EXPECT_THAT(said("slowdown = {wan = -2}"),
              HasSubstr("overlap.slowdown.wan = -2 is out of range"));
  EXPECT_THAT(said("slowdown = 1001"), HasSubstr("out of range"));
  EXPECT_THAT(said("slowdown = nan"), HasSubstr("out of range"));
  EXPECT_THAT(said("slowdown = \"1.3\""), HasSubstr("is no number"));
  EXPECT_THAT(said("slowdown = [1.3]"), HasSubstr("is no number"));
  EXPECT_THAT(said("slowdown = {lan = 2}"),
              HasSubstr("unknown key \"lan\" (in overlap.slowdown). Did you mean \"wan\"?"));
  EXPECT_THAT(said("slow = 2"), HasSubstr("unknown key \"slow\" (in overlap)"));
  EXPECT_THAT(said(""), HasSubstr("overlap.slowdown is missing"));
}

TEST(ReadOverlap, ReadsPieces) {
  EXPECT_EQ(parse_scenario(joined(kLines), "s.toml").pieces, (OverlapPieces{4, {}}));
  const Scenario scenario = with_overlap("max_chunks = 8\nsplit_overhead = \"10us\"");
  EXPECT_EQ(scenario.pieces, (OverlapPieces{8, 10us}));
  EXPECT_EQ(scenario.overlap, OverlapSlowdown{});
  EXPECT_EQ(with_overlap("split_overhead = \"10us\"", {"run.time_scale=0.5"}).as_played().pieces,
            (OverlapPieces{4, 5us}));
  EXPECT_THAT(complaint(joined(kLines) + "[overlap]\nmax_chunks = 0"), HasSubstr("out of range"));
  EXPECT_THAT(complaint(joined(kLines) + "[overlap]\nsplit_overhead = 3"),
              HasSubstr("no duration"));
}

// 2^62 ns are 146 years.
TEST(ReadOverlap, CountsInTheLongestIteration) {
  const std::string weeks = with_line(2, "forward = \"300h\"");
  EXPECT_EQ(complaint(weeks), "accepted");
  EXPECT_THAT(complaint(weeks + "[overlap]\nslowdown = 1000"), HasSubstr("146 is the limit"));
}

}  // namespace
}  // namespace longhaul::scenario
