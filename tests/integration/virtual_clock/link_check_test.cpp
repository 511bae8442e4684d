// What ranks measure keeps to rate x time on every link: exactly where no host is late, and with
// the credit that they are given where one is.
#include "report/link_load/link_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "random_plans.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using testing::play;
using testing::VirtualRun;

std::vector<std::string> problems_of(const Plan& plan, const OpTimes& times,
                                     const Scenario& scenario, Duration credit) {
  trace::RunInfo info;
  info.environment = fmt::format(R"({{"lateness_credit_ns": {}}})", credit.count());
  report::LinkCheck links{info, scenario};
  Timeline timeline;
  plan::append_rows(timeline, plan, times, 0);
  links.begin("measured", 0, timeline);
  links.add(timeline.rows);
  links.end();
  return links.problems();
}

template <typename Each>
int for_drawn_plans(std::uint64_t seeds, double time_scale, const Each& each) {
  const auto generators = schedule::generators();
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random{seed};
    Scenario scenario = testing::random_scenario(random);
    scenario.run.time_scale = time_scale;
    scenario = scenario.as_played();
    const auto& generator = generators[to_size(random.between(0, std::ssize(generators) - 1))];
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    for (const Arrangement arrangement : every<Arrangement>()) {
      const auto plan = plan::try_lower(*schedule, scenario, arrangement);
      if (!plan || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(fmt::format("seed {}, {}, {}", seed, generator.name, to_string(arrangement)));
      each(*plan, scenario);
      ++plans;
    }
  }
  return plans;
}

TEST(LinkCheckByAVirtualClock, PassesWhatRanksMeasure) {
  const int plans = for_drawn_plans(60, 1, [](const Plan& plan, const Scenario& scenario) {
    EXPECT_THAT(problems_of(plan, play(plan).front().times, scenario, 0ns), IsEmpty());
  });
  EXPECT_GT(plans, 50);
}

// Blocks of some milliseconds whose ends are seen up to 200 us late: messages then hold their links
// for less than bytes / rate, and never for less than the credit allows.
TEST(LinkCheckByAVirtualClock, PassesWithTheCreditAndNotWithoutIt) {
  int shorter = 0;
  const int plans = for_drawn_plans(60, 1e5, [&](const Plan& plan, const Scenario& scenario) {
    const OpTimes times = play(plan, {}, {.credit = 1ms, .latest = 200us}).front().times;
    EXPECT_THAT(problems_of(plan, times, scenario, 1ms), IsEmpty());
    shorter += problems_of(plan, times, scenario, 0ns).empty() ? 0 : 1;
    const OpTimes strict = play(plan, {}, {.latest = 200us}).front().times;
    EXPECT_THAT(problems_of(plan, strict, scenario, 0ns), IsEmpty());
  });
  EXPECT_GT(plans, 50);
  EXPECT_GT(shorter, plans / 4);
}

}  // namespace
}  // namespace longhaul
