#include "cli/report/advice_page.hpp"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kDistant = R"([scenario]
name = "distant"
[parallel]
stages = 4
microbatches = 8
gradient_sync = "none"
[costs]
forward = "10ms"
dgrad = "10ms"
wgrad = "10ms"
message = "1MB"
[[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "10ms"
)";

/// Advice for two sites whose delay makes the order of blocks worth while.
class AdvicePage : public ::testing::Test {
protected:
  AdvicePage() {
    const Outcome run = longhaul_run({"advise", scenario_, "--set", "link.latency_ratio=2",
                                      "--search-moves", "200", "--out", advice_});
    EXPECT_EQ(run.code, 0) << run.err;
  }
  Outcome report(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"report", advice_, "--out", page_});
    return longhaul_run(options);
  }
  [[nodiscard]] nlohmann::json answer() const {
    return nlohmann::json::parse(file_text(advice_ + "/advice.json"));
  }
  TempDir dir_;
  std::string scenario_ = dir_.write("distant.toml", kDistant);
  std::string advice_ = dir_.path("advice"), page_ = dir_.path("report.html");
};

TEST_F(AdvicePage, ShowsWhatTheAnswerSays) {
  const Outcome run = report();
  ASSERT_EQ(run.code, 0) << run.err;
  const auto data = data_of(file_text(page_)), json = answer();
  EXPECT_THAT(data["left_out"].get<std::string>(), IsEmpty());
  ASSERT_EQ(data["advice"]["waterfall"].size(), json["waterfall"].size());
  for (std::size_t i = 0; i < json["waterfall"].size(); ++i)
    for (const char* part : {"alone", "added", "removed"})
      EXPECT_EQ(data["advice"]["waterfall"][i][part],
                json["waterfall"][i][std::string{part} + "_ns"]);
  EXPECT_EQ(data["advice"]["not_used"], json["not_used"]);
  EXPECT_EQ(data["advice"]["baseline"], json["baseline_ns"]);
  ASSERT_THAT(data["advice"]["plans"], SizeIs(json["plans"].size()));
  for (std::size_t i = 0; i < json["plans"].size(); ++i)
    for (const char* key : {"iteration_ns", "gap", "memory_bytes", "made_by"})
      EXPECT_EQ(data["advice"]["plans"][i][key], json["plans"][i][key]) << key;
  ASSERT_THAT(data["timelines"], SizeIs(1));
  EXPECT_EQ(data["timelines"][0]["predicted"]["span"], json["plans"][0]["iteration_ns"])
      << "the best plan, under the overrides that were asked with";
  ASSERT_THAT(data["sentences"], SizeIs(5));
  const auto sentence = [&](std::size_t i) { return data["sentences"][i].get<std::string>(); };
  const double gain =
      1 - json["plans"][0]["iteration_ns"].get<double>() / json["baseline_ns"].get<double>();
  EXPECT_THAT(sentence(0), HasSubstr("how to train distant"));
  EXPECT_THAT(sentence(1), AllOf(HasSubstr("Plan 1 is best"), HasSubstr("simulated")));
  EXPECT_THAT(sentence(2), AllOf(HasSubstr(fmt::format("{:.1f}% less", 100 * gain)),
                                 HasSubstr("order brings most of it")));
  EXPECT_THAT(sentence(3), AllOf(HasSubstr("Nothing here was measured"), HasSubstr("plan-1.csv")));
  EXPECT_THAT(sentence(4), AllOf(HasSubstr("critical path"), HasSubstr("undercuts")));
  EXPECT_THAT(run.out, HasSubstr("wrote " + page_));
}

TEST_F(AdvicePage, LeavesATimelineOutThatWouldNotBeThePlans) {
  std::filesystem::remove(scenario_);  // its plans have their own
  const std::string plan = advice_ + "/plan-1.toml";
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = file_text(plan);
    text.replace(text.find(from), from.size(), to);
    std::ofstream{plan} << text;
  };
  replaced("forward = \"10ms\"", "forward = \"12ms\"");
  ASSERT_EQ(report().code, 0);
  auto data = data_of(file_text(page_));
  EXPECT_THAT(data["timelines"], IsEmpty());
  EXPECT_THAT(data["left_out"].get<std::string>(), HasSubstr("its scenario now gives"));
  std::filesystem::remove(plan);
  std::filesystem::remove(page_);
  ASSERT_EQ(report().code, 0);
  data = data_of(file_text(page_));
  EXPECT_THAT(data["left_out"].get<std::string>(), HasSubstr("is not here"));
  EXPECT_THAT(data["sentences"][4].get<std::string>(), HasSubstr("undercuts"));
}

