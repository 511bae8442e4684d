#include "planner/hierarchy/hierarchy.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using namespace std::chrono_literals;

/// Pipelines of 1 to 4 stages in 1 to 4 sites of 1 to 3 replicas each, stage by stage or replica by
/// replica; every number drawn.
Scenario random_sites(Random& random) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<int>(random.between(low, high));
  };
  const int sites = draw(1, 4), of_site = draw(1, 3), stages = draw(1, 4);
  Scenario scenario = uniform_scenario(stages, draw(1, 6));
  Parallel& parallel = scenario.parallel;
  parallel.replicas = sites * of_site;
  parallel.tensor = draw(1, 2);
  constexpr std::array kSyncs{GradientSync::none, GradientSync::all_reduce, GradientSync::zero1,
                              GradientSync::zero2, GradientSync::zero3};
  parallel.gradient_sync = kSyncs[index(DeviceId{draw(0, 4)})];
  constexpr std::array kOrders{
      kTensorStageReplica,
      RankOrder{RankDimension::tensor, RankDimension::replica, RankDimension::stage}};
  parallel.order = kOrders[index(DeviceId{draw(0, 1)})];
  parallel.shard = draw(0, 1) == 0 ? of_site : parallel.replicas;
  scenario.memory.recompute = draw(0, 2) == 0;
  const auto cost = [&](Costs& costs) {
    for (std::size_t i = 0; i < costs.forward.size(); ++i) {
      costs.forward[i] = Duration{draw(50, 150)};
      costs.dgrad[i] = Duration{draw(50, 150)};
      costs.wgrad[i] = Duration{draw(20, 150)};
      costs.recompute[i] = costs.forward[i];
      costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
      costs.message[i] = Bytes{draw(500, 1500)};
    }
  };
  cost(scenario.costs);
  for (Bytes& weights : scenario.costs.weights) weights = Bytes{draw(0, 3000) / draw(1, 100)};
  if (draw(0, 1) == 0)
    for (int stage = 0; stage < stages; ++stage)
      scenario.costs.optimizer.push_back(Duration{draw(0, 200)});
  if (draw(0, 2) == 0) {
    for (int replica = 0; replica < parallel.replicas; ++replica) {
      scenario.replica_costs.push_back(scenario.costs);
      if (replica % 2 == 0) cost(scenario.replica_costs.back());
    }
  }
  scenario.datacenters.clear(), scenario.placement.clear();
  for (int from = 0; from < sites; ++from) {
    scenario.datacenters.push_back({fmt::format("site-{}", from), std::nullopt, 1.0});
    for (int to = 0; to < sites; ++to) {
      if (from == to && draw(0, 1) == 0) continue;
      Link link;
      link.from = DatacenterId{from}, link.to = DatacenterId{to};
      link.latency = Duration{draw(0, 400)};
      if (draw(0, 3) > 0) link.bandwidth = Bandwidth{static_cast<double>(draw(20, 400)) * 1e9};
      scenario.links.push_back(link);
    }
  }
  const bool by_replica = draw(0, 1) == 0;
  for (int rank = 0; rank < scenario.training_ranks(); ++rank) {
    const RankPlace place = scenario.place_of(Rank{rank});
    const int site =
        by_replica ? number(place.replica) / of_site : number(place.stage) * sites / stages;
    scenario.placement.push_back(DatacenterId{site});
  }
  return scenario;
}

Duration end_of(const Plan& plan, const OpTimes& times, Rank rank) {
  const OpRange ops = ops_of_rank(plan, rank);
  Duration end{};
  for (std::uint32_t i = ops.first; i < ops.first + ops.count; ++i)
    end = std::max(end, times[i].end);
  return end;
}

