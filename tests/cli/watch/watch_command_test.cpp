#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "report/watched_run.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run of one schedule, two of its eight iterations done.
class WatchCommand : public ::testing::Test {
protected:
  WatchCommand() {
    report::AnnouncedRun run{.benchmark = "bench_pipeline", .unit = "iteration"};
    run.series = {{.name = "zb-h1", .total = 8, .predicted_ns = 20e6}};
    run.series_total = 1;
    run.cores = 2;
    std::ofstream journal{file_};
    journal << report::entry_of(run) << "\n";
    for (int done = 1; done <= 2; ++done)
      journal << nlohmann::json{{"watched",
                                 report::entry_of(report::FinishedStep{
                                     .name = "zb-h1", .done = done, .took_ns = 20e6 + 1e6 * done})}}
              << "\n";
  }
  ~WatchCommand() override {
    if (descriptor_ >= 0) close(descriptor_);
  }
  void go_on() {
    descriptor_ = open(file_.c_str(), O_RDWR);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(descriptor_, F_OFD_SETLK, &whole), 0);
  }
  [[nodiscard]] Outcome watch(std::vector<std::string> options = {"--once"}) const {
    options.insert(options.begin(), {"watch", dir_.path("")});
    return longhaul_run(options);
  }
  TempDir dir_;
  std::string file_ = dir_.path(report::kJournalName);
  int descriptor_ = -1;
};

TEST_F(WatchCommand, ShowsWhatIsDoneBesideThePrediction) {
  go_on();
  const Outcome run = watch();
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("bench_pipeline, running; 2 of 8 iterations, about"),
                             HasSubstr("on 2 cores"), HasSubstr("the last iteration ended")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("zb-h1"), HasSubstr("20.00"), HasSubstr("21.50"),
                             HasSubstr("2/8"), HasSubstr("+7.50"), HasSubstr("- (n < 6)")));
}

TEST_F(WatchCommand, SaysThatARunIsStale) {
  const Outcome run = watch();
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("stale"), HasSubstr("No process works on it"),
                             HasSubstr("--resume goes on"), HasSubstr("21.50")));
  EXPECT_EQ(watch({"--json"}).json()["state"], "stale");
}

TEST_F(WatchCommand, PrintsJson) {
  go_on();
  const auto json = watch({"--json"}).json();
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["unit"], "iteration");
  EXPECT_EQ(json["series"][0]["measured_median_ns"], 21'500'000);
  EXPECT_EQ(json["series"][0]["measured_median_low_ns"], nullptr);
  EXPECT_EQ(json["series"][0]["done"], 2);
  EXPECT_EQ(json["series"][0]["total"], 8);
  EXPECT_NEAR(json["series"][0]["difference_percent"].get<double>(), 7.5, 1e-9);
  EXPECT_TRUE(json["left_ns"].is_number());
  EXPECT_GE(json["since_last_ns"], 0);
}

TEST_F(WatchCommand, ShowsACompleteRunOnceAndEnds) {
  dir_.write("record.json", R"({"benchmark": "bench_pipeline", "schedules": [{"schedule": "zb-h1",
      "predicted_ns": 20000000, "samples_ns": [30000000]}]})");
  const Outcome run = watch({});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("complete"), HasSubstr("1/1"), HasSubstr("+50.00")));
  EXPECT_EQ(watch({"--json"}).json()["left_ns"], 0);
}

TEST_F(WatchCommand, RefusesInOneLine) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& why) {
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1);
  };
  refused({"watch", dir_.path("none")}, "there is no such run");
  refused({"watch", file_}, "there is no such run");
  refused({"watch", dir_.path(""), "--every", "1ms"}, "at least 100ms");
  refused({"watch"}, "a file is missing");
}

}  // namespace
}  // namespace longhaul::test
