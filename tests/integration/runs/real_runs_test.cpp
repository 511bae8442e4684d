// Whole runs of real layers: what flows through the pipeline is what one rank computes, and what is
// made wrong on purpose shows.
#include <fmt/format.h>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTiny = R"([scenario]
name = "tiny"
[model]
layers = 8
hidden = 16
intermediate = 24
heads = 2
vocabulary = 16
sequence_length = 8
achieved_flops = 1e10
[parallel]
stages = 4
microbatches = 4
[[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "50us"
bandwidth = "10Gbps"
[run]
iterations = 2
warmup = 1
)";

class RealRuns : public BenchPipeline {
protected:
  RealRuns() { write_scenario(kTiny); }
  int run_real(int ranks, std::vector<std::string> options) {
    options.insert(options.begin(), {"--compute", "real"});
    return run(ranks, std::move(options));
  }
};

TEST_F(RealRuns, EveryScheduleComputesTheSameOverMessages) {
  ASSERT_EQ(run_real(4, {"--schedule", "static,dynamic", "--out", out()}), 0) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("adamw with a learning rate of 0.001"),
                              HasSubstr("held against one rank (1e-05 is allowed)"),
                              HasSubstr("which are not measured on this device")));
  const auto report = record();
  EXPECT_EQ(report["costs_measured"], false);
  EXPECT_EQ(report["compute"]["compute"], "real");
  ASSERT_GE(report["schedules"].size(), 12U);
  const auto first = report["schedules"][0]["real"]["loss"].get<std::vector<double>>();
  for (const auto& schedule : report["schedules"]) {
    EXPECT_EQ(schedule["check"], "ok") << schedule["schedule"];
    EXPECT_EQ(schedule["real"]["iterations_checked"], 3) << "warm-up too";
    const auto loss = schedule["real"]["loss"].get<std::vector<double>>();
    ASSERT_EQ(loss.size(), 2U);
    for (std::size_t i = 0; i < loss.size(); ++i)
      EXPECT_NEAR(loss[i], first[i], 1e-5 * first[i]) << schedule["schedule"];
    ASSERT_EQ(schedule["real"]["peak_memory_bytes"].size(), 4U);
  }
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());
}

TEST_F(RealRuns, TheTraceHasTheBytesThatBlocksTook) {
  ASSERT_EQ(run_real(4, {"--schedule", "1f1b", "--out", out()}), 0) << output();
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  const auto bytes_of_first = [](const Timeline& timeline, RowKind kind) {
    for (const TimelineRow& row : timeline.rows)
      if (row.kind == kind && row.rank == 1) return row.size_bytes;
    return std::int64_t{0};
  };
  EXPECT_GT(bytes_of_first(trace.measured, RowKind::F), 0);
  EXPECT_LT(bytes_of_first(trace.measured, RowKind::B), 0);
  EXPECT_NE(bytes_of_first(trace.measured, RowKind::F), bytes_of_first(trace.predicted, RowKind::F))
      << "real numbers are of four bytes, those of the model of two";
  std::int64_t held = 0;
  for (const TimelineRow& row : trace.measured.rows)
    if (is_compute(row.kind)) held += row.size_bytes;
  EXPECT_EQ(held, 0) << "what is taken is given back";
}

TEST_F(RealRuns, ReplicasSumWhateverTheWayOfSumming) {
  for (const char* sync : {"zero1", "all-reduce"}) {
    EXPECT_EQ(run_real(8, {"--schedule", "1f1b,zbv,cross-bd", "--set", "parallel.replicas=2",
                           "--set", std::string{"parallel.gradient_sync="} + sync, "--set",
                           "memory.recompute=true"}),
              0)
        << sync << "\n"
        << output();
  }
}

// From the second on they are made of gradients that four replicas have summed over rings.
TEST_F(RealRuns, TwoRunsOf16RanksHaveTheSameLossesInEveryBit) {
  const auto losses = [&] {
    EXPECT_EQ(
        run_real(0, {"--schedule", "1f1b", "--set", "parallel.replicas=4", "--set",
                     "parallel.gradient_sync=all-reduce", "--iterations", "4", "--warmup", "0",
                     "--check-gradients", "off", "--ranks-per-process", "16", "--out", out()}),
        0)
        << output();
    const auto found = schedules()[0]["real"]["loss"].get<std::vector<double>>();
    std::filesystem::remove_all(out());
    return found;
  };
  const std::vector<double> once = losses();
  EXPECT_EQ(once.size(), 4U);
  EXPECT_EQ(losses(), once);
}

TEST_F(RealRuns, GroupedAndWithoutEmulationAndAsThreads) {
  EXPECT_EQ(run_real(4, {"--schedule", "1f1b,zbv", "--comm", "grouped"}), 0) << output();
  EXPECT_EQ(run_real(1, {"--schedule", "zb-h1", "--emulate", "off", "--optimizer", "sgd",
                         "--ranks-per-process", "4"}),
            0)
      << output();
  EXPECT_EQ(run_real(1, {"--schedule", "zbv", "--ranks-per-process", "4"}), 0) << output();
}

