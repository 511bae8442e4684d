// [prefill]: what answers prompts in the bubbles of training.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;

std::string serving(const std::string& lines) {
  return fmt::format("{}\n{}", fmt::join(kLines, "\n"), lines);
}

const std::string kByFlops = "[prefill]\nmodel = \"llama3-8b\"\nachieved_flops = \"150TFLOP/s\"\n";

TEST(ReadPrefill, NothingIsServedWithoutIt) {
  EXPECT_TRUE(parse_scenario(serving(""), "s.toml").served.empty());
}

TEST(ReadPrefill, TakesAPreset) {
  const Scenario scenario = parse_scenario(serving(kByFlops + "hop = \"2ms\"\nstages = 8\n"), "s");
  ASSERT_EQ(scenario.served.size(), 1U);
  const ServedModel& served = scenario.served.front();
  EXPECT_EQ(served.name, "llama3-8b");
  EXPECT_EQ(served.hop, 2ms);
  // 8.03 x 10^9 numbers, as its authors count: 16.06 GB in fp16, 2 GB in each of 8 stages.
  EXPECT_EQ(served.dimensions->parameters(), 8'030'261'248);
  EXPECT_EQ(served.dimensions->weights(), Bytes{16'060'522'496});
  EXPECT_EQ(served.dimensions->kv(8192), Bytes{1 << 30});
}

TEST(ReadPrefill, SeveralAreNamed) {
  const std::string two = "[[prefill]]\nmodel = \"llama3-8b\"\nachieved_flops = \"100TFLOP/s\"\n";
  EXPECT_THAT(complaint(serving(two + two)), HasSubstr("two [[prefill]] \"llama3-8b\""));
  EXPECT_EQ(complaint(serving(two + "name = \"a\"\n" + two)), "accepted");
}

TEST(ReadPrefill, RefusesWhatDoesNotFit) {
  EXPECT_THAT(complaint(serving("[prefill]\nmodel = \"lama3-8b\"\n")),
              HasSubstr("Did you mean \"llama3-8b\"?"));
  EXPECT_THAT(complaint(serving("[prefill]\nmodel = \"llama3-8b\"\n")),
              HasSubstr("achieved_flops"));
  EXPECT_THAT(complaint(serving("[prefill]\nachieved_flops = \"100TFLOP/s\"\n")),
              HasSubstr("model"));
  EXPECT_THAT(complaint(serving(kByFlops + "chunks = 3\n")), HasSubstr("chunks"));
  EXPECT_THAT(complaint(serving(kByFlops + "memory = \"4GB\"\nstages = 2\n")),
              HasSubstr("Use 5 stages or more."));
  EXPECT_EQ(complaint(serving(kByFlops + "memory = \"4GB\"\nstages = 5\n")), "accepted");
}

TEST(ReadPrefill, SkewedPipelinesHaveStagesAndAPromptOfTheProfile) {
  const auto skewed = [](const char* lines) { return complaint(serving(kByFlops + lines)); };
  EXPECT_EQ(skewed("stages = 2\nskewed_for = 2048\n"), "accepted");
  EXPECT_THAT(skewed("skewed_for = 2048\n"), HasSubstr("has no effect with prefill.stages = 1"));
  EXPECT_THAT(skewed("stages = 2\nskewed_for = 0\n"), HasSubstr("prefill.skewed_for"));
  EXPECT_THAT(skewed("stages = 2\nskewed_fr = 2048\n"), HasSubstr("Did you mean \"skewed_for\"?"));
}

TEST(ReadPrefill, ASliceOfKeysAndValuesIsAByteAtLeast) {
  const auto sliced = [](const char* slice) {
    return serving(
        fmt::format("{}decode = {{rate = \"100Gbps\", slice = \"{}\"}}\n", kByFlops, slice));
  };
  EXPECT_EQ(parse_scenario(sliced("1B"), "s.toml").served.front().decode->slice, Bytes{1});
  EXPECT_THAT(complaint(sliced("0B")), HasSubstr("prefill.decode.slice = 0 sends nothing"));
}

TEST(ServedModelTimes, AreLinearBetweenPointsHalfANanosecondUp) {
  ServedModel model;
  model.profile = {{10, 100ns}, {20, 105ns}, {30, 103ns}};
  EXPECT_EQ(model.time(1), 100ns);
  EXPECT_EQ(model.time(11), 101ns) << "100.5";
  EXPECT_EQ(model.time(12), 101ns);
  EXPECT_EQ(model.time(20), 105ns);
  EXPECT_EQ(model.time(25), 104ns);
  EXPECT_EQ(model.time(30), 103ns);
  EXPECT_EQ(model.time(31), std::nullopt);
}

TEST(ServedModelTimes, FollowFromFlopsDownToTheFloor) {
  ServedModel model;
  model.dimensions = ServedDimensions{1, 8, 16, 2, 2, 4, 10, false};
  // Matrices 4 x 8 x 8 + 3 x 8 x 16 = 640 numbers; attention 2 x 100 x 8; the head 2 x 80.
  EXPECT_DOUBLE_EQ(model.dimensions->flops(10), 2 * 640 * 10 + 2 * 100 * 8 + 160);
  model.achieved_flops = 1e9;
  EXPECT_EQ(model.time(10), Duration{14'560});
  model.floor = 20us;
  EXPECT_EQ(model.time(10), 20us);
}

TEST(ServedModelTimes, OfStagesAddUp) {
  ServedModel model;
  model.stages = 3;
  EXPECT_EQ(model.stage_time(Duration{11}, 0), Duration{5});
  EXPECT_EQ(model.stage_time(Duration{11}, 1), Duration{3});
  EXPECT_EQ(model.stage_time(Duration{11}, 2), Duration{3});
}

}  // namespace
}  // namespace longhaul::scenario