/// Iterations with and without an exchange are no one timeline.
TEST_F(AdvicePage, SaysWhatLimitsAPlanThatTrainsByAMethod) {
  const auto shipped = [](const char* file) {
    return testing::in_checkout(std::string{"benchmarks/scenarios/"} + file);
  };
  const std::string out = dir_.path("lossy");
  const Outcome run =
      longhaul_run({"advise", shipped("train-2dc.toml"), "--search-moves", "20", "--allow", "lossy",
                    "--curves", shipped("train-2dc-curves.csv"), "--out", out});
  ASSERT_EQ(run.code, 0) << run.err;
  ASSERT_EQ(longhaul_run({"report", out, "--out", page_}).code, 0);
  const auto best = nlohmann::json::parse(file_text(out + "/advice.json"))["plans"][0];
  const double update = best["iteration_ns"], alone = best["loss"]["alone_ns"];
  ASSERT_LE(alone, update);
  EXPECT_LE(best["bound_ns"], alone);
  EXPECT_THAT(data_of(file_text(page_))["sentences"][4].get<std::string>(),
              AllOf(HasSubstr(fmt::format("of an update {:.1f}%", 100 * (1 - alone / update))),
                    HasSubstr("undercuts")));
}

/// Bars of a time to the loss, and of a pipeline: their bound and table, too.
TEST_F(AdvicePage, HasOneUnit) {
  const auto shipped = [](const char* file) {
    return testing::in_checkout(std::string{"benchmarks/scenarios/"} + file);
  };
  const std::string lossy = dir_.path("lossy"), places = dir_.path("places");
  const std::string open = dir_.write("open.toml", R"([parallel]
stages = 2
microbatches = 4
gradient_sync = "none"
[costs]
forward = "10ms"
dgrad = "10ms"
wgrad = "10ms"
message = "1MB"
[[datacenter]]
name = "west"
gpus = 4
[[datacenter]]
name = "east"
gpus = 2
[[link]]
between = "all"
latency = "20ms"
)");
  const auto shown = [&](std::vector<std::string> words, const std::string& out) {
    words.insert(words.end(), {"--search-moves", "20", "--out", out});
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    std::filesystem::remove(page_);
    EXPECT_EQ(longhaul_run({"report", out, "--out", page_}).code, 0);
    return std::pair{nlohmann::json::parse(file_text(out + "/advice.json")),
                     data_of(file_text(page_))};
  };
  const auto [methods, of_methods] = shown({"advise", shipped("train-2dc.toml"), "--allow", "lossy",
                                            "--curves", shipped("train-2dc-curves.csv")},
                                           lossy);
  const auto& best = methods["plans"][0];
  EXPECT_EQ(of_methods["advice"]["bound"].get<std::int64_t>(),
            best["bound_ns"].get<std::int64_t>() * best["loss"]["updates"].get<std::int64_t>());
  EXPECT_LE(of_methods["advice"]["bound"].get<std::int64_t>(),
            best["loss"]["time_ns"].get<std::int64_t>());
  EXPECT_EQ(of_methods["advice"]["plans"][0]["loss_ns"], best["loss"]["time_ns"]);
  const auto [placed, of_places] = shown({"advise", open}, places);
  const double replicas = placed["plans"][0]["place"]["replicas"];
  ASSERT_GT(replicas, 1);
  ASSERT_EQ(placed["compared"], "pipeline");
  EXPECT_NEAR(of_places["advice"]["bound"].get<double>(),
              placed["plans"][0]["bound_ns"].get<double>() / replicas, 1);
  EXPECT_LE(of_places["advice"]["bound"].get<double>(),
            of_places["advice"]["baseline"].get<double>());
  EXPECT_EQ(of_places["advice"]["plans"][0]["gpus"], placed["plans"][0]["gpus"]);
  EXPECT_THAT(of_places["sentences"][2].get<std::string>(), HasSubstr("one pipeline"));
}

TEST_F(AdvicePage, RefusesInOneLine) {
  const auto refused = [&](const Outcome& run, const std::string& why) {
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(why));
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1);
  };
  refused(report({"--schedule", "1f1b"}), "Leave --schedule out");
  std::ofstream{advice_ + "/advice.json"} << R"({"plans": []})";
  refused(report(), "is damaged");
  std::ofstream{advice_ + "/advice.json"} << "{";
  refused(report(), "is damaged");
}

TEST(ShellWords, AreThoseThatWereQuoted) {
  EXPECT_THAT(cli::shell_words("longhaul advise 'my file.toml' --set 'a=\"x\"' 'it'\\''s' ''"),
              ElementsAre("longhaul", "advise", "my file.toml", "--set", "a=\"x\"", "it's", ""));
}

}  // namespace
}  // namespace longhaul::test
