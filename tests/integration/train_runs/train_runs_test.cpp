// Whole runs of bench_train: numbers that other code gets too.
#include <fstream>
#include <iterator>

#include "integration/train_runs/train_runs_fixture.hpp"
#include "planner/tune/family.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Every exchange and method, on unequal batches in two sites, with tasks of their own.
TEST_F(TrainRuns, GetTheNumbersOfOtherCode) {
  ASSERT_EQ(
      run(3, words("none,fp16,int8,byteps,block,threshold:exchange=direct,topk:exchange=sites,"
                   "block:exchange=sites:values=int8,randomk:share=each,stella,"
                   "stella:exchange=sites:values=bf16:index=gaps,topk:feedback=0:index=coo16,"
                   "powersgd:2,powersgd:3:exchange=ring")),
      0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 14U);
  for (const nlohmann::json& curve : all) {
    SCOPED_TRACE(curve["method"].get<std::string>());
    EXPECT_TRUE(curve["replay"]["equal"].get<bool>());
    EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>());
    EXPECT_EQ(curve["check"], "ok");
    EXPECT_EQ(curve["points"].size(), 4U);
    EXPECT_LT(curve["losses"].back().get<double>(), curve["losses"].front().get<double>());
  }
  EXPECT_EQ(all[0]["losses"], all[3]["losses"]) << "in what order parts travel changes no number";
  const std::string asked = "Asked: which of 14 methods trains tiny training (3 ranks)";
  EXPECT_THAT(file_text(out() + "/report.html"), HasSubstr(asked));
  const std::string again = (scratch_.path() / "again.html").string();
  program_ = {LONGHAUL_BINARY, "report"};
  ASSERT_EQ(run(0, {out(), "--out", again}), 0) << output();
  EXPECT_THAT(output(), HasSubstr(asked));
  EXPECT_TRUE(file_text(again) == file_text(out() + "/report.html"));
}

std::vector<planner::FamilyMember> members_of_run(const std::string& out) {
  std::ifstream file{out + "/curves.csv"};
  const std::string csv{std::istreambuf_iterator<char>{file}, {}};
  return planner::read_family(csv, "curves.csv");
}

/// `tune --family` reads how the methods of the record learned.
void expect_a_table_of(const nlohmann::json& all, const std::string& out) {
  const std::vector<planner::FamilyMember> members = members_of_run(out);
  ASSERT_EQ(members.size(), all.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const nlohmann::json& curve = all[i];
    EXPECT_EQ(members[i].method, curve["method"]);
    EXPECT_EQ(to_string(members[i].exchange), curve["settings"]["exchange"].get<std::string>());
    EXPECT_EQ(members[i].staleness, curve["settings"]["staleness"]);
    const auto& points = members[i].curves.at(0).points;
    ASSERT_EQ(points.size(), curve["points"].size());
    EXPECT_EQ(points.back().first, curve["points"].back()[0]);
    EXPECT_NEAR(points.back().second, curve["points"].back()[3].get<double>(), 1e-4);
    const auto exchanges = static_cast<double>(curve["losses"].size());
    const double more =
        members[i].early_exchanges * (members[i].early_wan_bytes - members[i].wan_bytes);
    EXPECT_NEAR(members[i].wan_bytes * exchanges + (members[i].early_exchanges > 0 ? more : 0),
                curve["wan"]["payload_bytes"].get<double>(), exchanges);
    if (members[i].method == "onebit:warmup=4") {
      EXPECT_EQ(members[i].early_exchanges, 4);
      EXPECT_GT(members[i].early_wan_bytes, 10 * members[i].wan_bytes) << "32 bits, and then one";
    } else if (members[i].method != "dgc:keep=1%:ramp=2:staleness=1") {
      EXPECT_EQ(members[i].early_exchanges, 0);
    }
  }
}

