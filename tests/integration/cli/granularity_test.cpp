// --granularity of `simulate`: the same times, with what lies below blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(Granularities, BothGranularitiesGiveTheSameNanosecond) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kOperators);
  const auto run = [&](const std::string& granularity) {
    return longhaul_run(
        {"simulate", scenario, "--schedule", "static", "--granularity", granularity, "--json"});
  };
  const Outcome blocks = run("block");
  const Outcome operators = run("operator");
  ASSERT_EQ(blocks.code, 0) << blocks.err;
  ASSERT_EQ(operators.code, 0) << operators.err;
  nlohmann::json inside = operators.json()["schedules"];
  for (nlohmann::json& schedule : inside) {
    EXPECT_GE(schedule["operators"]["operators"], schedule["operators"]["blocks"]);
    schedule.erase("operators");
  }
  EXPECT_EQ(inside, blocks.json()["schedules"]);
}

TEST(Granularities, SaysWhichOperatorsTakeTheTime) {
  const TempDir dir;
  const Outcome run = longhaul_run({"simulate", dir.write("s.toml", kOperators), "--schedule",
                                    "zb-h1", "--granularity", "operator", "--wide"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Which operators take the time of the blocks"));
  // 90, 60 and 30 of 180 ns a microbatch; 5 + 3 operators in its F, D and W, and 2 steps in all.
  EXPECT_THAT(run.out, ::testing::ContainsRegex(
                           "of blocks \\[%\\] +operators +lists +qkv +down +attention"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("zb-h1 +34 +[0-9]+ +50.0 +33.3 +16.7"));
}

TEST(Granularities, TracesOfOperatorsNameThem) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  ASSERT_EQ(longhaul_run({"simulate", dir.write("s.toml", kOperators), "--schedule", "1f1b",
                          "--granularity", "operator", "--out", trace})
                .code,
            0);
  const Outcome checked = longhaul_run({"check", trace});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  const std::string csv = dir.path("t.csv");
  ASSERT_EQ(longhaul_run({"trace", "export", trace, "--format", "csv", "--out", csv}).code, 0);
  EXPECT_THAT(file_text(csv), HasSubstr(",qkv.wgrad,"));
}

TEST(Granularities, RefusesOperatorsThatNothingNames) {
  const TempDir dir;
  const Outcome run = longhaul_run({"simulate", dir.write("s.toml", kUniform), "--schedule", "1f1b",
                                    "--granularity", "operator"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("nothing says which operators the blocks of uniform have"));
  const Outcome unknown = longhaul_run(
      {"simulate", dir.path("s.toml"), "--schedule", "1f1b", "--granularity", "operators"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--granularity: unknown granularity \"operators\". Did you "
                                     "mean \"operator\"?"));
}

}  // namespace
}  // namespace longhaul::test
