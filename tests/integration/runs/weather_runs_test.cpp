// Whole runs of bench_pipeline on links with weather: what is predicted of them, and outages
// shorter and longer than the deadline.
#include <algorithm>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WeatherRunsTest : public BenchPipeline {
protected:
  /// The four stages, and more keys of their link.
  void with_link(const std::string& keys) const { write_scenario(kFourStages + keys); }

  /// Is what the record predicts of each iteration what the simulator says?
  void expect_simulated(const json& schedule) const {
    const Scenario played = scenario::load_scenario(scenario()).as_played();
    const Plan plan =
        plan::lower(schedule::generate(schedule["schedule"].get<std::string>(), played), played);
    const plan::Weather weather{plan, played};
    const json& met = schedule["weather"];
    for (std::size_t i = 0; i < met["begin_ns"].size(); ++i) {
      const Duration begin{met["begin_ns"][i].get<std::int64_t>()};
      const OpTimes times = sim::simulate(plan, {&weather, i, begin});
      EXPECT_EQ(std::ranges::max_element(times, {}, &OpTime::end)->end.count(),
                met["predicted_ns"][i].get<std::int64_t>())
          << i;
    }
  }
};

TEST_F(WeatherRunsTest, EachIterationIsPredictedInTheWeatherThatItMet) {
  std::ofstream{scratch_.path() / "wan.csv"}
      << "time_s,latency_ms,bandwidth_gbps\n0,2,8\n0.05,20,1\n0.3,2,8\n";
  with_link("trace = \"wan.csv\"\njitter = 0.3\nloss = { probability = 0.2, delay = \"10ms\" }\n");
  ASSERT_EQ(run(4, {"--schedule", "1f1b,zb-h1", "--iterations", "5", "--out", out()}), 0)
      << output();
  EXPECT_THAT(output(), HasSubstr("in the weather"));
  const json all = record();
  EXPECT_EQ(all["weather"], "played");
  EXPECT_EQ(all["weather_of_links"].at(0)["states"].size(), 3u);
  for (const json& schedule : all["schedules"]) {
    EXPECT_EQ(schedule["check"], "ok");
    ASSERT_EQ(schedule["weather"]["begin_ns"].size(), 5u);
    EXPECT_TRUE(std::ranges::is_sorted(schedule["weather"]["begin_ns"]));
    EXPECT_TRUE(schedule["weather"].contains("difference_percent"));
    expect_simulated(schedule);
  }
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  EXPECT_THAT(trace.info.environment, HasSubstr(R"("weather":[{"begin_ns")"));
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

/// Weather that does not depend on time: a second run meets the same, to the nanosecond.
TEST_F(WeatherRunsTest, TheSameSeedGivesTheSameWeather) {
  with_link("jitter = 0.5\nloss = 0.1\n");
  const auto predicted = [&](const std::string& seed) {
    std::filesystem::remove_all(out());
    EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "3", "--set", "run.seed=" + seed,
                      "--out", out()}),
              0)
        << output();
    return record()["schedules"][0]["weather"]["predicted_ns"];
  };
  const json first = predicted("7");
  EXPECT_EQ(first, predicted("7"));
  EXPECT_NE(first, predicted("8"));
}

TEST_F(WeatherRunsTest, AnOutageShorterThanTheDeadlineIsWaitedFor) {
  with_link("outage = [\"0s\", \"700ms\"]\n");
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--deadline", "5s", "--out", out()}),
            0)
      << output();
  const json schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["check"], "ok");
  const std::int64_t begin = schedule["weather"]["begin_ns"][0];
  EXPECT_GE(schedule["samples_ns"][0].get<std::int64_t>(), 700'000'000 - begin);
  EXPECT_GE(schedule["weather"]["predicted_ns"][0].get<std::int64_t>(), 700'000'000 - begin);
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(WeatherRunsTest, AnOutageLongerThanTheDeadlineEndsTheRun) {
  with_link("outage = [\"50ms\", \"60s\"]\n");
  EXPECT_EQ(
      run(4, {"--schedule", "1f1b", "--iterations", "1000", "--deadline", "2s", "--out", out()}),
      3);
  EXPECT_THAT(output(), AllOf(HasSubstr("the run ends: an outage of link "), HasSubstr("west"),
                              HasSubstr("has held rank "), HasSubstr("send of"),
                              HasSubstr("goes on for"), HasSubstr("deadline of 2 s")));
  expect_readable(0);
}

TEST_F(WeatherRunsTest, WithoutEmulationTheWeatherIsNotPlayedAndThatIsSaid) {
  with_link("outage = [\"0s\", \"60s\"]\njitter = 0.5\n");
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--emulate", "off", "--deadline",
                    "5s", "--out", out()}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("is neither played nor predicted"));
  EXPECT_EQ(record()["weather"], "not played: emulation is off");
  EXPECT_FALSE(record()["schedules"][0].contains("weather"));
}

}  // namespace
}  // namespace longhaul::testing