/// Methods with steps of their own, and replicas that step alone; what they mean to send is not
/// lost.
TEST_F(TrainRuns, OfRivalsGetTheNumbersOfOtherCode) {
  for (const auto& [methods, microbatches] :
       {std::pair{"dgc:keep=10%,dgc:keep=1%:ramp=2:staleness=1,demo:keep=10%:exchange=ring,"
                  "demo:keep=100%:staleness=1,onebit:warmup=4,espresso",
                  "2"},
        {"localsgd:3,diloco:4,diloco:4:exchange=direct,sparseloco:2:keep=5%,"
         "sparseloco:2:keep=100%:exchange=ring",
         "1"}}) {
    ASSERT_EQ(
        run(3, words(methods, {"--set", std::string{"parallel.microbatches="} + microbatches})), 0)
        << output();
    for (const nlohmann::json& curve : curves()) {
      SCOPED_TRACE(curve["method"].get<std::string>());
      EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>());
      EXPECT_EQ(curve["replay"]["largest_difference"].get<double>(), 0);
      EXPECT_TRUE(curve["replicas_equal"].get<bool>());
      EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
    }
    expect_a_table_of(curves(), out());
    std::filesystem::remove_all(out());
  }
}

/// Whatever a method sends: its own account and the other code see that something is missing.
TEST_F(TrainRuns, OfRivalsSeeWhereASetLosesANumber) {
  for (const auto& [method, iteration] : {std::pair{"dgc:keep=10%", 3},
                                          {"espresso", 3},
                                          {"demo:keep=10%", 3},
                                          {"onebit:warmup=2", 3},
                                          {"onebit:warmup=6", 3},
                                          {"localsgd:2", 3},
                                          {"diloco:2", 3},
                                          {"sparseloco:2:keep=5%", 3},
                                          {"streaming-diloco:4,2,1:feedback=1", 1}}) {
    SCOPED_TRACE(method);
    EXPECT_EQ(
        run(0, words(method, {"--fault", fmt::format("corrupt@1:0:{}", iteration),
                              "--ranks-per-process", "3", "--set", "parallel.microbatches=1"})),
        1)
        << output();
    const nlohmann::json curve = curves().front();
    EXPECT_EQ(curve["check"], "wrong");
    EXPECT_FALSE(curve["replay"]["equal"].get<bool>());
    EXPECT_GT(curve["mass"]["lost_relative"].get<double>(), 1e-5);
    std::filesystem::remove_all(out());
  }
}

/// Batches by throughput change how the samples are divided, and not what is learned from them:
/// each weighs once, also where replicas step alone and meet.
TEST_F(TrainRuns, WeighEachSampleOnceInUnequalBatches) {
  ASSERT_EQ(run(3, words("none,none+hetero,stella+hetero,diloco:2+hetero,localsgd:1,"
                         "localsgd:1+hetero",
                         {"--optimizer", "sgd", "--set", "datacenter.east.speed=0.5", "--set",
                          "parallel.microbatches=1"})),
            0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0]["settings"]["batch"], (std::vector{2, 1, 3}));
  EXPECT_EQ(all[1]["settings"]["batch"], (std::vector{3, 2, 1})) << "east is half as fast";
  for (const nlohmann::json& curve : all) {
    EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>()) << curve["method"];
    EXPECT_TRUE(curve["replicas_equal"].get<bool>()) << curve["method"];
  }
  for (const std::size_t other : {1U, 4U, 5U})
    for (std::size_t i = 0; i < all[0]["losses"].size(); ++i)
      EXPECT_NEAR(all[other]["losses"][i].get<double>(), all[0]["losses"][i].get<double>(), 1e-5)
          << all[other]["method"] << ", iteration " << i;
}

