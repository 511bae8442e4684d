#include <map>
#include <sstream>

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

/// (t, d, p) = (4, 2, 3), as in vTrain's figure 3: three layers between embedding and head, M = 2.
const std::string kFigure3 = R"([model]
layers = 6
hidden = 64
intermediate = 128
heads = 4
vocabulary = 64
sequence_length = 8
mlp = "gelu"
[parallel]
stages = 3
replicas = 2
tensor = 4
microbatches = 2
gradient_sync = "all-reduce"
)";

/// Does following the edges from nodes without a predecessor reach every node?
bool is_without_cycles(const std::string& dot, std::size_t nodes) {
  std::map<std::string, std::vector<std::string>> after;
  std::map<std::string, int> before;
  std::istringstream lines{dot};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" -> ");
    const std::size_t label = line.find(" [label=");
    if (arrow != std::string::npos) {
      const std::string from = line.substr(2, arrow - 2);
      const std::string to = line.substr(arrow + 4, line.find(';') - arrow - 4);
      after[from].push_back(to);
      ++before[to];
    } else if (label != std::string::npos) {
      before.try_emplace(line.substr(4, label - 4), 0);
    }
  }
  std::vector<std::string> ready;
  for (const auto& [name, count] : before)
    if (count == 0) ready.push_back(name);
  std::size_t reached = 0;
  while (!ready.empty()) {
    const std::string name = ready.back();
    ready.pop_back();
    ++reached;
    for (const std::string& next : after[name])
      if (--before[next] == 0) ready.push_back(next);
  }
  return reached == nodes && before.size() == nodes;
}

TEST(OpsCommand, DrawsTheOperatorGraphOfFigure8) {
  const TempDir dir;
  const std::string scenario = dir.write("figure3.toml", kFigure3);
  const Outcome run = longhaul_run(
      {"ops", scenario, "--schedule", "1f1b", "--graph", dir.path("graph.dot"), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  const auto& kinds = json["kinds"];
  // Four layers, two microbatches.
  for (const char* kind : {"F attention_norm", "F qkv", "F attention", "F output", "F up", "F gelu",
                           "F down", "D attention", "W qkv", "W down"})
    EXPECT_EQ(kinds[kind], 4 * 2) << kind;
  EXPECT_EQ(kinds["F embedding"], 2);
  EXPECT_EQ(kinds["F loss"], 2);
  EXPECT_EQ(kinds["tp all_reduce"], 2 * 2 * 4 * 2);  // two in each pass of a layer
  EXPECT_EQ(kinds["dp all_reduce"], 3);              // one a stage (figure 5b)
  EXPECT_EQ(kinds["send"], 2 * 2 * 2);               // two borders, both ways
  EXPECT_EQ(kinds["optimizer"], 3);
  const std::string dot = file_text(dir.path("graph.dot"));
  EXPECT_TRUE(is_without_cycles(dot, json["nodes"]));
  const Outcome again =
      longhaul_run({"ops", scenario, "--schedule", "1f1b", "--graph", dir.path("graph.dot")});
  EXPECT_EQ(again.code, 2);
}

TEST(OpsCommand, AGraphChoosesNoOps) {
  const TempDir dir;
  const std::string scenario = dir.write("figure3.toml", kFigure3);
  for (const auto& [option, value] :
       {std::pair{"--rank", "1"}, std::pair{"--granularity", "operator"}}) {
    const Outcome run = longhaul_run(
        {"ops", scenario, "--schedule", "1f1b", "--graph", dir.path("g.dot"), option, value});
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(std::string{option} + " and --graph are both given"));
  }
  EXPECT_EQ(dir.files(), 1U);
}

}  // namespace
}  // namespace longhaul::test
