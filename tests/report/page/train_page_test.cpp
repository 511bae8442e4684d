#include "report/page/train_page.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Of 100 and 200 updates, which end with `last`; `at`: updates to the target and ns.
ordered_json curve(const std::string& method, int seed, const ordered_json& last,
                   std::pair<ordered_json, ordered_json> at = {}) {
  return {{"method", method},
          {"seed", seed},
          {"learning_rate", 0.003},
          {"kind", "measured"},
          {"points", {{100, 1'000'000'000, 3.0, 3.0}, {200, 2'000'000'000, 2.5, last}}},
          {"iterations_to_target", at.first},
          {"time_to_target_ns", at.second},
          {"exchanges", 200},
          {"period_ns", 10'200'000},
          {"predicted_period_ns", 10'000'000},
          {"fresh_share", 0.75},
          {"wan", {{"payload_bytes", 200 * 2048}}}};
}

ordered_json record_of(std::vector<ordered_json> curves) {
  return {{"benchmark", "bench_train"},
          {"git_commit", "abc"},
          {"command_line", "bench_train two.toml"},
          {"scenario", "two"},
          {"scenario_text", "[parallel]"},
          {"ranks", 2},
          {"compute", "real"},
          {"network", "emulated"},
          {"environment", {{"load", 1}}},
          {"train",
           {{"data", {{"name", "synthetic"}}},
            {"target", {{"kind", "loss"}, {"value", 2.2}}},
            {"curves", std::move(curves)}}}};
}

TEST(TrainPage, AnswersInFiveSentences) {
  const auto in = [](int updates, std::int64_t ns) { return std::pair{updates, ns}; };
  const RunPage page = train_page(
      record_of({curve("none", 1, 2.0, in(200, 2'000'000'000)),
                 curve("stella", 1, 2.1, in(200, 1'000'000'000)),
                 curve("stella", 2, 2.1, in(100, 2'000'000'000)), curve("topk", 1, nullptr)}),
      "runs/train");
  EXPECT_EQ(page.title, "two: 3 methods");
  EXPECT_THAT(
      page.data["sentences"].get<std::vector<std::string>>(),
      ElementsAre("Asked: which of 3 methods trains two (2 ranks) on synthetic to loss 2.2 "
                  "soonest; they were run on ranks.",
                  "stella gets to loss 2.2 first: 1.5 s and 150 updates (median of 2 seeds).",
                  "The second, none, takes 33.3% longer; 1 method does not get there.",
                  "Measured times between exchanges are +2.00 to +2.00% from their predictions "
                  "(4 curves); the network was emulated.",
                  "What limits stella: 2 KiB cross the WAN in an exchange, from one to the next "
                  "it takes 10.2 ms, and 75% of its parts meet fresh weights."));
  const ordered_json& curves = page.data["training"]["curves"];
  ASSERT_EQ(curves.size(), 4U);
  EXPECT_EQ(curves[0]["points"][1][3], 2.0);
  EXPECT_EQ(curves[1]["wan_bytes"], 2048);
  EXPECT_TRUE(curves[3]["validation"].is_null());
  EXPECT_EQ(page.data["training"]["target"], 2.2);
  EXPECT_EQ(page.data["runs"][0]["command_line"], "bench_train two.toml");
}

/// Of methods that do not get to the target, and without one, the last validation counts: half of
/// the runs of a method that reach it are not enough.
TEST(TrainPage, OfATimedRunSaysWhichExchangesSoonest) {
  ordered_json quick = curve("topk", 1, nullptr), slow = curve("none", 1, nullptr);
  quick["points"] = slow["points"] = ordered_json::array();
  slow["period_ns"] = 15'300'000;
  ordered_json record = record_of({slow, quick});
  record["compute"] = "timed";
  const auto sentences =
      train_page(record, "runs/train").data["sentences"].get<std::vector<std::string>>();
  EXPECT_EQ(sentences[1], "topk exchanges soonest: 10.2 ms from one exchange to the next.");
  EXPECT_EQ(sentences[2], "The second, none, takes 50.0% longer.");
  EXPECT_THAT(sentences[4], HasSubstr("What limits topk"));
}

TEST(TrainPage, TellsWhoEndsLowestWhereNoMethodGetsThere) {
  ordered_json record =
      record_of({curve("none", 1, 2.4), curve("fp16", 1, 2.3, {200, 1'000'000'000}),
                 curve("fp16", 2, 2.3), curve("fp16", 3, 2.3)});
  const auto sentence = [&](int number) {
    return train_page(record, "x")
        .data["sentences"][static_cast<std::size_t>(number)]
        .get<std::string>();
  };
  EXPECT_EQ(sentence(1),
            "No method gets to loss 2.2. fp16 ends with the least validation: 2.3 (median of 3 "
            "seeds).");
  EXPECT_EQ(sentence(2), "The second, none, ends with 2.4.");
  record["train"]["target"] = nullptr;
  EXPECT_THAT(sentence(0), HasSubstr("to the least validation loss"));
  EXPECT_THAT(sentence(1), ::testing::StartsWith("fp16 ends with the least validation"));
}

class PageOfTraining : public ::testing::Test {
protected:
  PageOfTraining() {
    std::string name = ::testing::TempDir() + "longhaul-page-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~PageOfTraining() override { fs::remove_all(directory_); }
  fs::path directory_;
};

TEST_F(PageOfTraining, IsWrittenBesideTheRecord) {
  EXPECT_EQ(write_page_of_training(directory_, record_of({curve("none", 1, 2.4)})), "");
  std::ifstream page{directory_ / "report.html"};
  const std::string text{std::istreambuf_iterator<char>{page}, {}};
  EXPECT_THAT(text, HasSubstr("it is the only one"));
  EXPECT_THAT(text, HasSubstr("function drawCurves"));
}

/// The run is over by then: it must not fail for its page.
TEST_F(PageOfTraining, IsLeftOutInOneLineWhereItCannotBe) {
  EXPECT_THAT(write_page_of_training(directory_, record_of({})), HasSubstr("is left out"));
  ordered_json damaged = record_of({curve("none", 1, 2.4)});
  damaged["train"]["curves"][0].erase("wan");
  EXPECT_THAT(write_page_of_training(directory_, damaged), HasSubstr("damaged"));
  std::ofstream{directory_ / "report.html"} << "precious";
  const std::string line = write_page_of_training(directory_, record_of({curve("none", 1, 2.4)}));
  EXPECT_THAT(line, HasSubstr("exists"));
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
}

TEST(TrainPage, IsOfCurvesAlone) {
  EXPECT_TRUE(is_of_training(record_of({})));
  ordered_json other = record_of({});
  other["benchmark"] = "bench_pipeline";
  EXPECT_FALSE(is_of_training(other));
  other = record_of({});
  other.erase("train");
  EXPECT_FALSE(is_of_training(other)) << "of probes";
  EXPECT_FALSE(is_of_training(ordered_json::array()));
}

}  // namespace
}  // namespace longhaul::report
