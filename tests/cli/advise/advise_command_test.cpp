#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/advise/undivided.hpp"
#include "cli/support.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/memory.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOpen = R"([scenario]
name = "open"
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
gpus = 2
[[datacenter]]
name = "east"
gpus = 3
[[link]]
between = ["west", "east"]
latency = "20ms"
)";

class AdviseCommand : public ::testing::Test {
protected:
  Outcome run(std::vector<std::string> options) const {
    options.insert(options.begin(), {"advise", open_});
    return longhaul_run(options);
  }
  TempDir dir_;
  std::string open_ = dir_.write("open.toml", kOpen);
};

TEST_F(AdviseCommand, PlacesAndItsPlansSimulateToTheSameTimes) {
  const std::string out = dir_.path("advice");
  const Outcome run = this->run(
      {"--search-moves", "500", "--json", "--out", out, "--set", "parallel.microbatches=7"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  EXPECT_EQ(json["numbers"], "simulated");
  // `plan` alone says east 3 > west 1: an order of blocks makes another placement the better one.
  EXPECT_THAT(json["placed"].get<std::string>(), HasSubstr("west 2 > east 2"));
  EXPECT_EQ(json, nlohmann::json::parse(file_text(out + "/advice.json")));
  ASSERT_GE(json["plans"].size(), 2U) << "delays make order worth while";
  for (const auto& plan : json["plans"]) {
    std::vector<std::string> again{"simulate", open_, "--json", "--schedule", plan["schedule"]};
    for (const auto& each : plan["set"]) again.insert(again.end(), {"--set", each});
    const Outcome simulated = longhaul_run(again);
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_EQ(simulated.json()["schedules"][0]["makespan_ns"], plan["iteration_ns"]);
  }
  std::int64_t gained = 0;
  for (const auto& each : json["waterfall"]) gained += each["added_ns"].get<std::int64_t>();
  EXPECT_EQ(gained, json["baseline_ns"].get<std::int64_t>() -
                        json["plans"][0]["iteration_ns"].get<std::int64_t>());
}

/// By $ of GPUs at their prices, and of prompts: the site that is cheap, and what `plan` says of
/// it.
TEST_F(AdviseCommand, PlacesByMoney) {
  const std::vector<std::string> prices{
      "--set", "datacenter.west.gpus=4", "--set", "datacenter.west.price=9",
      "--set", "datacenter.east.gpus=4", "--set", "datacenter.east.price=1"};
  std::vector<std::string> options{"--objective", "cost", "--search-moves", "20", "--json"};
  options.insert(options.end(), prices.begin(), prices.end());
  const Outcome run = this->run(options);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  const auto& best = json["plans"][0];
  EXPECT_EQ(best["place"]["placement"][0]["datacenter"], "east");
  EXPECT_EQ(json["compared"], "pipeline");
  std::vector<std::string> plan{"plan",        open_,  "--search", "exact",
                                "--objective", "cost", "--json"};
  plan.insert(plan.end(), prices.begin(), prices.end());
  const Outcome planned = longhaul_run(plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  const double dollars = 4 / 3600.0 * best["iteration_ns"].get<double>() * 1e-9;
  EXPECT_LE(dollars, planned.json()["plan"]["dollars_per_iteration"].get<double>() * (1 + 1e-9));
  std::int64_t gained = 0;
  for (const auto& each : json["waterfall"])
    gained += each["added_nanodollars"].get<std::int64_t>();
  EXPECT_NEAR(static_cast<double>(json["baseline_nanodollars"].get<std::int64_t>() - gained),
              dollars * 1e9, 1);
}

TEST_F(AdviseCommand, SaysWhatEachIdeaBrings) {
  const Outcome run = this->run({"--search-moves", "500"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Placed: west 2 > east 2"));
  EXPECT_THAT(run.out, HasSubstr("lost without"));
  EXPECT_THAT(run.out, HasSubstr("sites, order"));
  EXPECT_THAT(run.out, HasSubstr("Not used: turns (no placement that is worth it sends from"));
  EXPECT_THAT(run.out, HasSubstr("Not used: overlap (nothing says which operators"));
}

TEST_F(AdviseCommand, LeavesOutADatacenterThatIsNotNeeded) {
  for (std::vector<std::string> options :
       {std::vector<std::string>{"--without", "east"}, std::vector<std::string>{}}) {
    options.insert(options.end(),
                   {"--search-moves", "20", "--json", "--set", "datacenter.west.gpus=4"});
    const Outcome run = this->run(options);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto json = run.json();
    EXPECT_THAT(json["placed"].get<std::string>(), HasSubstr("west 4"));
    EXPECT_THAT(json["plans"][0]["set"].get<std::vector<std::string>>(),
                ::testing::Contains("datacenter.east.stages=[]"));
  }
}

TEST_F(AdviseCommand, RefusesWhatItCannotDo) {
  const auto said = [&](std::vector<std::string> options) {
    const Outcome run = this->run(std::move(options));
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(said({"--budget-seconds", "3", "--search-moves", "3"}), HasSubstr("are both given"));
  EXPECT_THAT(said({"--budget-seconds", "0"}), HasSubstr("--budget-seconds"));
  EXPECT_THAT(said({"--out", dir_.path("")}), HasSubstr("it exists"));
  EXPECT_THAT(said({"--set", "datacenter.east.gpus=1"}), HasSubstr("no plan"));
  EXPECT_THAT(said({"--objective", "value"}), HasSubstr("--requests is missing"));
  EXPECT_THAT(said({"--objective", "cost", "--set", "datacenter.west.stages=\"0-1\"", "--set",
                    "datacenter.east.stages=\"2-3\""}),
              HasSubstr("so that they are placed, or parallel.stages"));
  for (const char* option : {"--prefill-price", "--backlog", "--requests"})
    EXPECT_THAT(said({option, "1"}), HasSubstr("no effect without --objective value"));
  EXPECT_THAT(said({"--tokens", "1e9", "--deadline", "1d"}), HasSubstr("there is no [model]"));
}

TEST_F(AdviseCommand, FillsWhatStaysIdleWherePromptsEarn) {
  const std::string scenario = testing::in_checkout("benchmarks/scenarios/bubbletea.toml");
  const std::vector<std::string> load{
      "--requests", testing::in_checkout("benchmarks/requests/prompts.csv"),
      "--backlog",  "32",
      "--set",      "run.iterations=10"};
  const std::string out = dir_.path("advice");
  std::vector<std::string> options{"advise", scenario,          "--json", "--out",
                                   out,      "--search-moves",  "20",     "--objective",
                                   "value",  "--prefill-price", "0.1"};
  options.insert(options.end(), load.begin(), load.end());
  const Outcome run = longhaul_run(options);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  const auto& best = json["plans"][0];
  EXPECT_THAT(best["ideas"].get<std::vector<std::string>>(), ::testing::Contains("prefill"));
  std::vector<std::string> again{"prefill", scenario, "--json", "--schedule", best["schedule"]};
  again.insert(again.end(), load.begin(), load.end());
  const Outcome filled = longhaul_run(again);
  ASSERT_EQ(filled.code, 0) << filled.err;
  const auto row = filled.json()["schedules"][0];
  EXPECT_DOUBLE_EQ(best["prefill_tokens"].get<double>(), row["tokens_served"].get<double>() / 10);
  std::vector<std::string> by_worth{"prefill", scenario,         "--json", "--schedule",
                                    "best",    "--objective",    "value",  "--prefill-price",
                                    "0.1",     "--search-moves", "20"};
  by_worth.insert(by_worth.end(), load.begin(), load.end());
  const Outcome searched = longhaul_run(by_worth);
  ASSERT_EQ(searched.code, 0) << searched.err;
  const Outcome by_time = longhaul_run(
      {"advise", scenario, "--json", "--search-moves", "20", "--set", "run.iterations=10"});
  EXPECT_EQ(json["searched"].get<std::size_t>(), by_time.json()["searched"].get<std::size_t>() +
                                                     searched.json()["value"]["candidates"].size());
  std::int64_t gained = 0, greatest = 0;
  for (const auto& each : json["waterfall"]) {
    gained += each["added_nanodollars"].get<std::int64_t>();
    greatest = std::max(greatest, each["alone_nanodollars"].get<std::int64_t>());
  }
  EXPECT_GE(gained, greatest);
  // 12 GPUs at the assumed 2 $ an hour, less 0.1 $ for a million tokens.
  const double net = 12 * 2 / 3600.0 * best["iteration_ns"].get<double>() -
                     best["prefill_tokens"].get<double>() * 0.1 / 1e6 * 1e9;
  EXPECT_NEAR(static_cast<double>(json["baseline_nanodollars"].get<std::int64_t>() - gained), net,
              2);
}

/// The most that a device needs under a plan's own schedule.
std::int64_t most_needed_by(const nlohmann::json& plan) {
  const Scenario scenario = scenario::load_scenario(plan["scenario"].get<std::string>());
  const Schedule made = schedule::read_schedule_file(plan["schedule"].get<std::string>());
  std::int64_t most = 0;
  for (const schedule::DeviceNeed& need : schedule::device_memory(made, scenario))
    most = std::max(most, need.total().count());
  return most;
}

TEST_F(AdviseLayouts, AreScenariosThatSimulateToTheSameTimes) {
  const std::string out = dir_.path("advice");
  const Outcome run =
      this->run({"--json", "--out", out, "--tokens", "1e9", "--set", "search.micro_batch=2"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  std::int64_t last = 0;
  int overlapped = 0;
  for (const auto& plan : json["plans"]) {
    std::vector<std::string> again{"simulate", plan["scenario"], "--json", "--schedule",
                                   plan["schedule"]};
    if (!plan["overlap"].is_null()) again.insert(again.end(), {"--overlap", plan["overlap"]});
    const Outcome simulated = longhaul_run(again);
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    // Of whole blocks `makespan_ns` ends before the optimizer's step.
    const char* const time = plan["overlap"].is_null() ? "iteration_ns" : "makespan_ns";
    const auto row = simulated.json()["schedules"][0];
    EXPECT_EQ(row[time], plan["iteration_ns"]);
    EXPECT_EQ(plan["memory_bytes"], plan["overlap"].is_null()
                                        ? most_needed_by(plan)
                                        : row["peak_bytes"].get<std::int64_t>());
    overlapped += plan["overlap"].is_null() ? 0 : 1;
    EXPECT_LE(plan["low_ns"], plan["iteration_ns"]);
    EXPECT_GE(plan["high_ns"], plan["iteration_ns"]);
    EXPECT_GE(plan["iteration_ns"], last);
    last = plan["iteration_ns"].get<std::int64_t>();
    const double tokens = 64 * 2048;
    EXPECT_NEAR(plan["days"].get<double>(),
                std::ceil(1e9 / tokens) * static_cast<double>(last) * 1e-9 / 86'400, 1e-9);
  }
  EXPECT_GT(overlapped, 0);
  EXPECT_LE(json["bound"]["ns"], json["plans"][0]["iteration_ns"]);
  const Outcome report = longhaul_run({"report", out, "--out", dir_.path("report.html")});
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("Asked: how to divide and train undivided fastest"));
  EXPECT_THAT(file_text(dir_.path("report.html")), Not(HasSubstr("is left out")));
}

TEST_F(AdviseLayouts, AreFoundForASiteThatLeavesForADeadlineAndForMoney) {
  const auto best = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--json", "--tokens", "1e9"});
    const Outcome run = this->run(std::move(options));
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["plans"][0];
  };
  const auto fastest = best({});
  const auto rest = best({"--without", "west"});
  EXPECT_EQ(rest["layout"]["placement"]["datacenters"].size(), 1U);
  EXPECT_TRUE(rest["layout"]["placement"]["datacenters"].contains("east"));
  const auto cheapest = best({"--objective", "cost"});
  EXPECT_LT(cheapest["dollars"], fastest["dollars"]);
  EXPECT_GT(cheapest["days"], fastest["days"]);
  const std::string out = dir_.path("cheap");
  (void)best({"--objective", "cost", "--out", out});
  const Outcome report = longhaul_run({"report", out, "--out", dir_.path("report.html")});
  EXPECT_THAT(report.out, HasSubstr("train undivided most cheaply")) << report.err;
  const double between = (cheapest["days"].get<double>() + fastest["days"].get<double>()) / 2;
  const auto in_time = best({"--objective", "cost", "--deadline", fmt::format("{}d", between)});
  EXPECT_LE(in_time["days"], between);
  EXPECT_GE(in_time["dollars"], cheapest["dollars"]);
  const auto failing = best({"--mtbf", "1000h", "--checkpoint", "60s"});
  EXPECT_GT(failing["days"], fastest["days"]);
  EXPECT_EQ(failing["iteration_ns"], fastest["iteration_ns"]);
}

TEST_F(AdviseLayouts, RefuseWhatTheyCannotDo) {
  const auto said = [&](std::vector<std::string> options) {
    const Outcome run = this->run(std::move(options));
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(said({"--deadline", "3d"}), HasSubstr("Give --tokens"));
  EXPECT_THAT(said({"--tokens", "1e15", "--deadline", "1d"}), HasSubstr("no plan is left"));
  EXPECT_THAT(said({"--mtbf", "3h"}), HasSubstr("Give --mtbf and --checkpoint"));
  EXPECT_THAT(said({"--mtbf", "0s", "--checkpoint", "1s"}), HasSubstr("--mtbf: 0s is no time"));
  EXPECT_THAT(said({"--mtbf", "1h", "--checkpoint", "-60s"}),
              HasSubstr("--checkpoint: -60s is no time"));
  EXPECT_THAT(said({"--mtbf", "2min", "--checkpoint", "60s"}), HasSubstr("never gets on"));
  for (const std::string& message : {said({"--without", "wets"}), said({"--without", "nowhere"})})
    EXPECT_THAT(message, AllOf(HasSubstr("has no such datacenter"), Not(HasSubstr("--set"))));
  EXPECT_THAT(said({"--without", "wets"}), HasSubstr("Did you mean \"west\"?"));
  EXPECT_THAT(said({"--objective", "speed"}), HasSubstr("--objective"));
}

/// More GPUs than a checkpoint can be written between failures of.
TEST_F(AdviseLayouts, SayWithWhichPlanTrainingNeverGetsOn) {
  const std::vector<std::string> terms{"--tokens", "1e9", "--mtbf", "16min", "--checkpoint", "60s"};
  std::vector<std::string> with_json = terms;
  with_json.emplace_back("--json");
  const auto plans = this->run(with_json).json()["plans"];
  int stuck = 0;
  for (const auto& plan : plans) {
    const bool never = plan["share_lost"] == 1.0;
    EXPECT_EQ(plan["days"].is_null(), never) << "2 x 60 s x GPUs against 960 s";
    EXPECT_EQ(plan["gpus"].get<int>() >= 8, never);
    stuck += never ? 1 : 0;
  }
  ASSERT_GT(stuck, 0);
  EXPECT_THAT(this->run(terms).out, HasSubstr("Training never gets on with plan "));
}

}  // namespace
}  // namespace longhaul::test
