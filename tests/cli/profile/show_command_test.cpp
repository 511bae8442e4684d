// `profile show`, `compare`, `import`, `explain`, and `needed --profile`, on the files for
// examples.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

const std::string kProfiles = testing::in_checkout("benchmarks/profiles/");

TEST(ProfileShow, AddsUpBlocks) {
  const TempDir dir;
  const std::string profile = dir.write("p.csv",
                                        "part,block,operator,shape,type,calls,median_ns\n"
                                        "layer,F,gemm,m=3 n=8 k=4 nt,f16,2,100\n"
                                        "layer,F,copy,count=9,f16,1,7\n"
                                        "layer,D,gemm,m=6 n=8 k=4 nn,f16,1,190\n");
  const Outcome run = longhaul_run({"profile", "show", profile, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  EXPECT_EQ(json["operators"], 3);
  EXPECT_EQ(json["blocks"][1]["block"], "F");
  EXPECT_EQ(json["blocks"][1]["sum_ns"], 207);
  EXPECT_TRUE(json["laws"][0]["left_out"].is_null());  // one copy
  EXPECT_EQ(json["laws"][1]["shapes"], 2);
}

TEST(ProfileCompare, JoinsOperators) {
  const TempDir dir;
  const std::string header = "part,block,operator,shape,type,calls,median_ns\n";
  const std::string a =
      dir.write("a.csv", header + "layer,F,g,m=1,f16,1,100\nlayer,F,x,,f16,1,5\n");
  const std::string b =
      dir.write("b.csv", header + "layer,F,g,m=1,f16,1,150\nlayer,D,x,,f16,1,5\n");
  const Outcome run = longhaul_run({"profile", "compare", a, b, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto operators = run.json()["operators"];
  ASSERT_EQ(operators.size(), 3U);
  EXPECT_EQ(operators[0]["ratio"], 1.5);
  EXPECT_TRUE(operators[1]["b_ns"].is_null());
  EXPECT_TRUE(operators[2]["a_ns"].is_null());
}

TEST(ProfileImport, WritesWhatAScenarioTakes) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"profile", "import", kProfiles + "tiny-kineto.json", "--out",
                    dir.path("operators.csv"), "--tasks", dir.path("tasks.csv"), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["operators"][0]["shape"], "m=32 n=192 k=64");
  EXPECT_THAT(file_text(dir.path("operators.csv")),
              HasSubstr("layer,F,gemm,m=32 n=192 k=64,f32,1,1,9500,9500\n"));
  EXPECT_THAT(file_text(dir.path("tasks.csv")),
              HasSubstr("gemm m=32 n=192 k=64,sgemm_32x32_tn,0,9500,0\n"));
  EXPECT_EQ(longhaul_run({"profile", "show", dir.path("operators.csv")}).code, 0);
  const Outcome none = longhaul_run({"profile", "import", dir.write("x.json", "{}")});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("traceEvents"));
}

TEST(ProfileExplain, PutsAPredictionBesideATrace) {
  const Outcome run = longhaul_run(
      {"profile", "explain", kProfiles + "tiny-kineto.json", kProfiles + "tiny.toml", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::map<std::string, std::string> status;
  for (const auto& each : operators_of(run))
    status[each["operator"].get<std::string>() + ' ' + each["shape"].get<std::string>()] =
        each["status"];
  EXPECT_EQ(status.at("gemm m=32 n=192 k=64 nt"), "faster");  // 9.5 us of 41.3
  EXPECT_EQ(status.at("swiglu rows=32 width=96"), "missing in the trace");
}

TEST(ProfileExplain, TakesTheProfileThatSetNames) {
  const std::vector<std::string> command{
      "profile", "explain", kProfiles + "tiny-kineto.json", kProfiles + "tiny.toml",
      "--json",  "--set"};
  std::vector<std::string> none = command, missing = command;
  none.emplace_back("costs.profile=");
  missing.emplace_back("costs.profile=missing.csv");
  const Outcome run = longhaul_run(none);
  ASSERT_EQ(run.code, 0) << run.err;
  for (const auto& each : operators_of(run)) EXPECT_EQ(each["predicted_ns"], nullptr);
  EXPECT_THAT(longhaul_run(missing).err, HasSubstr("missing.csv"));
}

TEST(ProfileNeeded, TakesShapesThatWereNotMeasuredFromTheirNeighbours) {
  const TempDir dir;
  const std::vector<std::string> command{
      "profile", "needed", kProfiles + "tiny.toml", "--profile", kProfiles + "tiny-f32.csv",
      "--json"};
  const auto asked = [&](std::vector<std::string> more) {
    std::vector<std::string> words = command;
    words.insert(words.end(), more.begin(), more.end());
    return longhaul_run(words);
  };
  Outcome run = asked({});
  ASSERT_EQ(run.code, 0) << run.err;
  for (const auto& each : operators_of(run)) EXPECT_EQ(each["basis"], "measured");
  run = asked({"--set", "model.sequence_length=64", "--out", dir.path("p.csv")});
  ASSERT_EQ(run.code, 0) << run.err;
  double beyond = 1;
  for (const auto& each : operators_of(run))
    beyond = std::max(beyond, each["beyond"].get<double>());
  EXPECT_GT(beyond, 1.9);
  EXPECT_LT(beyond, 4.1);
  const Outcome simulated = longhaul_run({"simulate", kProfiles + "tiny.toml", "--schedule", "1f1b",
                                          "--set", "model.sequence_length=64", "--set",
                                          "costs.profile=" + dir.path("p.csv"), "--json"});
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  run = asked({"--set", "model.sequence_length=2048"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("times beyond the shapes that were measured"));
  EXPECT_EQ(asked({"--set", "model.sequence_length=2048", "--extrapolate"}).code, 0);
}

}  // namespace
}  // namespace longhaul::test
