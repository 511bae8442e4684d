#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul {
namespace {

using testing::BenchPipeline;
using ::testing::HasSubstr;

class Confidence : public testing::BenchPipeline {};

TEST_F(Confidence, EndsAScheduleWhereItsMedianIsKnownWellEnough) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b,gpipe", "--confidence", "60%", "--max-iterations", "40",
                    "--warmup", "1", "--out", out()}),
            0)
      << output();
  const auto record = this->record();
  EXPECT_EQ(record["stopping"]["width_percent"], 60);
  EXPECT_EQ(record["stopping"]["most"], 40);
  for (const auto& schedule : record["schedules"]) {
    const auto& stopped = schedule["stopped"];
    EXPECT_GE(schedule["n"], record["stopping"]["least"]);
    EXPECT_EQ(schedule["samples_ns"].size(), schedule["n"]);
    const double width = schedule["measured_median_high_ns"].get<double>() -
                         schedule["measured_median_low_ns"].get<double>();
    if (stopped["reason"] == "narrow enough")
      EXPECT_LT(width, 0.6 * schedule["measured_median_ns"].get<double>());
    else
      EXPECT_EQ(schedule["n"], 40);
  }
  // The trace holds the iterations that were run, and no more.
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());
}

/// No clock repeats itself to a millionth: the most iterations end it.
TEST_F(Confidence, EndsAtTheMostIterations) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--confidence", "0.000001%", "--max-iterations", "7",
                    "--warmup", "0", "--iterations", "6", "--out", out()}),
            0)
      << output();
  const auto schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["n"], 7);
  EXPECT_EQ(schedule["stopped"]["reason"], "at most so many");
  EXPECT_THAT(output(), HasSubstr("! 1f1b: stopped after 7"));
}

TEST_F(Confidence, OfAFixedNumberTheRecordSaysSo) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "3", "--warmup", "0", "--out", out()}),
            0);
  const auto schedule = record()["schedules"][0];
  EXPECT_EQ(record()["stopping"]["rule"], "fixed number");
  EXPECT_EQ(schedule["stopped"]["reason"], "fixed number");
  EXPECT_TRUE(schedule["measured_median_low_ns"].is_null());  // three values have no 95% interval
  EXPECT_THAT(output(), HasSubstr("(n < 6)"));
}

TEST_F(Confidence, IsRefusedWhereIterationsAreNoSample) {
  EXPECT_EQ(run(4, {"--confidence", "5%", "--adaptive"}), 2);
  EXPECT_THAT(output(), HasSubstr("--confidence does not go with --adaptive"));
  EXPECT_EQ(run(4, {"--confidence", "5%", "--change", "2:link.latency_ratio=2"}), 2);
  EXPECT_THAT(output(), HasSubstr("--confidence does not go with --change"));
  EXPECT_EQ(run(4, {"--max-iterations", "9"}), 2);
  EXPECT_THAT(output(), HasSubstr("no effect without --confidence"));
}

}  // namespace
}  // namespace longhaul