/// Fragments in the middle of an iteration, mixed in later or at once; sent as they are DiLoCo's.
TEST_F(TrainRuns, StreamFragmentsWithTheNumbersOfOtherCode) {
  ASSERT_EQ(run(3, words("streaming-diloco:4,2,1,streaming-diloco:4,2,0:exchange=direct,"
                         "streaming-diloco:4,1,3:bits=32,streaming-diloco:4,1,0:bits=32,"
                         "streaming-diloco:4,2,1:feedback=1,diloco:4:exchange=ring",
                         {"--set", "parallel.microbatches=1"})),
            0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 6U);
  for (const nlohmann::json& curve : all) {
    SCOPED_TRACE(curve["method"].get<std::string>());
    const bool forgets = curve["rival"]["bits"] == 4 && !curve["rival"]["feedback"].get<bool>();
    EXPECT_EQ(curve["mass"]["lost_relative"].is_null(), forgets);
    if (!forgets) {
      EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
    }
    EXPECT_TRUE(curve["replay"]["equal"].get<bool>());
    EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>());
    EXPECT_TRUE(curve["replicas_equal"].get<bool>());
    if (&curve != &all.back()) {
      EXPECT_EQ(curve["wan"]["payload_bytes"], curve["wan"]["nominal_bytes"]) << "as predicted";
    }
    EXPECT_LT(curve["losses"].back().get<double>(), curve["losses"].front().get<double>());
  }
  const std::vector<planner::FamilyMember> members = members_of_run(out());
  ASSERT_EQ(members.size(), 6U);
  EXPECT_EQ(members[0].fragments, 2);
  EXPECT_EQ(members[0].overlap, 1);
  EXPECT_EQ(members[5].fragments, 1);
  EXPECT_FALSE(members[0].has_host_tasks);
  EXPECT_EQ(all[3]["losses"], all[5]["losses"]) << "one fragment that is met at once is DiLoCo";
  EXPECT_EQ(all[3]["points"].back()[3], all[5]["points"].back()[3]);
  EXPECT_NE(all[4]["losses"], all[0]["losses"]) << "what rounding left was sent later";
  EXPECT_NE(all[0]["losses"], all[1]["losses"]);
  EXPECT_LT(all[0]["wan"]["payload_bytes"].get<double>(),
            all[3]["wan"]["payload_bytes"].get<double>() / 6);
}

/// Two rounds of each part: what MPI carries is what the plan has.
TEST_F(TrainRuns, SendBothFactorsAsPredicted) {
  ASSERT_EQ(run(0, words("powersgd:2,powersgd:2:exchange=direct", {"--ranks-per-process", "3"})), 0)
      << output();
  for (const nlohmann::json& curve : curves()) {
    SCOPED_TRACE(curve["method"].get<std::string>());
    EXPECT_EQ(curve["wan"]["payload_bytes"], curve["wan"]["nominal_bytes"]);
    EXPECT_LT(curve["wan"]["encoded_bytes"], curve["wan"]["payload_bytes"]) << "no envelopes";
    EXPECT_GT(curve["wan"]["payload_bytes"].get<int>(), 0);
    EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
    EXPECT_TRUE(curve["replicas_equal"].get<bool>());
  }
  std::filesystem::remove_all(out());
  EXPECT_EQ(run(0, words("powersgd:2:exchange=direct",
                         {"--fault", "corrupt@1:1:3", "--ranks-per-process", "3"})),
            1);
  EXPECT_FALSE(curves().front()["replay"]["equal"].get<bool>());
}

/// Two stages; one chunk of a rank, or two in turn; one buffer of weights or two.
TEST_F(TrainRuns, GetTheNumbersOfOtherCodeInPipelines) {
  for (const auto& [schedule, buffers] : {std::pair{"interleaved-1f1b", "2"}, {"1f1b", "1"}}) {
    SCOPED_TRACE(schedule);
    ASSERT_EQ(run(0, words("stella:exchange=sites,block,none",
                           {"--schedule", schedule, "--set", "parallel.stages=2", "--set",
                            std::string{"train.buffers="} + buffers, "--ranks-per-process", "6"})),
              0)
        << output();
    const nlohmann::json all = curves();
    ASSERT_EQ(all.size(), 3U);
    for (const nlohmann::json& curve : all) {
      EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>()) << curve["method"];
      EXPECT_TRUE(curve["replicas_equal"].get<bool>()) << curve["method"];
    }
    EXPECT_EQ(all[0]["versions"].size(), 12U) << "of each iteration";
    std::filesystem::remove_all(out());
  }
}

