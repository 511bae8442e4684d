// Whole runs of real operators under an overlap: tensor parallelism, FSDP and ZeRO over messages
// compute what one rank computes, and what is made wrong on purpose shows.
#include <fmt/format.h>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "integration/runs/two_by_two.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class RealOverlapRuns : public BenchPipeline {
protected:
  RealOverlapRuns() { write_scenario(kTwoByTwo); }
  int run_real(int processes, std::vector<std::string> options) {
    options.insert(options.begin(), {"--compute", "real", "--schedule", "gpipe"});
    return run(processes, std::move(options));
  }
  /// As four threads.
  int run_threads(const std::string& overlaps, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"--overlap", overlaps, "--ranks-per-process", "4"});
    return run_real(1, std::move(options));
  }
};

TEST_F(RealOverlapRuns, ComputeOverMessagesWhatOneRankComputes) {
  ASSERT_EQ(run_real(4, {"--overlap", "serial,ddp,zero1,zero3,fsdp2,megatron", "--out", out()}), 0)
      << output();
  EXPECT_THAT(output(), HasSubstr("held against one rank (1e-05 is allowed)"));
  const nlohmann::json report = record();
  EXPECT_EQ(report["compute"]["compute"], "real");
  ASSERT_EQ(report["schedules"].size(), 6U);
  const auto first = report["schedules"][0]["real"]["loss"].get<std::vector<double>>();
  for (const nlohmann::json& row : report["schedules"]) {
    EXPECT_EQ(row["check"], "ok") << row["schedule"];
    EXPECT_EQ(row["real"]["iterations_checked"], 3) << "warm-up too";
    EXPECT_GT(row["predicted_ns"].get<std::int64_t>(), 0);
    EXPECT_GT(row["measured_communication_ns"]["tp"].get<std::int64_t>(), 0);
    EXPECT_EQ(row["real"]["peak_memory_bytes"].size(), 4U);
    const auto loss = row["real"]["loss"].get<std::vector<double>>();
    ASSERT_EQ(loss.size(), 2U);
    for (std::size_t i = 0; i < loss.size(); ++i)
      EXPECT_NEAR(loss[i], first[i], 1e-5 * first[i]) << row["schedule"];
  }
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());
}

TEST_F(RealOverlapRuns, AsThreadsWithWholeActivationsAndWithoutEmulation) {
  for (const char* emulate : {"on", "off"})
    EXPECT_EQ(run_threads("serial,ooo,zero2,breadth-first,syndicate,zeropp,megatron",
                          {"--set", "parallel.sequence_parallel=false", "--emulate", emulate}),
              0)
        << output();
}

/// That has the microbatches of all replicas. `scripts/figure loss --overlap` shows 300 iterations.
/// Searched among what real layers compute: they train the same model, and say what was decided.
TEST_F(RealOverlapRuns, ComputeWhatASearchDecides) {
  ASSERT_EQ(run_threads("fsdp2,centauri,best", {"--time-limit", "2s", "--out", out()}), 0)
      << output();
  const nlohmann::json report = record();
  ASSERT_EQ(report["schedules"].size(), 3U);
  for (const nlohmann::json& row : report["schedules"]) {
    EXPECT_EQ(row["check"], "ok") << row["schedule"];
    EXPECT_LE(row["predicted_ns"], report["schedules"][0]["predicted_ns"]) << row["schedule"];
  }
  for (const nlohmann::json& each : report["schedules"][2]["certificate"]["baselines"])
    EXPECT_NE(each["overlap"], "coconet") << "it cuts operators";
}

