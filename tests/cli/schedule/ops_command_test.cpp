#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(OpsCommand, ShowsWhatARankDoes) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kTwoSites);
  const Outcome run = longhaul_run({"ops", scenario, "--schedule", "1f1b", "--rank", "1"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("rank 1: replica 0, device 1, west"));
  EXPECT_THAT(run.out, HasSubstr("send of 1F0 (to 2)"));
  EXPECT_THAT(run.out, HasSubstr("recv of 0F0 (from 0)"));
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("rank 2:")));
}

TEST(OpsCommand, JsonHoldsEveryOpOnceAndMessagesHaveTwoSides) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"ops", dir.write("s.toml", kTwoSites), "--schedule", "zb-h1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::map<int, nlohmann::json> ops;
  const auto answer = run.json();
  for (const auto& rank : answer["ranks"]) {
    for (const auto& lane : rank["lanes"]) {
      for (const auto& op : lane["ops"]) EXPECT_TRUE(ops.emplace(op["op"], op).second);
    }
  }
  // 3 blocks for each of 8 microbatches on 4 devices; 2 directions over 3 boundaries, 2 sides each.
  EXPECT_EQ(ops.size(), 3U * 8 * 4 + 2U * 8 * 3 * 2);
  for (const auto& [id, op] : ops) {
    if (op["kind"] != "send") continue;
    EXPECT_EQ(ops[op["match"]]["kind"], "recv");
    EXPECT_EQ(ops[op["match"]]["match"], id);
  }
}

TEST(OpsCommand, NamesTheStepsOfCollectives) {
  const TempDir dir;
  const std::vector<std::string> words{"ops",        dir.write("s.toml", kTwoSites),
                                       "--schedule", "1f1b",
                                       "--rank",     "0",
                                       "--set",      "parallel.replicas=2",
                                       "--set",      "costs.weights=8MiB"};
  const Outcome run = longhaul_run(words);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("send of step 0 of all_gather of chunk 0 (to 4)"));
  EXPECT_THAT(run.out, HasSubstr("recv of step 0 of reduce_scatter of chunk 0 (from 4)"));
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const auto answer = longhaul_run(as_json).json();
  int steps = 0;
  for (const auto& lane : answer["ranks"][0]["lanes"]) {
    for (const auto& op : lane["ops"]) {
      if (!op.contains("collective")) continue;
      ++steps;
      EXPECT_EQ(op["chunk"], 0);
      EXPECT_EQ(op["step"], 0);
    }
  }
  EXPECT_EQ(steps, 4);  // a ring of two, twice
}

TEST(OpsCommand, RefusesARankThatIsNotThere) {
  const TempDir dir;
  const Outcome run =
      longhaul_run({"ops", dir.write("s.toml", kUniform), "--schedule", "1f1b", "--rank", "4"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("no rank 4"));
}

TEST(OpsCommand, ShowsTheOperatorsBelowBlocks) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kOperators);
  const std::vector<std::string> words{"ops",    scenario, "--schedule",    "1f1b",
                                       "--rank", "0",      "--granularity", "operator"};
  const Outcome run = longhaul_run(words);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("0F0 qkv"));
  EXPECT_THAT(run.out, HasSubstr("0F0 attention"));
  EXPECT_THAT(run.out, HasSubstr("0B3 qkv.wgrad"));
  EXPECT_THAT(run.out, HasSubstr("optimizer of chunk 0"));
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const auto answer = longhaul_run(as_json).json();
  EXPECT_EQ(answer["granularity"], "operator");
  EXPECT_EQ(answer["ranks"][0]["lanes"][0]["ops"][1]["operator"], "attention");
  EXPECT_EQ(answer["ranks"][0]["lanes"][0]["ops"][1]["layer"], -1);
}

}  // namespace
}  // namespace longhaul::test
