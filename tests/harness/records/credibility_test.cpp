// Doubts about a run's times, from the facts that its record has.
#include "harness/records/credibility.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/records/pipeline_record.hpp"
#include "report/host_load.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Blocks of 10 ms whose ends were seen 60 us late; measured 1% above the prediction.
PipelineMeasurement good_run(const std::string& name = "1f1b") {
  PipelineMeasurement m;
  m.predicted.schedule = name;
  m.predicted.makespan_ns = 100'000'000;
  m.makespans_ns = {101e6, 101e6, 101e6};
  m.summary = summarize(m.makespans_ns);
  m.mean_block = 10ms;
  m.lateness = {100, 6ms, 1ms};
  return m;
}

RunConditions quiet() { return {.load = 1.5, .cores = 2, .ranks = 8}; }

TEST(Credibility, AGoodRunHasNoDoubts) {
  EXPECT_THAT(doubts_of(good_run(), quiet()), IsEmpty());
  EXPECT_EQ(verdict_text(good_run(), quiet()), "ok");
  EXPECT_EQ(doubts_text({good_run()}, quiet()), "");
}

TEST(Credibility, ALoadAboveTheCoresIsOne) {
  RunConditions busy = quiet();
  busy.load = 9;
  EXPECT_THAT(doubts_of(good_run(), busy), ElementsAre("load 9.0 on 2 cores"));
  EXPECT_EQ(verdict_text(good_run(), busy), "ok, doubtful");
  busy.cores = 0;  // not known
  EXPECT_THAT(doubts_of(good_run(), busy), IsEmpty());
}

TEST(Credibility, OfRunsWithoutBlocksTheLoadOfTheBusiestHostCounts) {
  const auto environment = [](double during) {
    return nlohmann::json{
        {"hosts",
         {{{"cores", 2}, {"load_average", {{"before", {1.0}}, {"during", {during, 0.5}}}}},
          {{"cores", 8}, {"load_average", {{"before", {7.0}}}}}}}};
  };
  EXPECT_EQ(report::load_doubt_text(environment(9)), "! doubtful: load 9.0 on 2 cores\n");
  EXPECT_EQ(report::load_doubt_text(environment(2)), "");
  EXPECT_EQ(report::load_doubt_text(nlohmann::json{}), "") << "not known";
}

TEST(Credibility, ProgramsThatKeepProcessorsAwakeAreNoLoad) {
  nlohmann::json environment{{"hosts", {{{"cores", 2}, {"load_average", {{"during", {3.9}}}}}}}};
  EXPECT_EQ(report::load_doubt_text(environment), "! doubtful: load 3.9 on 2 cores\n");
  environment["mpi"]["parameters"]["LONGHAUL_AWAKE"] = "2";
  EXPECT_EQ(report::load_doubt_text(environment), "");
  EXPECT_NEAR(report::busiest_host(environment).load, 1.9, 1e-9);
  environment["hosts"].push_back({{"cores", 8}, {"load_average", {{"during", {0.1}}}}});
  EXPECT_NEAR(report::busiest_host(environment).load, 3.9, 1e-9) << "which host has them?";
}

TEST(Credibility, RanksThatComputeAreALoadOfTheirOwn) {
  RunConditions computing{.load = 7.9, .cores = 2, .ranks = 8, .computes = true};
  EXPECT_THAT(doubts_of(good_run(), computing), IsEmpty());
  computing.load = 8.1;
  EXPECT_THAT(doubts_of(good_run(), computing), ElementsAre("load 8.1 on 2 cores"));
}