/// Three pipelines share the WAN; rank = 4 * replica + stage.
TEST_F(RealRuns, RelaysPassTensorsOnInPieces) {
  std::string text = kTiny;
  text.insert(text.find("microbatches"), "replicas = 3\ncell = 3\n");
  for (const char* datacenter : {"west", "east"})
    text.insert(text.find("[run]"),
                fmt::format("[[node]]\ndatacenter = \"{}\"\negress = \"8Gbps\"\n"
                            "ingress = \"8Gbps\"\ninternal = \"100Gbps\"\n",
                            datacenter));
  write_scenario(text);
  const std::vector<std::string> atlas{"--ranks-per-process", "12", "--schedule", "atlas"};
  EXPECT_EQ(run_real(1, atlas), 0) << output();
  EXPECT_THAT(output(), HasSubstr("payloads relayed"));
  std::vector<std::string> faulty = atlas;
  faulty.insert(faulty.end(), {"--fault", "corrupt@5:relay0:1"});
  EXPECT_EQ(run_real(1, faulty), 1) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("wrong tensors"), HasSubstr("gradient differs by")));
}

TEST_F(RealRuns, WeightsGoAlongWhenTheScheduleSwitches) {
  ASSERT_EQ(run_real(4, {"--schedule", "zbv,1f1b,cross-bd", "--adaptive", "--iterations", "12",
                         "--change", "3:link.latency=20ms", "--out", out()}),
            0)
      << output();
  int checked = 0;
  const auto report = record();
  for (const auto& segment : report["schedules"])
    checked += segment["real"]["iterations_checked"].get<int>();
  EXPECT_EQ(checked, 13);
  EXPECT_GE(report["schedules"].size(), 2U) << "other links are another stretch";
}

TEST_F(RealRuns, WhatIsHurtIsFoundAndNamed) {
  struct Case {
    const char* fault;
    std::vector<std::string> found;
    const char* absent;
  };
  const std::vector<Case> cases{
      // Rank 1 sends gradients to rank 0: no rank after it is wrong.
      {"swap@1:5:1", {"iteration 1, rank 0 (west, stage 0): ", "gradient differs by"}, "rank 2 ("},
      {"corrupt@1:5:1", {"iteration 1, rank 0 (west, stage 0): "}, "rank 2 ("},
      {"mixup@1:5:1", {"1 mixed up", "came instead"}, "iteration 0"},
      {"perturb@2:0:1",
       {"rank 2 (east, stage 2): ", "rank 0 (west, stage 0): ", "(1e-05 is allowed)"},
       "iteration 0"}};
  for (const Case& each : cases) {
    const std::string fault = each.fault;
    EXPECT_EQ(run_real(4, {"--schedule", "1f1b", "--fault", fault}), 1) << output();
    EXPECT_THAT(output(), HasSubstr("wrong tensors")) << fault;
    for (const std::string& text : each.found) EXPECT_THAT(output(), HasSubstr(text)) << fault;
    EXPECT_THAT(output(), Not(HasSubstr(each.absent))) << fault;
  }
}

TEST_F(RealRuns, WithoutTheCheckNobodyNotices) {
  EXPECT_EQ(
      run_real(4, {"--schedule", "1f1b", "--fault", "swap@1:5:1", "--check-gradients", "off"}), 0)
      << output();
  EXPECT_THAT(output(), HasSubstr("nothing was held against one rank (--check-gradients off)"));
  EXPECT_EQ(
      run_real(4, {"--schedule", "1f1b", "--fault", "swap@1:5:1", "--check-gradients", "first"}), 0)
      << "the first iteration warms up";
  EXPECT_THAT(output(), HasSubstr("weights of 1 iteration held"));
}

TEST_F(RealRuns, AMessageThatIsLostEndsTheRun) {
  EXPECT_EQ(run_real(4, {"--schedule", "1f1b", "--fault", "lose@1:5", "--deadline", "2s"}), 3);
  EXPECT_THAT(output(), HasSubstr("sent, and never received"));
}

TEST_F(RealRuns, OutOfMemoryNamesBlockBytesAndBudget) {
  EXPECT_EQ(run_real(4, {"--schedule", "gpipe", "--set", "memory.capacity=75KiB"}), 3) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: rank "), HasSubstr("(real layers end "),
                              HasSubstr("are more than is left of the device's memory"),
                              HasSubstr("budget 76800 B")));
}

TEST_F(RealRuns, RefusesWhatCannotBeComputed) {
  struct Case {
    std::vector<std::string> options;
    const char* says;
  };
  const std::vector<Case> cases{
      {{"--set", "model.vocabulary=0"}, "Write vocabulary = 256 in [model]"},
      {{"--set", "model.layers=5", "--schedule", "zbv"}, "would hold no layer"},
      {{"--set", "model.heads=5"}, "5 heads share a hidden size of 16"},
      {{"--set", "model.tensor_parallel=2"}, "Write --set model.tensor_parallel=1"}};
  for (const Case& each : cases) {
    EXPECT_EQ(run_real(4, each.options), 2) << each.says;
    EXPECT_THAT(output(), HasSubstr(each.says));
  }
  EXPECT_EQ(run_real(1, {"--ranks-per-process", "8", "--set", "parallel.replicas=2", "--set",
                         "parallel.gradient_sync=none", "--schedule", "1f1b"}),
            2);
  EXPECT_THAT(output(), HasSubstr("each would train a model of its own"));
}

}  // namespace
}  // namespace longhaul::testing
