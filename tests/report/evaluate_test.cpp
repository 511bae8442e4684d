#include "report/evaluate.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "support/shipped.hpp"

namespace longhaul::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ScheduleRecord evaluated(const Scenario& scenario, std::size_t most_ops) {
  planner::ScheduleResult made;
  made.schedule = schedule::generate("1f1b", scenario);
  return evaluate(made, scenario, Arrangement::decoupled, Bounds::left_out, nullptr,
                  Granularity::blocks, most_ops);
}

TEST(Evaluate, SaysWhereCollectivesAreOneOp) {
  const Scenario scenario = scenario::load_scenario(testing::kShippedScenarios / "dp-2dc.toml");
  const ScheduleRecord steps = evaluated(scenario, planner::kMostOpsInSteps);
  EXPECT_EQ(to_json(steps)["grain"], "steps");
  EXPECT_THAT(table_text({&steps, 1}, scenario), Not(HasSubstr("one op each")));
  const ScheduleRecord whole = evaluated(scenario, 100);
  EXPECT_EQ(to_json(whole)["grain"], "whole");
  EXPECT_THAT(table_text({&whole, 1}, scenario),
              HasSubstr("collectives of 1f1b are one op each, as long as they take alone (by "
                        "messages there would be more than 10000000 ops)\n"));
  // Four rings of two on links of their own: what they take alone.
  EXPECT_EQ(whole.makespan_ns, steps.makespan_ns);
}

TEST(Evaluate, NamesEstimates) {
  const std::vector<std::string> set{"parallel.gradient_sync=ring-rate"};
  const Scenario scenario =
      scenario::load_scenario(testing::kShippedScenarios / "dp-2dc.toml", set);
  const ScheduleRecord record = evaluated(scenario, planner::kMostOpsInSteps);
  EXPECT_EQ(to_json(record)["grain"], "estimate");
  EXPECT_THAT(table_text({&record, 1}, scenario),
              HasSubstr("collectives of 1f1b are estimates, which hold no link\n"));
}

// No pipeline message crosses: what the link carries are steps of collectives.
TEST(Evaluate, CountsCollectivesInHowBusyLinksWere) {
  const std::vector<std::string> set{"link.sharing=datacenter"};
  const Scenario scenario =
      scenario::load_scenario(testing::kShippedScenarios / "dp-2dc.toml", set);
  const ScheduleRecord record = evaluated(scenario, planner::kMostOpsInSteps);
  Duration expected{};
  std::int64_t bytes = 0;
  for (const Bytes weights : scenario.costs.weights) {
    ASSERT_EQ(weights.count() % 2, 0);  // a gather and a scatter, half of the weights each way
    expected += 2 * (weights / 2 / scenario.links[0].bandwidth);
    bytes += weights.count();
  }
  for (const char* name : {"link west>east", "link east>west"}) {
    const auto use = std::ranges::find(record.resources, name, &plan::ResourceUse::name);
    ASSERT_NE(use, record.resources.end());
    EXPECT_EQ(use->busy, expected);
    EXPECT_EQ(use->holds, 8U);
  }
  for (const trace::Traffic& sent : record.traffic) {
    if (sent.from == sent.to) continue;
    EXPECT_EQ(sent.data_parallel_bytes, bytes);
    EXPECT_EQ(sent.message_bytes, 0);
  }
}

}  // namespace
}  // namespace longhaul::report
