// Random plans with pipeline messages and collectives over three levels of network: they run, send
// at each level the bytes of their closed forms, and end no sooner than what bounds them.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/collectives/collective_times.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using plan::BytesByLevel;

Bandwidth random_rate(Random& random, std::int64_t most) {
  return Bandwidth{static_cast<double>(random.between(1, most)) * 1e9};
}

/// Up to 12 ranks; stages or replicas over up to two datacenters of nodes of up to three ranks.
Scenario random_levels(Random& random) {
  const auto stages = static_cast<int>(random.between(2, 4));
  Scenario scenario = uniform_scenario(stages, static_cast<int>(random.between(1, 6)));
  scenario.memory.budget = 6;  // bounds are those of schedules within it
  scenario.parallel.replicas = static_cast<int>(random.between(2, 3));
  scenario.parallel.gradient_sync =
      random.between(0, 1) == 0 ? GradientSync::zero1 : GradientSync::all_reduce;
  const auto datacenters = static_cast<int>(random.between(1, 2));
  const bool by_stage = random.between(0, 1) == 0;
  scenario.datacenters.clear();
  scenario.placement.clear();
  for (int d = 0; d < datacenters; ++d) {
    scenario.datacenters.push_back({fmt::format("dc{}", d), {}});
    NodeInterfaces nodes{DatacenterId{d}, static_cast<int>(random.between(1, 3)),
                         random_rate(random, 4), random_rate(random, 4)};
    nodes.internal = random_rate(random, 40);
    nodes.internal_latency = Duration{random.between(0, 300)};
    nodes.device = random_rate(random, 400);
    nodes.device_latency = Duration{random.between(0, 30)};
    scenario.nodes.push_back(nodes);
    for (int to = 0; to < datacenters; ++to)
      if (to != d)
        scenario.links.push_back({DatacenterId{d}, DatacenterId{to},
                                  Duration{random.between(0, 9000)}, random_rate(random, 9),
                                  static_cast<Sharing>(random.between(0, 1))});
  }
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{by_stage ? rank % stages * datacenters / stages
                                                       : rank / stages % datacenters});
  for (Bytes& message : scenario.costs.message) message = Bytes{random.between(1, 20'000)};
  for (Bytes& weights : scenario.costs.weights) weights = Bytes{random.between(1, 90'000)};
  return scenario;
}

/// Bytes by level, from the placement alone.
class Expected {
public:
  explicit Expected(const Scenario& scenario) : scenario_{scenario} {
    std::vector<int> seen(scenario.datacenters.size());
    for (int rank = 0; rank < scenario.ranks(); ++rank) {
      const std::size_t datacenter = index(scenario.placement[at(rank)]);
      node_.push_back(seen[datacenter]++ / scenario.nodes[datacenter].gpus);
    }
  }

  void add(Rank from, Rank to, Bytes size) {
    if (scenario_.datacenter_of(from) != scenario_.datacenter_of(to))
      bytes.wan += size;
    else if (node_[index(from)] != node_[index(to)])
      bytes.datacenter += size;
    else
      bytes.node += size;
  }
  /// A message a microbatch and way between neighbours.
  void add_pipelines() {
    for (const ReplicaId replica : scenario_.replica_ids())
      for (int stage = 0; stage + 1 < scenario_.parallel.stages; ++stage) {
        const Rank near = scenario_.rank(replica, DeviceId{stage});
        const Rank far = scenario_.rank(replica, DeviceId{stage + 1});
        const Bytes all{scenario_.costs.message[at(stage)].count() *
                        scenario_.parallel.microbatches};
        add(near, far, all);
        add(far, near, all);
      }
  }
  /// Rings: to the next member all shards but one in a gather (its own) and in a scatter (the
  /// sender's), which together are an all-reduce.
  void add_collectives() {
    const int members = scenario_.parallel.replicas;
    for (const DeviceId stage : scenario_.device_ids()) {
      const std::int64_t size = scenario_.costs.weights[index(stage)].count();
      const auto shard = [&](int i) {
        return size / members + (i % members < size % members ? 1 : 0);
      };
      for (int i = 0; i < members; ++i)
        add(scenario_.rank(ReplicaId{i}, stage),
            scenario_.rank(ReplicaId{(i + 1) % members}, stage),
            Bytes{2 * size - shard(i) - shard(i + 1)});
    }
  }

  BytesByLevel bytes;

private:
  const Scenario& scenario_;
  std::vector<int> node_;  ///< by rank, of its datacenter
};

BytesByLevel sent(const Plan& plan) {
  BytesByLevel bytes;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::send) continue;
    switch (plan.level_of(OpId{i})) {
      case NetworkLevel::node: bytes.node += plan.ops[i].size; break;
      case NetworkLevel::datacenter: bytes.datacenter += plan.ops[i].size; break;
      case NetworkLevel::wan: bytes.wan += plan.ops[i].size; break;
    }
  }
  return bytes;
}

TEST(CollectivesOverThreeLevels, RunSendTheirBytesAndKeepToTheirBounds) {
  BytesByLevel all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario = random_levels(random);
    Expected expected{scenario};
    expected.add_pipelines();
    expected.add_collectives();
    for (const char* name : {"gpipe", "1f1b"}) {
      const Schedule schedule = schedule::generate(name, scenario);
      const Plan plan = plan::lower(schedule, scenario);
      EXPECT_EQ(sent(plan), expected.bytes);
      const auto times = sim::try_simulate(plan);
      ASSERT_TRUE(times) << times.refusal().reason;
      const Duration end = std::ranges::max(*times, {}, &OpTime::end).end;
      const planner::Bound bound = planner::lower_bound(schedule, scenario);
      EXPECT_GE(end, bound.lower_bound) << name << ": " << bound.reason;
      for (const plan::StageCollective& each : plan::find_collectives(schedule, scenario))
        EXPECT_GE(end, planner::bound_of_collective(each.collective, scenario).lower_bound);
    }
    all.node += expected.bytes.node;
    all.datacenter += expected.bytes.datacenter;
    all.wan += expected.bytes.wan;
  }
  for (const Bytes level : {all.node, all.datacenter, all.wan}) EXPECT_GT(level, Bytes{1'000'000});
}

}  // namespace
}  // namespace longhaul