/// 0.15 us: the loop of a rank alone takes longer.
TEST(Credibility, BlocksBelowTheTimersLatenessAreNotPlayed) {
  PipelineMeasurement m = good_run();
  m.mean_block = 150ns;
  m.lateness = {1000, 61ms, 3ms};
  m.summary = summarize({82'123'000'000.0});
  const auto doubts = doubts_of(m, quiet());
  ASSERT_EQ(doubts.size(), 2U);
  EXPECT_THAT(doubts[0], HasSubstr("blocks of 150 ns cannot be played here (their ends are seen "
                                   "61 us late;"));
  EXPECT_EQ(doubts[1], "measured is +82023.0% off the prediction");
  RunConditions computing = quiet();
  computing.computes = true;
  EXPECT_EQ(doubts_of(m, computing).size(), 1U) << "real blocks take their own time";
}

TEST(Credibility, ADifferenceCountsWhereThePredictionIsOfWhatRan) {
  PipelineMeasurement m = good_run();
  m.summary = summarize({80e6});
  EXPECT_THAT(doubts_of(m, quiet()), ElementsAre("measured is -20.0% off the prediction"));
  RunConditions other = quiet();
  other.is_predicted = false;  // --emulate off
  EXPECT_THAT(doubts_of(m, other), IsEmpty());
  m.straggling = 82ms;
  EXPECT_THAT(doubts_of(m, quiet()), IsEmpty()) << "the slow device explains it";
}

TEST(Credibility, WhatIsWrongWithMessagesComesBeforeDoubts) {
  RunConditions busy = quiet();
  busy.load = 9;
  PipelineMeasurement m = good_run();
  m.checks.lost = 1;
  EXPECT_EQ(verdict_text(m, busy), "1 lost");
  EXPECT_EQ(doubts_text({good_run(), m, good_run("zbv")}, busy),
            "! 1f1b, 1f1b, zbv: doubtful: load 9.0 on 2 cores\n");
}

TEST(Credibility, ReadsTheBusiestHostOfTheRecord) {
  PipelineInput input;
  PipelineOptions options;
  const nlohmann::json environment = {
      {"involuntary_context_switches", 35},
      {"hosts",
       {{{"cores", 64}, {"ranks", {0, 1}}, {"load_average", {{"before", {20.0, 1.0, 1.0}}}}},
        {{"cores", 2},
         {"ranks", {2, 3, 4}},
         {"load_average",
          {{"before", {0.5, 1.0, 1.0}},
           {"during", {3.5, 1.0, 1.0}},
           {"after", {1.0, 1.0, 1.0}}}}}}}};
  const RunConditions found = conditions_of(input, options, environment);
  EXPECT_EQ(found.load, 3.5);
  EXPECT_EQ(found.cores, 2);
  EXPECT_EQ(found.ranks, 3);
  EXPECT_EQ(conditions_text({good_run()}, found),
            "machine: load 3.5 on 2 cores, 35 involuntary switches, ends of blocks seen 60 us late "
            "on average, 1 ms at most\n");
  EXPECT_EQ(conditions_of(input, options, nullptr).cores, 0);
}

TEST(PipelineTable, TimesAreTheScenariosOwn) {
  PipelineMeasurement m = good_run();
  m.straggling = 50ms;
  m.measured.makespan_ns = 101'000'000;
  m.predicted.idle.dependency = 1000;
  const PipelineMeasurement own = at_own_scale(m, 0.25);
  EXPECT_EQ(own.predicted.makespan_ns, 400'000'000);
  EXPECT_EQ(own.measured.makespan_ns, 404'000'000);
  EXPECT_EQ(own.summary.median, 404e6);
  EXPECT_EQ(*own.straggling, 200ms);
  EXPECT_EQ(own.predicted.idle.dependency, 4000);
  EXPECT_EQ(own.lateness.total, 6ms) << "costs of the runtime do not scale";
  EXPECT_DOUBLE_EQ(own.difference_percent(), m.difference_percent());
}

/// As `longhaul simulate` would have them for the median, whatever the scale that it was played at.
TEST(PipelineTable, RatesDoNotDependOnTheTimeScale) {
  const auto at = [](double time_scale) {
    const Scenario scenario = scenario::parse_scenario(
        "[model]\npreset = \"m8\"\n[parallel]\nstages = 2\nmicrobatches = 4\n", "s.toml",
        std::vector{fmt::format("run.time_scale={}", time_scale)});
    PipelineInput input;
    input.time_scale = time_scale;
    input.scenario = scenario.as_played();
    PipelineMeasurement m;
    m.summary = summarize({time_scale * 1e9});
    return own_rates(m, input);
  };
  EXPECT_NEAR(*at(1).tokens_per_second, 4 * 4096, 1e-6);
  EXPECT_NEAR(*at(0.1).tokens_per_second, 4 * 4096, 1e-3);
  EXPECT_GT(*at(1).mfu, 0);
  EXPECT_NEAR(*at(0.1).mfu, *at(1).mfu, 1e-6 * *at(1).mfu);
}

}  // namespace
}  // namespace longhaul::harness
