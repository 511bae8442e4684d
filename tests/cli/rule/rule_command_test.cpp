#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

Outcome operation(std::vector<std::string> more) {
  more.insert(more.begin(), {"rule", "operation", "--comp", "8ms", "--comm", "6ms", "--inter-cost",
                             "5ms", "--intra-cost", "1ms", "--inter-size", "2", "--intra-size", "8",
                             "--max-chunks", "4", "--json"});
  return longhaul_run(more);
}

TEST(RuleCommand, SaysInWhichPartsACollectiveIsCut) {
  const Outcome even = operation({"--in-cost", "2ms"});
  ASSERT_EQ(even.code, 0) << even.err;
  EXPECT_EQ(even.json()["fractions"], (std::vector<std::string>{"1/3", "1/3", "1/3"}));
  EXPECT_EQ(even.json()["granularity"], (std::vector{1. / 3, 1. / 3, 1. / 3}));
  EXPECT_EQ(operation({"--in-cost", "7ms"}).json()["granularity"], (std::vector{1.}));
  EXPECT_EQ(operation({"--in-cost", "5.5ms", "--grouped"}).json()["granularity"],
            (std::vector{0.125, 0.875}));
  EXPECT_EQ(operation({"--in-cost", "2000000", "--grouped"}).json()["granularity"],
            (std::vector{0.5, 0.0625, 0.4375}));
}

TEST(RuleCommand, SaysWhatALayerTakes) {
  const std::vector<std::string> words{"rule",     "layer", "--w-ag",   "3ms", "--g-act",  "4ms",
                                       "--g-w",    "4ms",   "--act-ag", "2ms", "--act-rs", "2ms",
                                       "--g-w-rs", "3ms",   "--others", "1ms", "--json"};
  const Outcome run = longhaul_run(words);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["t1_ns"], 14'000'000);
  EXPECT_EQ(run.json()["t2_ns"], 13'000'000);
}

Outcome model(const std::string& activation, const std::string& memory) {
  return longhaul_run({"rule", "model", "--c-ag", "16ms", "--c-rs", "24ms", "--c-fw", "2ms",
                       "--c-bw", "4ms", "--activation", activation, "--memory", memory,
                       "--microbatches", "16", "--json"});
}

TEST(RuleCommand, SaysHowManyMicrobatchesAreLaunchedTogether) {
  const Outcome run = model("1GiB", "8GiB");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["t_ns"], 0);
  EXPECT_EQ(run.json()["l1"], 8);
  EXPECT_EQ(run.json()["l2"], 6);
}

TEST(RuleCommand, SaysNoWhereNothingFits) {
  const Outcome run = model("3", "2");
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(run.json()["t_ns"].is_null());
  EXPECT_TRUE(run.json()["l1"].is_null());
}

TEST(RuleCommand, NamesTheOptionThatIsWrong) {
  const Outcome missing = longhaul_run({"rule", "operation", "--comm", "6ms"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--in-cost: nothing is given"));
  const Outcome grouped =
      longhaul_run({"rule", "operation", "--comm", "6ms", "--in-cost", "2ms", "--grouped"});
  EXPECT_THAT(grouped.err, HasSubstr("--comp: nothing is given"));
  const Outcome unit = longhaul_run({"rule", "operation", "--comm", "6msec", "--in-cost", "2ms"});
  EXPECT_EQ(unit.code, 2);
  EXPECT_THAT(unit.err, HasSubstr("--comm"));
  const Outcome count = operation({"--in-cost", "2ms", "--max-chunks", "0"});
  EXPECT_EQ(count.code, 2);
}

}  // namespace
}  // namespace longhaul::test
