// Whole runs of bench_stream that keep a trace, that are killed and that are gone on with.
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kIterations = 8;
constexpr int kStreams = 2;        ///< without staleness and with it
constexpr int kOps = 4 * (6 + 8);  ///< of four ranks: blocks, host tasks and sides of messages

class StreamRuns : public BenchPipeline {
protected:
  StreamRuns() { program_ = {LONGHAUL_BENCH_STREAM}; }
  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--rates",
                                 "40Gbps",
                                 "--size",
                                 "10kB",
                                 "--forward",
                                 "2ms",
                                 "--latency",
                                 "1ms",
                                 "--iterations",
                                 "8",
                                 "--warmup",
                                 "2",
                                 "--max-difference",
                                 "1000",
                                 "--extras",
                                 "--out",
                                 out(),
                                 "--deadline",
                                 "2s"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] trace::Trace kept() const { return trace::read_trace(out() + "/trace.h5"); }

  /// Each op once in each iteration of each stream, with the outcomes that it must have.
  void expect_whole(const trace::Trace& trace) const {
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
    ASSERT_EQ(trace.measured.rows.size(), std::size_t{kStreams * kIterations * kOps});
    ASSERT_EQ(trace.predicted.rows.size(), trace.measured.rows.size());
    int skipped = 0, met = 0;
    for (std::size_t i = 0; i < trace.measured.rows.size(); ++i) {
      const TimelineRow& row = trace.measured.rows[i];
      const TimelineRow& planned = trace.predicted.rows[i];
      EXPECT_EQ(row.schedule, planned.schedule);
      EXPECT_EQ(row.iteration, planned.iteration);
      EXPECT_EQ(row.op, planned.op);
      EXPECT_EQ(row.outcome, planned.outcome) << "op " << row.op;
      skipped += row.outcome == static_cast<std::int32_t>(Outcome::skipped) ? 1 : 0;
      met += row.version >= 0 ? 1 : 0;
      if (row.version >= 0) {
        EXPECT_LT(row.version, row.iteration) << "op " << row.op;
      }
    }
    EXPECT_EQ(skipped, 4 * kStreams * kIterations) << "one task of each rank";
    EXPECT_GT(met, 4 * kStreams * kIterations / 2);
  }
};

TEST_F(StreamRuns, KeepATraceThatIsCutByIteration) {
  ASSERT_EQ(run(4, words()), 0) << output();
  expect_whole(kept());
  program_ = {LONGHAUL_BINARY, "check", out() + "/trace.h5"};
  EXPECT_EQ(run(0, {}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("valid trace of bench_stream"));
}

TEST_F(StreamRuns, GoOnAfterTheLastIterationThatAllFinished) {
  ASSERT_NE(run(4, words({"--fault", "kill@2:4:5"})), 0);
  EXPECT_THAT(output(), HasSubstr("rank 2 is gone (killed or crashed)"));
  const auto finished = trace::finished_iterations(out());
  ASSERT_GE(finished.size(), 1U) << output();
  ASSERT_LE(finished.size(), 5U) << output();
  const trace::Trace before = trace::merge_run(out());
  EXPECT_NE(run(4, words()), 0) << "it is not overwritten";
  std::vector<std::string> other = words({"--resume"});
  other[1] = "20Gbps";
  EXPECT_NE(run(4, other), 0) << "another run";
  EXPECT_THAT(output(), HasSubstr("--rates"));
  ASSERT_EQ(run(4, words({"--resume"})), 0) << output();
  EXPECT_THAT(output(), HasSubstr("goes on with iteration " + std::to_string(finished.size())));
  const trace::Trace whole = kept();
  expect_whole(whole);
  for (const TimelineRow& row : before.measured.rows) {
    const auto same = std::ranges::find_if(whole.measured.rows, [&](const TimelineRow& each) {
      return each.schedule == row.schedule && each.iteration == row.iteration && each.op == row.op;
    });
    ASSERT_NE(same, whole.measured.rows.end());
    EXPECT_EQ(*same, row) << "what was measured stays as it was";
  }
  // All before is over when it goes on.
  const auto cut = static_cast<std::int32_t>(finished.size());
  for (const TimelineRow& row : whole.measured.rows)
    if (row.schedule == 0 && row.iteration == cut && row.version >= 0) {
      EXPECT_EQ(row.version, cut - 1);
    }
  ASSERT_EQ(run(4, words({"--resume"})), 0) << output();
  EXPECT_THAT(output(), HasSubstr("is complete: nothing is left to run"));
}

}  // namespace
}  // namespace longhaul::testing
