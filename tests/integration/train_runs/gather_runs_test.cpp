// Whole runs of bench_train whose nodes sum gradients: numbers that other code gets too.
#include "integration/train_runs/train_runs_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Four replicas of unequal batches in two nodes, one in each site.
std::string two_nodes() {
  std::string text{kThreeReplicas};
  const auto replace = [&](std::string_view what, std::string_view by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace("replicas = 3", "replicas = 4");
  replace("batch = [2, 1, 3]", "batch = [2, 1, 3, 1]\ngather = \"node\"");
  replace("compress = \"100us\"", "gather = \"50us\"\ncompress = \"100us\"");
  replace("replicas = \"2\"", "replicas = \"2-3\"");
  return text + R"([[node]]
datacenter = "west"
gpus = 2
device = "10Gbps"
device_latency = "10us"
[[node]]
datacenter = "east"
gpus = 2
)";
}

class GatherRuns : public TrainRuns {
protected:
  GatherRuns() { write_scenario(two_nodes()); }
  /// On ranks that are threads.
  [[nodiscard]] std::vector<std::string> threads(const std::string& methods,
                                                 std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--ranks-per-process", "4"});
    return words(methods, std::move(more));
  }
  void expect_the_numbers_of_other_code() const {
    for (const nlohmann::json& curve : curves()) {
      SCOPED_TRACE(curve["method"].get<std::string>());
      EXPECT_TRUE(curve["replay"]["equal"].get<bool>());
      EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>());
      EXPECT_TRUE(curve["replicas_equal"].get<bool>());
      EXPECT_EQ(curve["check"], "ok");
      EXPECT_EQ(curve["settings"]["gather"], "node");
      EXPECT_LT(curve["losses"].back().get<double>(), curve["losses"].front().get<double>());
      if (!curve["mass"]["lost_relative"].is_null()) {
        EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
      }
    }
  }
};

/// Every exchange and method, by processes.
TEST_F(GatherRuns, GetTheNumbersOfOtherCode) {
  ASSERT_EQ(run(4, words("none,fp16,int8,byteps,block,threshold:exchange=direct,"
                         "topk:exchange=sites,block:exchange=sites:values=int8,randomk:share=each,"
                         "stella,stella:exchange=sites:values=bf16:index=gaps,"
                         "topk:feedback=0:index=coo16,bytepscompress,none+hetero")),
            0)
      << output();
  expect_the_numbers_of_other_code();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 14U);
  EXPECT_FALSE(all[4]["mass"]["lost_relative"].is_null());
  EXPECT_EQ(all[9]["versions"].front().size(), 4U) << "of each replica";
}

