#include "harness/layers/beside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

/// bench_layers --beside: who stands against whom, and what follows for a scenario.
namespace longhaul::harness {
namespace {

BesideCase made_case(const std::string& name, const std::string& against, double f, double b) {
  BesideCase made{name, against, {}, std::nullopt};
  for (const auto& [part, seconds] :
       {std::pair{"F", f}, {"B", b}, {"D", b}, {"W", b}, {"F+B", f + b}})
    made.parts.push_back({"block", part, 0, 0, {seconds, seconds, seconds}});
  return made;
}

BesideReport made_report() {
  BesideReport report;
  report.options.shape = {1, 8, 64, 176, 4, 2, 200, 3};
  report.cases = {made_case("alone", "", 1, 2), made_case(kBesideSum, "alone", 1.5, 2.25),
                  made_case(kBesideHost, "alone", 0.9, 2)};
  report.cases[1].side = SideWork{kBesideSum, 3e9, {1, 1, 1}, {2, 2, 2, 4}};
  report.cases[2].side = SideWork{kBesideHost, 1e9, {1}, {}};
  return report;
}

TEST(Beside, SlowdownIsOverTheCaseItStandsAgainst) {
  const BesideReport report = made_report();
  EXPECT_EQ(report.slowdown(report.cases[0], "F"), std::nullopt);
  EXPECT_DOUBLE_EQ(report.slowdown(report.cases[1], "F").value(), 1.5);
  EXPECT_DOUBLE_EQ(report.slowdown(report.cases[1], "B").value(), 1.125);
  EXPECT_DOUBLE_EQ(report.slowdown(report.cases[1], "F+B").value(), 1.25);
}

/// A layer that is faster beside something is no slowdown below 1, which a scenario refuses.
TEST(Beside, OverlapIsASectionOfAScenario) {
  EXPECT_EQ(overlap_section(made_report()),
            "[overlap]\nslowdown = {node = 1.250, datacenter = 1.000, wan = 1.000}\n");
  BesideReport without = made_report();
  without.cases.pop_back();
  EXPECT_EQ(overlap_section(without), std::nullopt);
}

TEST(Beside, TheRecordHasWhatTheTableShows) {
  const nlohmann::ordered_json record = beside_record(made_report(), "bench_layers --beside copy");
  EXPECT_EQ(record.at("numbers"), "measured");
  EXPECT_THAT(record.at("overlap_toml"), ::testing::HasSubstr("node = 1.250"));
  const auto& sum = record.at("beside").at(1);
  EXPECT_EQ(sum.at("against"), "alone");
  EXPECT_EQ(sum.at("parts").at("F").at("slowdown"), 1.5);
  EXPECT_EQ(sum.at("side").at("slowdown"), 2);
  EXPECT_EQ(sum.at("side").at("during").at("n"), 4);
  EXPECT_DOUBLE_EQ(sum.at("side").at("during").at("p99_over_p50"), 3.94 / 2);
  const auto& starved = record.at("beside").at(2).at("side");
  EXPECT_EQ(starved.at("during").at("n"), 0);
  EXPECT_TRUE(starved.at("slowdown").is_null());
  EXPECT_THAT(beside_table(made_report()), ::testing::HasSubstr("1.500"));
}

/// On a CPU, which has no streams: a prompt in order in the gaps.
TEST(Beside, ACpuTakesAPromptInOrder) {
  const auto make = [](cuda::Urgency) { return nn::make_cpu_math(); };
  BesideOptions options{.shape = {1, 24, 64, 176, 4, 2, 200, 3}, .prompt = 8, .samples = 10};
  options.streams = false;
  const std::vector<BesideCase> cases = measure_beside(make, options);
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[1].against, "alone");
  for (const BesideCase& one : cases) {
    EXPECT_EQ(one.part("F").seconds.size(), 20U);
    EXPECT_EQ(one.part("B").seconds.size(), 10U);
    EXPECT_EQ(one.part("W").seconds.size(), 10U);
    EXPECT_EQ(one.part("F+B").seconds.size(), 10U);
    for (std::size_t i = 0; i < 10; ++i)
      EXPECT_GT(one.part("F+B").seconds[i], one.part("B").seconds[i]);
  }
  EXPECT_EQ(cases[1].side->during.size(), 20U);
  EXPECT_EQ(cases[1].side->alone.size(), 40U);
  EXPECT_THROW(static_cast<void>(time_loads(*make(cuda::Urgency::normal), 1e3, 2)), Error);
}

}  // namespace
}  // namespace longhaul::harness
