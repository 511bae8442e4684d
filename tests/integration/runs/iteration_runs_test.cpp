// Whole runs of bench_pipeline --overlap: operators beside collectives that are real messages.
#include <fmt/format.h>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "support/shipped.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class IterationRuns : public BenchPipeline {
protected:
  IterationRuns() { write_scenario(file_text(kShippedScenarios / "centauri-toy.toml")); }

  /// Rows of `longhaul simulate` with these options.
  nlohmann::json simulated(std::vector<std::string> options) {
    const std::vector<std::string> benchmark =
        std::exchange(program_, {LONGHAUL_BINARY, "simulate", scenario().string()});
    options.push_back("--json");
    EXPECT_EQ(run(0, options), 0) << output();
    program_ = benchmark;
    return nlohmann::json::parse(output())["schedules"];
  }
};

/// Operators of 20 ms, for a machine that others use, too.
TEST_F(IterationRuns, HaveARowOfEachOverlapAsSimulated) {
  std::vector<std::string> options{"--schedule", "gpipe", "--overlap", "serial,zero3"};
  for (const char* place : {"0", "1"})
    for (const char* work : {"forward", "dgrad", "wgrad"})
      options.insert(options.end(), {"--set", fmt::format("operator.{}.{}=20ms", place, work)});
  options.insert(options.end(), {"--set", "node.device=100MB/s"});
  const nlohmann::json expected = simulated(options);
  options.insert(options.end(), {"--iterations", "2", "--warmup", "0", "--out", out()});
  ASSERT_EQ(run(2, options), 0) << output();
  const nlohmann::json rows = record()["schedules"];
  ASSERT_EQ(rows.size(), 2U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [key, value] : expected[i].items()) EXPECT_EQ(value, rows[i][key]) << key;
    EXPECT_EQ(rows[i]["check"], "ok") << rows[i]["wrong_messages"];
    EXPECT_EQ(rows[i]["predicted_ns"], rows[i]["makespan_ns"]);
    EXPECT_GT(rows[i]["checks"]["messages"].get<int>(), 0);
    // A rank may be late, but what is communicated takes its time.
    EXPECT_GT(rows[i]["measured_communication_ns"]["fsdp"].get<double>(),
              0.9 * rows[i]["communication_ns"]["fsdp"].get<double>());
  }
  EXPECT_EQ(rows[0]["predicted_ns"], 170'000'000);
  EXPECT_EQ(rows[1]["predicted_ns"], 140'000'000);
  EXPECT_THAT(output(), AllOf(HasSubstr("gpipe+serial"), HasSubstr("gpipe+zero3"),
                              HasSubstr("communication beside computation")));
}

/// In four pieces, as docs/overlap.md says of the toy; ten times as long.
TEST_F(IterationRuns, OfWhatIsSearchedHaveItsRowAndGoOnWithoutAnotherSearch) {
  std::vector<std::string> options{"--schedule", "gpipe", "--overlap",
                                   "centauri-rules,centauri,best"};
  for (const char* place : {"0", "1"})
    for (const char* work : {"forward", "dgrad", "wgrad"})
      options.insert(options.end(), {"--set", fmt::format("operator.{}.{}=20ms", place, work)});
  options.insert(options.end(), {"--set", "node.device=100MB/s"});
  const nlohmann::json expected = simulated(options);
  options.insert(options.end(),
                 {"--iterations", "2", "--warmup", "0", "--deadline", "2s", "--out", out()});
  std::vector<std::string> killed = options;
  killed.insert(killed.end(), {"--fault", "kill@1:4:1"});
  EXPECT_NE(run(2, killed), 0);
  EXPECT_EQ(trace::finished_iterations(out()).size(), 1U) << output();
  options.push_back("--resume");
  ASSERT_EQ(run(2, options), 0) << output();
  const nlohmann::json rows = record()["schedules"];
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [key, value] : expected[i].items())
      if (key != "search_ns") {
        EXPECT_EQ(value, rows[i][key]) << key;
      }
    EXPECT_EQ(rows[i]["check"], "ok") << rows[i]["wrong_messages"];
    EXPECT_EQ(rows[i]["predicted_ns"], rows[i]["makespan_ns"]);
    EXPECT_GT(rows[i]["search_ns"].get<std::int64_t>(), 0);
  }
  EXPECT_EQ(rows[2]["predicted_ns"], 122'500'000);
  EXPECT_EQ(rows[2]["certificate"]["baselines"].size(), 9U);
  EXPECT_THAT(output(), AllOf(HasSubstr("gpipe best: "), HasSubstr("iterations simulated in")));
}

TEST_F(IterationRuns, OfStagesAndCopiesOnFourRanksGoOnWhereTheyEnded) {
  std::vector<std::string> options{"--schedule", "1f1b", "--overlap", "fsdp2,megatron"};
  for (const char* set : {"parallel.stages=2", "parallel.microbatches=2", "costs.message=100kB"})
    options.insert(options.end(), {"--set", set});
  options.insert(options.end(),
                 {"--iterations", "2", "--warmup", "0", "--deadline", "2s", "--out", out()});
  std::vector<std::string> killed = options;
  killed.insert(killed.end(), {"--fault", "kill@1:4:1"});
  EXPECT_NE(run(4, killed), 0);
  EXPECT_EQ(trace::finished_iterations(out()).size(), 1U) << output();
  options.push_back("--resume");
  ASSERT_EQ(run(4, options), 0) << output();
  for (const nlohmann::json& row : schedules()) {
    EXPECT_EQ(row["check"], "ok");
    EXPECT_EQ(row["n"], 2);
    EXPECT_GT(row["measured_communication_ns"]["pp"].get<std::int64_t>(), 0);
  }
}

TEST_F(IterationRuns, RefuseWhatTheyCannotDo) {
  const auto said = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{"--schedule", "gpipe", "--overlap", "zero3"};
    all.insert(all.end(), options.begin(), options.end());
    EXPECT_EQ(run(2, all), 2) << output();
    return output();
  };
  EXPECT_THAT(said({"--adaptive"}), HasSubstr("--adaptive and --overlap are both given"));
  EXPECT_THAT(said({"--change", "1:link.latency_ratio=2"}),
              HasSubstr("--change and --overlap are both given"));
  EXPECT_THAT(said({"--robust"}), HasSubstr("--robust and --overlap are both given"));
  EXPECT_EQ(run(2, {"--overlap", "zero4"}), 2);
  EXPECT_THAT(output(), HasSubstr("there is no overlap \"zero4\""));
  EXPECT_THAT(said({"--compute", "real"}), HasSubstr("real layers"));
}

}  // namespace
}  // namespace longhaul::testing
