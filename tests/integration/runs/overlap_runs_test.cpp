// Whole runs of bench_pipeline whose blocks slow beside messages.
#include <algorithm>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

class OverlapRuns : public BenchPipeline {
protected:
  /// Messages of 10 ms over the WAN, beside which blocks take three times as long.
  OverlapRuns() { write_scenario(std::string{kFourStages} + "[overlap]\nslowdown = {wan = 3}\n"); }
  [[nodiscard]] Duration simulated(const std::string& name,
                                   const std::vector<std::string>& set) const {
    std::vector<std::string> all = set;
    all.insert(all.begin(), kSlowLink);
    const Scenario read = scenario::load_scenario(scenario(), all);
    const OpTimes times = sim::simulate(plan::lower(schedule::generate(name, read), read));
    return std::ranges::max(times, {}, &OpTime::end).end;
  }
  static constexpr const char* kSlowLink = "link.bandwidth=838Mbps";
};

TEST_F(OverlapRuns, TakeAtLeastWhatTheyWouldWithoutIt) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b,zb-h1", "--iterations", "3", "--warmup", "1", "--set",
                    kSlowLink, "--out", out()}),
            0)
      << output();
  const nlohmann::json all = record();
  for (const auto& schedule : all["schedules"]) {
    const auto name = schedule["schedule"].get<std::string>();
    EXPECT_EQ(schedule["check"], "ok");
    const Duration slow = simulated(name, {});
    const Duration steady = simulated(name, {"overlap.slowdown=1"});
    EXPECT_EQ(schedule["predicted"]["makespan_ns"], slow.count()) << name;
    ASSERT_GT(slow, steady + std::chrono::milliseconds{3}) << name;
    // Late it may be, but no earlier than the clock of ranks allows.
    for (const auto& sample : schedule["samples_ns"])
      EXPECT_GT(sample.get<double>(),
                static_cast<double>((steady + (slow - steady) * 9 / 10).count()))
          << name;
  }
}

TEST_F(OverlapRuns, WhatCannotSlowIsRefused) {
  const auto said = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{"--schedule", "1f1b"};
    all.insert(all.end(), options.begin(), options.end());
    EXPECT_EQ(run(4, all), 2) << output();
    return output();
  };
  EXPECT_THAT(said({"--compute", "real"}), HasSubstr("--compute real with [overlap]"));
  EXPECT_THAT(said({"--emulate", "off"}), HasSubstr("--emulate off with [overlap]"));
  EXPECT_THAT(said({"--adaptive"}), HasSubstr("--adaptive with [overlap]"));
}

}  // namespace
}  // namespace longhaul::testing
