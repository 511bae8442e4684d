#include "report/watched_run.hpp"

#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"

namespace longhaul::report {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kMs = 1e6;

AnnouncedRun announced() {
  AnnouncedRun run{.benchmark = "bench_pipeline", .unit = "iteration"};
  run.series = {{.name = "gpipe", .total = 4, .predicted_ns = 20 * kMs},
                {.name = "1f1b", .total = 4, .predicted_ns = 10 * kMs}};
  run.series_total = 2;
  run.warmup = 1;
  run.time_scale = 2;
  run.cores = 2;
  return run;
}

/// The journal of a run that this process works on, or that none does.
class WatchedRunTest : public ::testing::Test {
protected:
  WatchedRunTest() {
    std::string name = ::testing::TempDir() + "longhaul-watched-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  void TearDown() override {
    let_go();
    std::filesystem::remove_all(directory_);
  }
  void hold() {
    descriptor_ = open(file().c_str(), O_RDWR);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(descriptor_, F_OFD_SETLK, &whole), 0);
  }
  void let_go() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
  }
  void add(const json& entry) { std::ofstream{file(), std::ios::app} << "\n" << entry << "\n"; }
  void add(const FinishedStep& step, std::int64_t at_ms, double load = 0) {
    json entry = entry_of(step);
    EXPECT_GT(entry["at_ms"], 1'600'000'000'000) << "the clock of the wall";
    entry["at_ms"] = at_ms;
    entry["load"] = load;
    add({{"watched", entry}, {"schedule", step.series}});
  }
  void add_iteration(int series, int done, double took_ms, std::int64_t at_ms, double load = 0) {
    add({.series = series,
         .name = series == 0 ? "gpipe" : "1f1b",
         .done = done,
         .took_ns = took_ms * kMs},
        at_ms, load);
  }
  [[nodiscard]] std::string file() const { return directory_ / kJournalName; }
  [[nodiscard]] WatchedRun run() const { return watched_run(directory_); }

  std::filesystem::path directory_;
  int descriptor_ = -1;
};

TEST_F(WatchedRunTest, HasTheNumbersOfWhatIsDone) {
  add(entry_of(announced()));
  hold();
  add_iteration(0, 0, 99, 1000, 1);  // warm-up
  add_iteration(0, 1, 22, 1100, 3);
  add_iteration(0, 2, 26, 1200, 2);
  const WatchedRun watched = run();
  EXPECT_EQ(watched.state, RunState::running);
  EXPECT_EQ(watched.benchmark, "bench_pipeline");
  ASSERT_EQ(watched.series.size(), 2u);
  EXPECT_EQ(watched.series[0].done, 2);
  EXPECT_EQ(watched.series[0].total, 4);
  EXPECT_THAT(watched.series[0].times_ns, ElementsAre(11 * kMs, 13 * kMs)) << "at own scale";
  EXPECT_EQ(watched.series[0].predicted_ns, 10 * kMs);
  EXPECT_NEAR(watched.series[0].difference_percent().value(), 20, 1e-9);
  EXPECT_FALSE(watched.series[1].time_ns());
  EXPECT_EQ(watched.load, 3);
  EXPECT_EQ(watched.cores, 2);
}

/// 100 ms on the wall for 20 ms predicted: the second schedule, with its warm-up, goes on so.
TEST_F(WatchedRunTest, SaysHowLongTheRestTakes) {
  add(entry_of(announced()));
  EXPECT_EQ(run().left, std::chrono::milliseconds{5 * 20 + 5 * 10}) << "nothing else is known";
  add_iteration(0, 0, 99, 1000);
  add_iteration(0, 1, 22, 1100);
  add_iteration(0, 2, 26, 1200);
  EXPECT_EQ(run().left, std::chrono::milliseconds{2 * 100 + 5 * 50});
}

TEST_F(WatchedRunTest, IsStaleWhereNoProcessHoldsIt) {
  add(entry_of(announced()));
  hold();
  EXPECT_EQ(run().state, RunState::running);
  let_go();
  EXPECT_EQ(run().state, RunState::stale);
}

