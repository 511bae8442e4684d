#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

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
  const Outcome run = this->run({"--search-moves", "500", "--json", "--out", out});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  EXPECT_EQ(json["numbers"], "simulated");
  EXPECT_THAT(json["placed"].get<std::string>(), HasSubstr("east 3 > west 1"));
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

TEST_F(AdviseCommand, SaysWhatEachIdeaBrings) {
  const Outcome run = this->run({"--search-moves", "500"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Placed: east 3 > west 1"));
  EXPECT_THAT(run.out, HasSubstr("lost without"));
  EXPECT_THAT(run.out, HasSubstr("Not used: turns (no pipelines share a way over the WAN"));
  EXPECT_THAT(run.out, HasSubstr("Not used: overlap (nothing says which operators"));
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
}

}  // namespace
}  // namespace longhaul::test