/// A site of two nodes, of which one has a single replica, beside a site without nodes.
TEST_F(GatherRuns, GetTheNumbersOfOtherCodeWhereNodesDiffer) {
  std::string text = two_nodes();
  const auto replace = [&](std::string_view what, std::string_view by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace("replicas = \"0-1\"", "replicas = \"0-2\"");
  replace("replicas = \"2-3\"", "replicas = \"3\"");
  text.resize(text.rfind("[[node]]"));
  write_scenario(text);
  for (const char* const buffers : {"1", "2"}) {
    ASSERT_EQ(run(0, threads("none,block,topk:exchange=sites,stella:exchange=sites,stella",
                             {"--set", std::string{"train.buffers="} + buffers})),
              0)
        << output();
    expect_the_numbers_of_other_code();
    std::filesystem::remove_all(out());
  }
}

/// Tasks that take no time are left out of the plan, but for the sum itself.
TEST_F(GatherRuns, GetTheNumbersOfOtherCodeWithoutCosts) {
  std::string text = two_nodes();
  const std::size_t from = text.find("[train.costs]"), to = text.find("[[datacenter]]");
  text.erase(from, to - from);
  write_scenario(text);
  ASSERT_EQ(run(0, threads("none,block,stella")), 0) << output();
  expect_the_numbers_of_other_code();
}

/// Two stages: a node holds two ranks of each.
TEST_F(GatherRuns, GetTheNumbersOfOtherCodeInPipelines) {
  std::vector<std::string> more{"--schedule",
                                "1f1b",
                                "--set",
                                "parallel.stages=2",
                                "--set",
                                "node.west.gpus=4",
                                "--set",
                                "node.east.gpus=4",
                                "--ranks-per-process",
                                "8"};
  ASSERT_EQ(run(0, words("none,block,stella:exchange=sites", more)), 0) << output();
  expect_the_numbers_of_other_code();
}

/// All numbers are sent: what nodes sum first differs by rounding alone, whatever the batches are.
TEST_F(GatherRuns, WeighEachSampleOnce) {
  std::vector<nlohmann::json> losses;
  for (const char* const gather : {"node", "none"}) {
    ASSERT_EQ(run(0, threads("none", {"--optimizer", "sgd", "--set",
                                      std::string{"train.gather="} + gather})),
              0)
        << output();
    losses.push_back(curves().front()["losses"]);
    std::filesystem::remove_all(out());
  }
  for (std::size_t i = 0; i < losses[0].size(); ++i)
    EXPECT_NEAR(losses[0][i].get<double>(), losses[1][i].get<double>(), 1e-5) << i;
}

/// A member's gradient loses something on its way to the sum.
TEST_F(GatherRuns, SeeWhatGetsLostInsideANode) {
  for (const int iteration : {3, 11})
    for (const int member : {1, 3}) {
      SCOPED_TRACE(fmt::format("rank {}, iteration {}", member, iteration));
      EXPECT_EQ(
          run(0, threads("block", {"--fault", fmt::format("corrupt@{}:0:{}", member, iteration)})),
          1)
          << output();
      const nlohmann::json curve = curves().front();
      EXPECT_EQ(curve["check"], "wrong");
      EXPECT_FALSE(curve["replay"]["equal"].get<bool>());
      EXPECT_GT(curve["mass"]["lost_relative"].get<double>(), 1e-5);
      EXPECT_TRUE(curve["replicas_equal"].get<bool>()) << "all step with the same sums";
      std::filesystem::remove_all(out());
    }
}

/// The leader goes on with its own weights: nothing is lost, but its members' next gradient is of
/// others.
TEST_F(GatherRuns, SeeWeightsThatComeWrong) {
  EXPECT_EQ(run(0, threads("block", {"--fault", "corrupt@0:0:3"})), 1) << output();
  const nlohmann::json curve = curves().front();
  EXPECT_EQ(curve["check"], "wrong");
  EXPECT_FALSE(curve["replay"]["equal"].get<bool>());
  EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
}

/// Killed in a node's member and in its leader; all bits are those of a run that was not.
TEST_F(GatherRuns, ThatWereKilledGoOnAsIfTheyHadNotBeen) {
  const std::string methods =
      "topk:exchange=sites,threshold:values=int8,stella:staleness=0:lazy=exact";
  ASSERT_EQ(run(4, words(methods)), 0) << output();
  const nlohmann::json whole = curves();
  const std::vector<std::string> kept{"--checkpoint-every", "5"};
  for (const int rank : {0, 1}) {
    std::filesystem::remove_all(out());
    std::vector<std::string> killed = kept, resumed = kept;
    killed.insert(killed.end(), {"--fault", fmt::format("kill@{}:3:11", rank)});
    resumed.emplace_back("--resume");
    EXPECT_NE(run(4, words(methods, killed)), 0);
    ASSERT_EQ(run(4, words(methods, resumed)), 0) << output();
    const nlohmann::json again = curves();
    ASSERT_EQ(again.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const char* const key : {"losses", "messages", "sent", "mass", "replay"})
        EXPECT_EQ(again[i][key], whole[i][key]) << key;
  }
}

/// Of a stale run, with updates that wait for the only buffer.
TEST_F(GatherRuns, GoOnFromCheckpointsWithOneBuffer) {
  ASSERT_EQ(run(0, threads("stella", {"--checkpoint-every", "4", "--set", "train.buffers=1"})), 0)
      << output();
  expect_the_numbers_of_other_code();
}

/// The one who made it is named, and not the one who sums.
TEST_F(GatherRuns, NameAGradientThatIsNotFinite) {
  EXPECT_EQ(run(4, words("none", {"--optimizer", "sgd", "--lr-grid", "1e9"})), 3) << output();
  EXPECT_THAT(output(), ContainsRegex("rank [0-3], part [01], iteration [0-9]+: the gradient of "
                                      "[a-z].*, number [0-9]+ is not finite"));
}

TEST_F(GatherRuns, GoOnAfterATrialThatDiverges) {
  ASSERT_EQ(run(0, threads("none", {"--optimizer", "sgd", "--lr-grid", "0.1,1e9"})), 0) << output();
  EXPECT_EQ(curves().front()["learning_rate"], 0.1);
}

TEST_F(GatherRuns, SayWhatCannotBe) {
  for (const char* const method : {"dgc", "powersgd:2", "onebit", "demo", "espresso"}) {
    EXPECT_EQ(run(0, threads(method)), 2) << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("train.gather = \"node\""), HasSubstr(method)));
  }
  EXPECT_EQ(run(0, threads("localsgd:2", {"--set", "parallel.microbatches=1"})), 2) << output();
  EXPECT_THAT(output(), HasSubstr("train.gather = \"node\""));
  EXPECT_EQ(run(0, threads("none", {"--set", "train.adapt.every=5"})), 2) << output();
  EXPECT_THAT(output(), HasSubstr("beside train.adapt.every = 5"));
}

}  // namespace
}  // namespace longhaul::testing
