#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ShardingOptions sharding_with(const std::vector<std::string>& set) {
  return parse_scenario(joined(kLines), "s.toml", set).parallel.sharding;
}

TEST(ReadSharding, HasDefaults) {
  const ShardingOptions options = sharding_with({});
  EXPECT_FALSE(options.sequence_parallel);
  EXPECT_EQ(options.unit_layers, std::nullopt);
  EXPECT_EQ(options.prefetch, 1);
  EXPECT_EQ(options.regather, Regather::always);
  EXPECT_EQ(options.bucket, std::nullopt);
  EXPECT_EQ(options.gradient_bytes, 2);
}

TEST(ReadSharding, TakesWordsAndCounts) {
  EXPECT_EQ(sharding_with({"parallel.unit=layer"}).unit_layers, 1);
  EXPECT_EQ(sharding_with({"parallel.unit=4"}).unit_layers, 4);
  EXPECT_EQ(sharding_with({"parallel.unit=operator"}).unit_layers, std::nullopt);
  EXPECT_EQ(sharding_with({"parallel.prefetch=0"}).prefetch, 0);
  EXPECT_EQ(sharding_with({"parallel.prefetch=memory"}).prefetch, std::nullopt);
  EXPECT_EQ(sharding_with({"parallel.regather=all-but-last"}).regather, Regather::all_but_last);
  EXPECT_EQ(sharding_with({"parallel.bucket=25MiB"}).bucket, 25_MiB);
  EXPECT_EQ(sharding_with({"parallel.gradient_bytes=4"}).gradient_bytes, 4);
  EXPECT_TRUE(sharding_with({"parallel.sequence_parallel=true"}).sequence_parallel);
}

TEST(ReadSharding, TakesGroupsOfMicrobatches) {
  const auto group = [](const char* set) {
    return parse_scenario(joined(kLines), "s.toml", std::vector<std::string>{set})
        .parallel.microbatch_group;
  };
  EXPECT_FALSE(parse_scenario(joined(kLines), "s.toml", {}).parallel.microbatch_group);
  const auto both = group("parallel.microbatch_group=6");
  EXPECT_EQ((std::pair{both->forward, both->backward}), (std::pair{6, 6}));
  const auto each = group("parallel.microbatch_group=[8, 6]");
  EXPECT_EQ((std::pair{each->forward, each->backward}), (std::pair{8, 6}));
}

TEST(ReadSharding, RefusesInOneLine) {
  const auto said = [](const std::string& line) {
    return complaint(with_line(6, kLines[5] + "\n" + line));
  };
  EXPECT_THAT(said("unit = \"layers\""), HasSubstr("Did you mean \"layer\"?"));
  EXPECT_THAT(said("unit = 0"), HasSubstr("parallel.unit = 0 is out of range"));
  EXPECT_THAT(said("prefetch = -1"), HasSubstr("out of range"));
  EXPECT_THAT(said("regather = \"never\""), HasSubstr("always"));
  EXPECT_THAT(said("bucket = \"0B\""), HasSubstr("parallel.bucket holds nothing"));
  EXPECT_THAT(said("gradient_bytes = 3"), StartsWith("s.toml:7:18: parallel.gradient_bytes = 3"));
  EXPECT_THAT(said("microbatch_group = [2]"), HasSubstr("microbatch_group has 1 counts"));
  EXPECT_THAT(said("microbatch_group = 0"), HasSubstr("out of range"));
  EXPECT_THAT(said("bukket = \"1MiB\""), HasSubstr("Did you mean \"bucket\"?"));
}

TEST(ReadSharding, TensorRanksHaveWholeHeads) {
  const std::string model =
      "[model]\npreset = \"llama-small\"\n[parallel]\nstages = 1\nmicrobatches = 1\n";
  EXPECT_EQ(complaint(model + "tensor = 8"), "accepted");
  EXPECT_EQ(complaint(model + "tensor = 3"),
            "s.toml:6:10: parallel.tensor = 3 does not divide 32 heads (each rank has whole ones). "
            "Use a divisor.");
}

}  // namespace
}  // namespace longhaul::scenario
