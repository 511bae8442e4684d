#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

const std::string kTrained = testing::in_checkout("benchmarks/scenarios/train-2dc.toml");
const std::string kCurves = testing::in_checkout("benchmarks/scenarios/train-2dc-curves.csv");

TEST(AdviseMethods, AllowsMethodsThatChangeTheResult) {
  const Outcome run = longhaul_run({"advise", kTrained, "--search-moves", "50", "--allow", "lossy",
                                    "--curves", kCurves, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  const auto& best = json["plans"][0];
  EXPECT_EQ(best["loss"]["method"], "diloco:20");
  EXPECT_EQ(best["loss"]["updates"], 140);
  EXPECT_EQ(best["loss"]["target"], 2.3);
  EXPECT_EQ(best["ideas"], nlohmann::json::array({"method"}));
  const std::int64_t iteration = best["iteration_ns"].get<std::int64_t>();
  EXPECT_NEAR(best["loss"]["time_ns"].get<double>(), 140.0 * static_cast<double>(iteration), 70)
      << "of which each is a whole nanosecond";
  // tune plays the stream without a barrier between iterations.
  const Outcome tuned =
      longhaul_run({"tune", kTrained, "--family", "diloco", "--curves", kCurves, "--json"});
  const double streamed = tuned.json()["settings"][0]["methods"][0]["time_ns"];
  EXPECT_NEAR(140.0 * static_cast<double>(iteration), streamed, 0.005 * streamed);
  // The bytes of an exchange are those of its runs.
  std::vector<std::string> again{"simulate", kTrained,     "--json",        "--iterations",
                                 "8",        "--schedule", best["schedule"]};
  for (const auto& each : best["set"]) again.insert(again.end(), {"--set", each});
  const Outcome simulated = longhaul_run(again);
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const double one_way = simulated.json()["schedules"][0]["stream"]["wan_bytes"];
  EXPECT_NEAR(2 * one_way, 1'056'456, 8000);
  const Outcome text = longhaul_run(
      {"advise", kTrained, "--search-moves", "50", "--allow", "lossy", "--curves", kCurves});
  EXPECT_THAT(text.out, HasSubstr("to a loss of 2.3"));
  EXPECT_THAT(text.out, HasSubstr("diloco:20"));
}

/// Its first exchanges take longer, of which runs that get there sooner had as many; one that no
/// plan can train by is named.
TEST(AdviseMethods, PricesMethodsAsTuneDoes) {
  const TempDir dir;
  std::string curves =
      "method,seed,exchange,serve,staleness,local_steps,fragments,overlap,host_tasks,"
      "early_exchanges,early_wan_bytes,wan_bytes,updates,validation\n";
  for (const char* line : {"none,1,sites,deadline,0,1,1,0,0,0,0,1055456,90,2.2",
                           "none,2,sites,deadline,0,1,1,0,0,0,0,1055456,90,2.2",
                           "onebit,1,sites,deadline,0,1,1,0,0,20,1055456,33000,80,2.2",
                           "onebit,2,sites,deadline,0,1,1,0,0,20,1055456,33000,100,2.2",
                           "streaming-diloco:20 2 1,1,sites,deadline,0,20,2,0,0,0,0,1000,60,2.2"})
    curves += std::string{line} + '\n';
  const std::string file = dir.write("curves.csv", curves);
  const Outcome run = longhaul_run(
      {"advise", kTrained, "--search-moves", "20", "--allow", "lossy", "--curves", file, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  const auto& loss = json["plans"][0]["loss"];
  ASSERT_EQ(loss["method"], "onebit");
  const Outcome tuned =
      longhaul_run({"tune", kTrained, "--family", "onebit", "--curves", file, "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const nlohmann::json streamed = tuned.json()["settings"][0]["methods"][0];
  for (const char* const time : {"time_ns", "most_ns"})
    EXPECT_NEAR(loss[time].get<double>(), streamed[time].get<double>(),
                0.03 * streamed[time].get<double>());
  const double later = streamed["period_ns"].get<double>();
  EXPECT_GT(loss["time_ns"].get<double>(), 2 * 90 * later) << "mostly of the first 20";
  const auto is_left_out = [](const auto& each) {
    return each["reason"].template get<std::string>().starts_with("streaming-diloco:20");
  };
  EXPECT_TRUE(std::ranges::any_of(json["not_used"], is_left_out)) << json["not_used"];
}

/// DiLoCo compresses nothing on the host, and `simulate` agrees.
TEST(AdviseMethods, ChargesNoTimesOfTheHostToMethodsWithoutThem) {
  const auto best_with = [](const std::string& set) {
    const Outcome run = longhaul_run({"advise", kTrained, "--search-moves", "50", "--allow",
                                      "lossy", "--curves", kCurves, "--set", set, "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["plans"][0];
  };
  const auto without = best_with("run.seed=1"), with = best_with("train.costs.compress=100ms");
  EXPECT_EQ(with["loss"]["method"], "diloco:20");
  EXPECT_EQ(with["iteration_ns"], without["iteration_ns"]);
  EXPECT_THAT(with["set"].get<std::vector<std::string>>(),
              ::testing::Contains("train.costs.compress=0ms"));
}

TEST(AdviseMethods, RefusesMethodsOfWhichNothingIsKnown) {
  const auto error_of = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"advise", kTrained});
    const Outcome run = longhaul_run(options);
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(error_of({"--allow", "lossy"}), HasSubstr("Give --curves"));
  EXPECT_THAT(error_of({"--curves", kCurves}), HasSubstr("Give --allow lossy"));
  EXPECT_THAT(error_of({"--allow", "lossi"}), HasSubstr("lossy"));
  EXPECT_THAT(error_of({"--allow", "lossy", "--curves", kCurves, "--target", "loss=0.1"}),
              HasSubstr("reaches a loss of 0.1"));
  EXPECT_THAT(error_of({"--allow", "lossy", "--curves", kCurves, "--objective", "value"}),
              HasSubstr("Leave one out"));
  EXPECT_THAT(error_of({"--allow", "lossy", "--curves", "none.csv"}), HasSubstr("none.csv"));
}

}  // namespace
}  // namespace longhaul::test