TEST_F(RealOverlapRuns, LossesLieOnThoseOfOneRankThatTrainsAlone) {
  const std::vector<std::string> iterations{"--iterations",      "20",  "--warmup", "0",
                                            "--check-gradients", "off", "--out",    out()};
  const auto losses = [&](std::size_t row) {
    return record()["schedules"][row]["real"]["loss"].get<std::vector<double>>();
  };
  std::vector<std::string> alone = iterations;
  for (const char* set :
       {"tensor=1", "replicas=1", "shard=1", "gradient_sync=all-reduce", "microbatches=4"})
    alone.insert(alone.end(), {"--set", std::string{"parallel."} + set});
  alone.insert(alone.end(), {"--ranks-per-process", "1"});
  ASSERT_EQ(run_real(1, alone), 0) << output();
  const std::vector<double> expected = losses(0);
  ASSERT_EQ(expected.size(), 20U);
  EXPECT_LT(expected.back(), expected.front());
  std::filesystem::remove_all(out());
  ASSERT_EQ(run_threads("serial,zero3,megatron", iterations), 0) << output();
  for (std::size_t row = 0; row < 3; ++row) {
    const std::vector<double> found = losses(row);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-4 * expected[i]) << row << ' ' << i;
  }
}

TEST_F(RealOverlapRuns, WhatIsHurtIsFoundAndNamed) {
  for (const char* fault : {"swap@1:0:1", "omit@1:0:1", "repeat@1:0:1", "stale@1:0:1",
                            "corrupt@1:0:1", "perturb@1:0:1"}) {
    EXPECT_EQ(run_threads("zero3", {"--fault", fault, "--set", "parallel.tensor=1", "--set",
                                    "parallel.replicas=4", "--set", "parallel.shard=4"}),
              1)
        << fault << '\n'
        << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("wrong tensor"), HasSubstr("iteration 1, rank "),
                                HasSubstr("(1e-05 is allowed)")))
        << fault;
    EXPECT_THAT(output(), ::testing::Not(HasSubstr("iteration 0"))) << fault;
  }
}

TEST_F(RealOverlapRuns, ARankThatIsKilledInAStepIsNamedWithCollectiveStepAndPeer) {
  const int code =
      run_real(4, {"--overlap", "zero3", "--deadline", "2s", "--fault", "kill@1:send0:1"});
  EXPECT_THAT(code, AnyOf(3, 137)) << output();
  EXPECT_THAT(output(), HasSubstr("the run ends: rank 1 is gone (killed or crashed), last started: "
                                  "rank 1 (local, stage 0, replica 0): send of step 0 of "));
  EXPECT_THAT(output(), HasSubstr(" to rank "));
}

TEST_F(RealOverlapRuns, RefuseWhatTheyCannotCompute) {
  struct Case {
    const char* overlap;
    std::vector<std::string> options;
    const char* says;
  };
  const std::vector<Case> cases{
      {"serial,centauri-rules", {}, "the rules cut operators and collectives"},
      {"zero3", {"--set", "model.kv_heads=1"}, "does not divide 1 key and value heads"},
      {"serial", {"--set", "model.memory_bandwidth=900TB/s"}, "takes no time backward"},
      {"serial",
       {"--set", "parallel.gradient_sync=none", "--set", "parallel.shard=1"},
       "each would train a model of its own"},
      {"serial", {"--set", "overlap.slowdown=1.5"}, "--compute real with [overlap]"},
      {"zero3", {"--resume", "--out", out()}, "weights are not kept when a run ends"}};
  for (const Case& each : cases) {
    EXPECT_EQ(run_threads(each.overlap, each.options), 2) << each.says << '\n' << output();
    EXPECT_THAT(output(), HasSubstr(each.says));
  }
  EXPECT_EQ(run(1, {"--overlap", "zero3", "--schedule", "gpipe", "--ranks-per-process", "4",
                    "--fault", "omit@1:0"}),
            2);
  EXPECT_THAT(output(), HasSubstr("needs --compute real"));
  EXPECT_EQ(run_real(1, {"--ranks-per-process", "4"}), 2);
  EXPECT_THAT(output(), HasSubstr("parallel.tensor = 2"));
}

}  // namespace
}  // namespace longhaul::testing