TEST(Hierarchy, GivesTheTimesOfThePlanOfAllRanks) {
  Random random{20};
  int compared = 0, spread = 0;
  std::set<GradientSync> syncs;
  for (int round = 0; round < 300; ++round) {
    const Scenario scenario = random_sites(random);
    const auto names = schedule::static_schedule_names();
    const std::string& name = names[at(random.between(0, std::ssize(names) - 1))];
    const schedule::Generator& generator = *schedule::find_generator(name);
    const Result<Schedule> schedule = schedule::try_generate(generator, scenario);
    const Result<HierarchicalTimes> played = play_hierarchically(scenario, generator);
    ASSERT_EQ(static_cast<bool>(schedule), static_cast<bool>(played)) << round;
    if (!schedule) continue;
    const Plan plan = plan::lower(*schedule, scenario);
    const OpTimes times = sim::simulate(plan);
    ++compared;
    syncs.insert(scenario.parallel.gradient_sync);
    spread += scenario.datacenters.size() > 1 ? 1 : 0;
    EXPECT_EQ(played->ops, std::ssize(plan.ops)) << round;
    Duration last{};
    for (const OpTime& time : times) last = std::max(last, time.end);
    EXPECT_EQ(played->iteration, last) << round << " " << name;
    for (int number = 0; number < scenario.training_ranks(); ++number) {
      const RankPlace place = scenario.place_of(Rank{number});
      const std::size_t at_rank =
          index(place.replica) * to_size(scenario.parallel.stages) + index(place.stage);
      ASSERT_EQ(played->rank_ends[at_rank], end_of(plan, times, Rank{number}))
          << round << " " << name << " rank " << number;
    }
  }
  EXPECT_GT(compared, 250);
  EXPECT_GT(spread, 100);
  EXPECT_EQ(syncs.size(), 5u);
}

TEST(Hierarchy, LeavesTheOptimizerOutOfTheMakespan) {
  Random random{21};
  for (int round = 0; round < 50; ++round) {
    Scenario scenario = random_sites(random);
    const schedule::Generator& generator = *schedule::find_generator("1f1b");
    const Duration with = play_hierarchically(scenario, generator).or_throw().makespan;
    scenario.costs.optimizer.clear();
    for (Costs& costs : scenario.replica_costs) costs.optimizer.clear();
    const HierarchicalTimes without = play_hierarchically(scenario, generator).or_throw();
    EXPECT_EQ(with, without.makespan) << round;
    EXPECT_EQ(without.makespan, without.iteration) << round;
  }
}

/// Two sites of two replicas of one stage under hybrid sharding: blocks of 300, two steps of 100
/// over 1 MB/us inside (no link: no time), a ring of two over the link.
TEST(Hierarchy, PlaysAStepByHand) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 4;
  scenario.parallel.gradient_sync = GradientSync::zero3;
  scenario.parallel.shard = 2;
  scenario.costs.weights = {4'000_B};
  scenario.datacenters = {{"a", std::nullopt, 1.0}, {"b", std::nullopt, 1.0}};
  const DatacenterId a{0}, b{1};
  scenario.placement = {a, a, b, b};
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    Link link;
    link.from = from, link.to = to;
    link.latency = Duration{50};
    link.bandwidth = Bandwidth{80e9};  // 10 bytes a nanosecond
    scenario.links.push_back(link);
  }
  const HierarchicalTimes times =
      play_hierarchically(scenario, *schedule::find_generator("1f1b")).or_throw();
  EXPECT_EQ(times.last_block, Duration{300});
  // Each shard is 2,000 bytes; of its ring of two each step sends a half: 100 ns and the latency.
  EXPECT_EQ(times.makespan, Duration{300 + 2 * (100 + 50)});
  EXPECT_EQ(times.programs, 1);
}

TEST(Hierarchy, RefusesWhatRanksShare) {
  Scenario scenario = uniform_scenario(2, 2);
  const schedule::Generator& generator = *schedule::find_generator("1f1b");
  EXPECT_TRUE(play_hierarchically(scenario, generator));
  EXPECT_FALSE(play_hierarchically(scenario, *schedule::find_generator("cross-ud")));
  Scenario shared = spread(scenario, 2, 10ns, 20ns);
  EXPECT_TRUE(play_hierarchically(shared, generator));
  shared.links.front().sharing = Sharing::datacenter;
  EXPECT_FALSE(play_hierarchically(shared, generator));
  Scenario nodes = scenario;
  nodes.nodes.push_back({});
  EXPECT_FALSE(play_hierarchically(nodes, generator));
  scenario.parallel.gradient_sync = GradientSync::ring_rate;
  EXPECT_THAT(why_no_hierarchy(scenario)->reason, ::testing::HasSubstr("ring-rate"));
}

}  // namespace
}  // namespace longhaul::planner