/// Three sites, of which each stage's replicas are divided over two in a way of their own.
TEST_F(TrainRuns, GetTheNumbersOfOtherCodeWhereStagesAreDividedInOtherWays) {
  std::string text{kThreeReplicas};
  text.replace(text.find("[[datacenter]]"), std::string::npos, R"([[datacenter]]
name = "west"
stages = "0"
replicas = "1-2"
[[datacenter]]
name = "east"
stages = "1"
replicas = "0,2"
[[datacenter]]
name = "south"
stages = "0"
replicas = "0"
[[datacenter]]
name = "north"
stages = "1"
replicas = "1"
[[link]]
between = "all"
latency = "500us"
bandwidth = "200Mbps"
)");
  write_scenario(text);
  ASSERT_EQ(run(0, words("stella:exchange=sites,none,powersgd:2,topk:exchange=sites:values=int8",
                         {"--schedule", "1f1b", "--set", "parallel.stages=2", "--ranks-per-process",
                          "6"})),
            0)
      << output();
  // Both ways, of 12 iterations: 2 microbatches of 6 samples, 8 tokens of 16 numbers of 4 bytes.
  constexpr std::int64_t kActivations = std::int64_t{2} * 12 * 2 * 6 * 8 * 16 * 4;
  for (const nlohmann::json& curve : curves()) {
    EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>()) << curve["method"];
    EXPECT_TRUE(curve["replicas_equal"].get<bool>()) << curve["method"];
    EXPECT_EQ(curve["sent"]["between_stages_bytes"], kActivations);
    EXPECT_EQ(curve["wan"]["between_stages_bytes"], kActivations) << "all stages are apart";
    EXPECT_GT(curve["wan"]["payload_bytes"].get<std::int64_t>(), kActivations);
  }
  const std::vector<planner::FamilyMember> members = members_of_run(out());
  ASSERT_EQ(members.size(), curves().size());
  for (std::size_t i = 0; i < members.size(); ++i)
    EXPECT_NEAR(12 * members[i].wan_bytes,
                curves()[i]["wan"]["payload_bytes"].get<double>() - kActivations, 12)
        << "activations are no part of an exchange";
}

/// Whichever rank sends it, and in the last iteration, after which no loss can show it: replica 0
/// or another is then without it.
TEST_F(TrainRuns, SeeWhereASetLosesABlock) {
  for (const int rank : {0, 1, 2})
    for (const int iteration : {3, 11}) {
      SCOPED_TRACE(fmt::format("rank {}, iteration {}", rank, iteration));
      EXPECT_EQ(run(0, words("block", {"--fault", fmt::format("corrupt@{}:0:{}", rank, iteration),
                                       "--ranks-per-process", "3"})),
                1)
          << output();
      const nlohmann::json curve = curves().front();
      EXPECT_EQ(curve["check"], "wrong");
      EXPECT_FALSE(curve["replicas_equal"].get<bool>());
      EXPECT_FALSE(curve["replay"]["equal"].get<bool>());
      EXPECT_GT(curve["mass"]["lost_relative"].get<double>(), 1e-5);
      std::filesystem::remove_all(out());
    }
}

/// Points of a composed curve are as far apart as the measured exchanges.
TEST_F(TrainRuns, ComposeTimesOfMeasuredExchanges) {
  ASSERT_EQ(
      run(0, words("none,localsgd:2,stella", {"--compose", "3", "--set", "parallel.microbatches=1",
                                              "--pace", "--ranks-per-process", "3"})),
      0)
      << output();
  const nlohmann::json all = curves();
  for (const nlohmann::json& curve : all) {
    SCOPED_TRACE(curve["method"].get<std::string>());
    const bool is_stale = curve["method"] == "stella";
    EXPECT_EQ(curve["kind"], is_stale ? "measured" : "composed");
    const int steps = curve["method"] == "localsgd:2" ? 2 : 1;
    const nlohmann::json& points = curve["points"];
    EXPECT_EQ(points.back()[0].get<int>(), 12) << "updates, local ones counted";
    std::int64_t before = 0;
    for (const nlohmann::json& point : points) {
      EXPECT_GT(point[1].get<std::int64_t>(), before);
      before = point[1].get<std::int64_t>();
      if (!is_stale) {
        EXPECT_EQ(before,
                  point[0].get<std::int64_t>() / steps * curve["period_ns"].get<std::int64_t>());
      }
    }
  }
}

