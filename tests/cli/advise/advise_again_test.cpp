// What advice prints and keeps, played again by other commands.
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/advice_page.hpp"
#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

class AdviseAgain : public ::testing::Test {
protected:
  /// The words of the command that it ends with.
  std::vector<std::string> advised(std::vector<std::string> words) const {
    words.insert(words.begin(), "advise");
    words.insert(words.end(), {"--out", out_});
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    const std::string begin = "The best again: longhaul ";
    const std::size_t at = run.out.find(begin);
    EXPECT_NE(at, std::string::npos) << run.out;
    std::string line = run.out.substr(at + begin.size());
    line.resize(line.find('\n'));
    return cli::shell_words(line);
  }
  [[nodiscard]] nlohmann::json plans() const {
    return nlohmann::json::parse(file_text(out_ + "/advice.json"))["plans"];
  }
  static nlohmann::json answer(std::vector<std::string> words) {
    words.emplace_back("--json");
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? run.json() : nlohmann::json{};
  }
  static std::string scenario(const char* name) {
    return testing::in_checkout(std::string{"benchmarks/scenarios/"} + name);
  }
  TempDir dir_;
  std::string out_ = dir_.path("advice");
};

/// As far as that of advice went: one that ends before that is another one.
TEST_F(AdviseAgain, SearchesAnOverlapAsFar) {
  const std::vector<std::string> again = advised(
      {scenario("three-sites.toml"), "--search-moves", "20", "--set", "parallel.microbatches=2"});
  int searched = 0;
  for (const auto& plan : plans()) {
    if (plan["overlap_search"].is_null()) continue;
    ++searched;
    std::vector<std::string> words{"simulate",       plan["scenario"], "--schedule",
                                   plan["schedule"], "--overlap",      plan["overlap"]};
    for (const auto& each : plan["set"]) words.insert(words.end(), {"--set", each});
    const auto row_of = [&](std::size_t most) {
      std::vector<std::string> ended = words;
      ended.insert(ended.end(), {"--overlap-search", std::to_string(most)});
      return answer(ended)["schedules"][0];
    };
    const auto most = plan["overlap_search"].get<std::size_t>();
    EXPECT_EQ(row_of(most)["makespan_ns"], plan["iteration_ns"]);
    EXPECT_EQ(row_of(most)["evaluated"], most);
    EXPECT_LT(row_of(most / 2)["evaluated"].get<std::size_t>(), most);
  }
  EXPECT_GT(searched, 0);
  EXPECT_THAT(again, Contains("--overlap-search"));
  EXPECT_EQ(answer(again)["schedules"][0]["makespan_ns"], plans()[0]["iteration_ns"]);
  const std::string page = dir_.path("report.html");
  ASSERT_EQ(longhaul_run({"report", out_, "--out", page}).code, 0);
  EXPECT_THAT(data_of(file_text(page))["left_out"].get<std::string>(), IsEmpty());
}

TEST_F(AdviseAgain, PlaysUpdatesOfAMethod) {
  const std::vector<std::string> again =
      advised({scenario("train-2dc.toml"), "--search-moves", "20", "--allow", "lossy", "--curves",
               scenario("train-2dc-curves.csv")});
  const double one_way = answer(again)["schedules"][0]["stream"]["wan_bytes"];
  const nlohmann::json best = plans()[0];
  ASSERT_EQ(best["loss"]["method"], "diloco:20");
  EXPECT_NEAR(2 * one_way, 1'055'456, 8000) << "as on its curve";
  double message = 0;
  for (const std::string set : best["set"])
    if (constexpr std::string_view kMessage = "train.message="; set.starts_with(kMessage))
      message = std::stod(set.substr(kMessage.size()));
  ASSERT_GT(message, 0);
  EXPECT_EQ(std::fmod(one_way, message), 0) << "a set of each part";
}

TEST_F(AdviseAgain, FillsBubblesWithThePrompts) {
  const std::vector<std::string> again =
      advised({scenario("bubbletea.toml"), "--search-moves", "20", "--objective", "value",
               "--prefill-price", "0.1", "--requests",
               testing::in_checkout("benchmarks/requests/prompts.csv"), "--backlog", "32", "--set",
               "run.iterations=10"});
  EXPECT_DOUBLE_EQ(answer(again)["schedules"][0]["tokens_served"].get<double>() / 10,
                   plans()[0]["prefill_tokens"].get<double>());
}

}  // namespace
}  // namespace longhaul::test