TEST_F(WatchedRunTest, WhatIsDoneAnewCountsOnce) {
  add(entry_of(announced()));
  for (int done = 1; done <= 3; ++done) add_iteration(0, done, 20 + done, 1000 * done);
  add(entry_of(announced()));  // it goes on after the first one
  add_iteration(0, 2, 40, 60'000);
  add_iteration(0, 3, 42, 60'100);
  const WatchedRun watched = run();
  EXPECT_THAT(watched.series[0].times_ns, ElementsAre(10.5 * kMs, 20 * kMs, 21 * kMs));
  EXPECT_EQ(watched.left, std::chrono::milliseconds{100 + 5 * 50}) << "not the pause";
}

TEST_F(WatchedRunTest, AnotherOrderTakesTheRestOver) {
  add(entry_of(announced()));
  add_iteration(0, 1, 20, 1000);
  add({.series = 2, .name = "gpipe@1", .done = 2, .took_ns = 8 * kMs, .predicted_ns = 6 * kMs},
      1100);
  const WatchedRun watched = run();
  ASSERT_EQ(watched.series.size(), 3u);
  EXPECT_EQ(watched.series[0].total, 1);
  EXPECT_EQ(watched.series[2].total, 4);
  EXPECT_EQ(watched.series[2].predicted_ns, 3 * kMs);
  EXPECT_THAT(watched.series[2].times_ns, ElementsAre(4 * kMs));
}

TEST_F(WatchedRunTest, SeriesThatAreNotNamedYetLeaveTheEndOpen) {
  AnnouncedRun training{.benchmark = "bench_train", .unit = "exchange", .series_total = 2};
  add(entry_of(training));
  add({.series = 0,
       .name = curve_name("curve", "stella", 1, 0.5),
       .done = 6,
       .mean_ns = 5 * kMs,
       .total = 10,
       .loss = 2.5},
      1000);
  const WatchedRun watched = run();
  EXPECT_EQ(watched.series[0].name, "curve stella, seed 1, rate 0.5");
  EXPECT_EQ(watched.series[0].time_ns(), 5 * kMs);
  EXPECT_EQ(watched.series[0].loss, 2.5);
  EXPECT_FALSE(watched.left);
}

TEST_F(WatchedRunTest, ACompleteRunHasTheNumbersOfItsRecord) {
  const json schedule{
      {"schedule", "gpipe"}, {"predicted_ns", 20 * kMs}, {"samples_ns", {22 * kMs, 24 * kMs}}};
  const json environment{{"hosts", {{{"cores", 2}, {"load_average", {{"during", {7.5, 1, 1}}}}}}}};
  const auto write = [&](const json& record) {
    std::ofstream{directory_ / "record.json"} << record;
  };
  write({{"benchmark", "bench_pipeline"},
         {"time_scale", 2.0},
         {"schedules", {schedule}},
         {"environment", environment}});
  const WatchedRun watched = run();
  EXPECT_EQ(watched.state, RunState::complete);
  EXPECT_THAT(watched.series[0].times_ns, ElementsAre(11 * kMs, 12 * kMs));
  EXPECT_NEAR(watched.series[0].difference_percent().value(), 15, 1e-9);
  EXPECT_EQ(watched.load, 7.5);
  write({{"benchmark", "bench_prefill"},
         {"pairs", {{"on_ns", {3.0, 4.0}}, {"off_ns", {2.0, 2.0}}}},
         {"schedules", {{{"schedule", "atlas"}, {"stretch_ns", 2}}}}});
  EXPECT_THAT(run().series[1].times_ns, ElementsAre(3, 4));
  EXPECT_EQ(run().series[1].name, "atlas+prefill");
  write({{"benchmark", "bench_train"},
         {"train",
          {{"curves",
            {{{"method", "stella"},
              {"seed", 1},
              {"learning_rate", 0.1},
              {"losses", {3.0, 2.0}},
              {"period_ns", 5},
              {"predicted_period_ns", 4}}}}}}});
  EXPECT_EQ(run().series[0].loss, 2);
  EXPECT_EQ(run().series[0].difference_percent(), 25);
}

TEST_F(WatchedRunTest, RefusesWhatIsNoRun) {
  const auto why = [](const std::filesystem::path& directory) {
    try {
      (void)watched_run(directory);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(why(directory_ / "none"), HasSubstr("there is no such run"));
  EXPECT_THAT(why(directory_), HasSubstr("holds no run that can be watched"));
  add({{"part", json::object()}});
  EXPECT_THAT(why(directory_), HasSubstr("an older version wrote it"));
  add({{"announced", {{"benchmark", 3}}}});
  EXPECT_THAT(why(directory_), HasSubstr("is damaged"));
  std::ofstream{directory_ / "record.json"} << "{";
  EXPECT_THAT(why(directory_), HasSubstr("is damaged"));
}

TEST_F(WatchedRunTest, ALineThatIsCutShortIsLeftOut) {
  std::ofstream{file()} << R"({"part": 1)"
                        << "\n"
                        << R"({"part": 2})"
                        << "\n[3]\n";
  EXPECT_THAT(read_journal(file()), ElementsAre(json{{"part", 2}}));
  EXPECT_THAT(read_journal(directory_ / "none"), IsEmpty());
}

}  // namespace
}  // namespace longhaul::report