/// A rate at which gradients overflow is a bad trial, not the end of the run.
TEST_F(TrainRuns, GoOnAfterATrialThatDiverges) {
  ASSERT_EQ(run(0, words("none", {"--optimizer", "sgd", "--lr-grid", "0.1,1e9",
                                  "--ranks-per-process", "3"})),
            0)
      << output();
  const nlohmann::json record = nlohmann::json::parse(std::ifstream{out() + "/record.json"});
  const nlohmann::json& trials = record["train"]["trials"];
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_TRUE(trials[1]["validation"].is_null());
  EXPECT_EQ(curves().front()["learning_rate"], 0.1);
  EXPECT_THAT(output(), HasSubstr("0.1 is at an end of the grid"));
}

TEST_F(TrainRuns, SayWhatCannotBe) {
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--ranks-per-process", "3"});
    EXPECT_EQ(run(0, words("stella", std::move(more))), 2) << output();
    return output();
  };
  EXPECT_THAT(refusal({"--set", "parallel.gradient_sync=all-reduce"}),
              HasSubstr("gradient_sync = \"compressed\""));
  EXPECT_THAT(refusal({"--data", "text:/no/such"}), HasSubstr("/no/such"));
  EXPECT_THAT(refusal({"--target", "loss"}), HasSubstr("--target loss=2.3"));
  EXPECT_THAT(refusal({"--methods", "stela"}), HasSubstr("stella"));
  EXPECT_THAT(refusal({"--methods", "topk:keep=0"}),
              HasSubstr("keep = \"0\" (a share above 0 and at most 1). Write 1%"));
  EXPECT_THAT(refusal({"--methods", "topk:keep"}), HasSubstr("topk:keep=5%"));
  EXPECT_THAT(refusal({"--methods", "topk,topk"}), HasSubstr("twice"));
  EXPECT_THAT(refusal({"--lr-grid", "fast"}), HasSubstr("--lr-grid"));
  EXPECT_THAT(refusal({"--methods", "none:keep=5%"}), HasSubstr("changes nothing"));
  EXPECT_THAT(refusal({"--target", "error=0.1"}), HasSubstr("have no class"));
  EXPECT_THAT(refusal({"--set", "train.adapt.every=5"}), HasSubstr("[train] has no preset"));
  std::filesystem::create_directories(out());
  std::ofstream{out() + "/notes.txt"} << "of another\n";
  EXPECT_THAT(refusal({"--resume"}), HasSubstr("no run that goes on"));
  std::filesystem::remove_all(out());
  EXPECT_THAT(refusal({"--methods", "powersgd:17"}), HasSubstr("rank 17 is above"));
  EXPECT_THAT(refusal({"--methods", "streaming-diloco:6,3", "--set", "parallel.microbatches=1"}),
              HasSubstr("3 fragments of the 2 parts"));
  EXPECT_EQ(run(0, words("randomk:exchange=sites", {"--ranks-per-process", "3"})), 2);
  EXPECT_THAT(output(), HasSubstr("direct"));
  EXPECT_EQ(run(0, words("stella", {"--ranks-per-process", "2"})), 2);
  EXPECT_THAT(output(), HasSubstr("has 3 ranks, and 2 were started"));
}

/// What diverges ends with the place of the first number that is none.
TEST_F(TrainRuns, NameAGradientThatIsNotFinite) {
  EXPECT_EQ(run(3, words("none", {"--optimizer", "sgd", "--lr-grid", "1e9"})), 3) << output();
  EXPECT_THAT(output(), ContainsRegex("rank [0-2], part [01], iteration [0-9]+: the gradient of "
                                      "[a-z].*, number [0-9]+ is not finite"));
}

/// It stops after as many updates as it was told, and says how far it still was.
TEST_F(TrainRuns, StopAboveATargetThatTheDataDoNotAllow) {
  ASSERT_EQ(run(0, words("none", {"--target", "loss=0.01", "--ranks-per-process", "3"})), 0)
      << output();
  const nlohmann::json curve = curves().front();
  EXPECT_TRUE(curve["iterations_to_target"].is_null());
  EXPECT_TRUE(curve["time_to_target_ns"].is_null());
  const double ended = curve["points"].back()[3].get<double>();
  EXPECT_THAT(output(),
              HasSubstr(fmt::format(
                  "none, seed 1: {:.3f} above the target of 0.01 after 12 updates", ended - 0.01)));
}

}  // namespace
}  // namespace longhaul::testing
