// Times of plans whose stages are several ranks, whose ranks are numbered otherwise, and whose
// replicas differ.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

Scenario scenario_of(int stages, int microbatches, int replicas, int tensor) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  scenario.parallel.replicas = replicas;
  scenario.parallel.tensor = tensor;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 2, Duration{20}, Duration{50});
}

Duration time_of(const Plan& plan) {
  Duration last{};
  for (const OpTime& time : sim::simulate(plan)) last = std::max(last, time.end);
  return last;
}

// F 100, B 200, transfer 50, latency 20. Two tensor ranks that share the link of their datacenters:
// the second one's activations leave at 150, its gradients at 570.
TEST(TensorRanks, TakeASharedLinkOneAfterTheOther) {
  Scenario scenario = scenario_of(2, 1, 1, 2);
  const Schedule schedule = schedule::generate("1f1b", scenario);
  EXPECT_EQ(time_of(plan::lower(schedule, scenario)), Duration{740});
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  // 100 + 2 x 50 + 20 = 220: F 320, B 520; + 50 + 20 = 590: B 790.
  EXPECT_EQ(time_of(plan::lower(schedule, scenario)), Duration{790});
}

/// Times of the compute ops of a plan, by (replica, stage, place in the row).
std::vector<std::vector<Duration>> ends_of(const Plan& plan, int tensor) {
  const OpTimes times = sim::simulate(plan);
  std::vector<std::vector<Duration>> ends(to_size(plan.replicas * plan.stages));
  for (const Lane& lane : plan.lanes) {
    const RankInfo& info = plan.ranks[index(lane.rank)];
    if (lane.kind != OpKind::compute || info.tensor != tensor) continue;
    for (std::uint32_t i = 0; i < lane.count; ++i)
      ends[to_size(number(info.replica) * plan.stages + number(info.device))].push_back(
          times[index(lane.first) + i].end);
  }
  return ends;
}

TEST(TensorRanks, WithLinksOfTheirOwnRunAsOneRankDoes) {
  Random random{11};
  for (int trial = 0; trial < 30; ++trial) {
    Scenario one =
        scenario_of(static_cast<int>(random.between(2, 4)), static_cast<int>(random.between(2, 8)),
                    static_cast<int>(random.between(1, 3)), 1);
    one.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 2));
    Scenario several = one;
    several.parallel.tensor = 3;
    for (std::int64_t i = random.between(0, 5); i > 0; --i)
      std::ranges::next_permutation(several.parallel.order);
    several.placement.clear();
    for (const Rank rank : ids<Rank>(several.ranks())) {
      const RankPlace place = several.place_of(rank);
      several.placement.push_back(one.datacenter_of(one.rank(place.replica, place.stage)));
    }
    const Schedule schedule = schedule::generate("zb-h1", one);
    const auto want = ends_of(plan::lower(schedule, one), 0);
    const Plan plan = plan::lower(schedule, several);
    for (int tensor = 0; tensor < 3; ++tensor) EXPECT_EQ(ends_of(plan, tensor), want);
  }
}

TEST(UnevenReplicas, EachRunAsTheyRunAlone) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zbv", "cross-ud"}) {
    Scenario scenario = scenario_of(3, 6, 3, 1);
    scenario.parallel.replica_microbatches = {6, 3, 4};
    scenario.replica_costs.assign(3, scenario.costs);
    scenario.replica_costs[1].forward.assign(3, Duration{170});
    scenario.replica_costs[2].wgrad.assign(3, Duration{30});
    const Schedule schedule = schedule::generate(name, scenario);
    EXPECT_EQ(schedule::violation_but_memory(schedule, scenario), std::nullopt);
    const auto all = ends_of(plan::lower(schedule, scenario), 0);
    for (const ReplicaId replica : scenario.replica_ids()) {
      const Scenario alone = scenario.of_replica(replica);
      const auto want = ends_of(plan::lower(schedule::generate(name, alone), alone), 0);
      for (const DeviceId device : scenario.device_ids())
        EXPECT_EQ(all[to_size(number(replica) * 3 + number(device))], want[index(device)])
            << name << ", replica " << number(replica);
    }
  }
}

TEST(UnevenReplicas, KeepTheirRowsInAFile) {
  Scenario scenario = scenario_of(2, 4, 2, 1);
  scenario.parallel.replica_microbatches = {2, 4};
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const std::string text = schedule::write_csv(schedule, schedule::CsvFormat::longhaul);
  EXPECT_THAT(text, HasSubstr("# replica_microbatches = 2,4\n"));
  EXPECT_EQ(schedule::read_csv(text, "s.csv", "s"), schedule);
}

TEST(UnevenReplicas, AreCheckedByTheirOwnCounts) {
  Scenario scenario = scenario_of(2, 4, 2, 1);
  scenario.parallel.replica_microbatches = {2, 4};
  Schedule schedule = schedule::generate("1f1b", scenario);
  EXPECT_EQ(schedule::first_violation(schedule), std::nullopt);
  schedule.rows[0].pop_back();
  const auto violation = schedule::first_violation(schedule);
  ASSERT_TRUE(violation.has_value());
  EXPECT_THAT(violation->text, HasSubstr("Replica 0: "));
  scenario.parallel.replica_microbatches = {4, 2};
  EXPECT_THAT(
      schedule::first_violation(schedule::generate("1f1b", scenario_of(2, 4, 2, 1)), scenario)
          ->text,
      HasSubstr("other counts of microbatches"));
}

}  // namespace
}  // namespace longhaul
