// Every trace that the simulator makes keeps to rate x time on every link, interface and port: of
// the scenarios of benchmarks/scenarios, predicted and under their weather, and of random ones.
#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "report/link_load/link_check.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/random_scenario.hpp"
#include "sim/simulate.hpp"
#include "support/shipped.hpp"

namespace longhaul::report {
namespace {

using ::testing::IsEmpty;

std::vector<std::string> problems_of(LinkCheck& links, const Plan& plan, const OpTimes& times,
                                     const char* group) {
  Timeline timeline;
  plan::append_rows(timeline, plan, times, 0);
  links.begin(group, 0, timeline);
  links.add(timeline.rows);
  links.end();
  return links.problems();
}

/// No credit: what is simulated is never late.
trace::RunInfo info_of(const Scenario& scenario) {
  trace::RunInfo info;
  info.scenario = scenario.text;
  info.environment = R"({"lateness_credit_ns": 0})";
  return info;
}

/// Calls `each(plan)` for all generators that are defined on the scenario.
template <typename Each>
int for_plans(const Scenario& scenario, const Each& each) {
  int plans = 0;
  for (const schedule::Generator& generator : schedule::generators()) {
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    for (const Arrangement arrangement : every<Arrangement>()) {
      const auto plan = plan::try_lower(*schedule, scenario, arrangement);
      if (!plan || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(fmt::format("{}, {}", generator.name, to_string(arrangement)));
      each(*plan);
      ++plans;
    }
  }
  return plans;
}

/// Of at least 4 ns, so that half of it shows.
std::optional<std::size_t> longest_transfer(const Plan& plan) {
  std::optional<std::size_t> longest;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::send || op.duration < Duration{4}) continue;
    if (!longest || op.duration > plan.ops[*longest].duration) longest = i;
  }
  return longest;
}

TEST(LinkCheckOfShippedScenarios, PassesBothHalvesOfATrace) {
  int plans = 0, messages = 0;
  for (const auto& entry : std::filesystem::directory_iterator{testing::kShippedScenarios}) {
    if (entry.path().extension() != ".toml") continue;
    const Scenario scenario =
        scenario::load_scenario(entry.path(), {}, scenario::Placing::optional);
    if (!scenario.is_placed()) continue;
    SCOPED_TRACE(scenario.name);
    plans += for_plans(scenario, [&](const Plan& plan) {
      LinkCheck predicted{info_of(scenario)};
      EXPECT_THAT(problems_of(predicted, plan, sim::simulate(plan), "predicted"), IsEmpty());
      const plan::Weather weather{plan, scenario};
      const OpTimes played = sim::simulate(plan, {&weather, 1, std::chrono::seconds{3}});
      LinkCheck measured{info_of(scenario)};
      EXPECT_THAT(problems_of(measured, plan, played, "measured"), IsEmpty());
      messages += predicted.json()["messages"].get<int>();
    });
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(messages, 10'000);
}

TEST(LinkCheckOfRandomScenarios, PassesAndMissesNoMessageThatIsFaster) {
  int plans = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario = test::random_scenario(seed);
    plans += for_plans(scenario, [&](const Plan& plan) {
      OpTimes times = sim::simulate(plan);
      LinkCheck links{info_of(scenario), scenario};
      EXPECT_THAT(problems_of(links, plan, times, "predicted"), IsEmpty());
      const auto longest = longest_transfer(plan);
      if (!longest) return;
      OpTime& time = times[*longest];
      time.end -= (time.end - time.start) / 2;
      LinkCheck of_forged{info_of(scenario), scenario};
      EXPECT_FALSE(problems_of(of_forged, plan, times, "predicted").empty());
      ++refused;
    });
  }
  EXPECT_GT(plans, 500);
  EXPECT_GT(refused, plans / 3);
}

}  // namespace
}  // namespace longhaul::report
