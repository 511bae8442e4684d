// Properties of every plan whose cells share the WAN in time: seeded random instances.
#include <array>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"
#include "support/order_of_time.hpp"
#include "support/report_of_plan.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul {
namespace {

using testing::in_cells;

struct Instance {
  Scenario scenario;
  Schedule schedule;
};

/// 8 Gbps over the WAN (1 byte/ns), no time inside a datacenter. `exact`: pieces are of one size.
Instance random_instance(std::uint64_t seed, bool exact) {
  Random random{seed};
  const int stages = static_cast<int>(random.between(2, 6));
  const int cell = static_cast<int>(random.between(2, 4));
  const int replicas = exact ? cell * static_cast<int>(random.between(1, 2))
                             : static_cast<int>(random.between(2, 7));
  Scenario scenario = uniform_scenario(stages, 2 * static_cast<int>(random.between(1, 4)));
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.memory.budget = 100;
  for (std::size_t device = 0; device < static_cast<std::size_t>(stages); ++device) {
    scenario.costs.forward[device] = Duration{random.between(50, 150)};
    scenario.costs.dgrad[device] = Duration{random.between(50, 150)};
    scenario.costs.wgrad[device] = Duration{random.between(50, 150)};
    scenario.costs.backward[device] = scenario.costs.dgrad[device] + scenario.costs.wgrad[device];
    scenario.costs.message[device] =
        exact ? Bytes{12 * random.between(1, 50)} : Bytes{random.between(1, 600)};
  }
  const int datacenters = static_cast<int>(random.between(2, std::min(stages, 3)));
  scenario = spread(scenario, datacenters, Duration{random.between(0, 300)}, Duration{0});
  for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
  constexpr std::array kSchedules{"gpipe", "1f1b", "zb-h1", "zbv", "interleaved-1f1b"};
  std::size_t which = static_cast<std::size_t>(random.between(0, kSchedules.size() - 1));
  if (which == 4 && scenario.parallel.microbatches % stages != 0) which = 1;
  return {scenario,
          testing::in_cells(schedule::generate(kSchedules[which], scenario), scenario, cell)};
}

/// End of every block, by (rank, kind, chunk, microbatch).
auto block_ends(const Plan& plan) {
  const OpTimes times = sim::simulate(plan);
  std::map<std::tuple<Rank, BlockKind, int, int>, Duration> ends;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind == OpKind::compute)
      ends[{plan.rank_of(id), op.block_kind, op.chunk, op.microbatch}] = times[i].end;
  }
  return ends;
}

class RelayProperties : public ::testing::TestWithParam<int> {};

TEST_P(RelayProperties, EvenPiecesTakeThePooledTimes) {
  const auto [scenario, schedule] = random_instance(static_cast<std::uint64_t>(GetParam()), true);
  EXPECT_EQ(block_ends(plan::lower(schedule, scenario)),
            block_ends(plan::lower_pooled(schedule, scenario)))
      << schedule.name;
}

// A piece is longer than its share of the message by less than a byte (1 ns) for each piece, and
// rounded; of a chain of waiting ops no more than all messages differ.
TEST_P(RelayProperties, UnevenPiecesDifferFromPooledByTheirRounding) {
  const auto [scenario, schedule] = random_instance(static_cast<std::uint64_t>(GetParam()), false);
  const Plan plan = plan::lower_pooled(schedule, scenario);
  const auto relayed = block_ends(plan::lower(schedule, scenario));
  const auto pooled = block_ends(plan);
  ASSERT_EQ(relayed.size(), pooled.size());
  const auto messages = std::ranges::count(plan.ops, OpKind::send, &Op::kind);
  for (const auto& [block, end] : pooled) {
    ASSERT_TRUE(relayed.contains(block));
    EXPECT_LE(std::abs((relayed.at(block) - end).count()), messages * schedule.cell);
  }
}

// With every limit at once: nothing blocks for ever, and the rows make a valid trace.
TEST_P(RelayProperties, RunUnderAllLimitsAndGiveValidRows) {
  auto [scenario, schedule] = random_instance(static_cast<std::uint64_t>(GetParam()), false);
  Random random{derived_seed(static_cast<std::uint64_t>(GetParam()), 1)};
  for (std::size_t d = 0; d < scenario.datacenters.size(); ++d) {
    NodeInterfaces nodes;
    nodes.datacenter = DatacenterId{static_cast<int>(d)};
    nodes.gpus = static_cast<int>(random.between(1, 3));
    nodes.egress = Bandwidth{static_cast<double>(random.between(3, 9)) * 1e9};
    nodes.ingress = Bandwidth{static_cast<double>(random.between(3, 9)) * 1e9};
    nodes.internal = Bandwidth{static_cast<double>(random.between(10, 30)) * 1e9};
    scenario.nodes.push_back(nodes);
  }
  for (Link& link : scenario.links)
    link.aggregate = Bandwidth{static_cast<double>(random.between(5, 30)) * 1e9};
  const Plan plan = plan::lower(schedule, scenario);
  Timeline timeline;
  plan::append_rows(timeline, plan, sim::simulate(plan), 0);
  EXPECT_EQ(testing::difference_in_order_of_time(plan, sim::simulate(plan)), "");
  trace::Diagnostics findings;
  trace::check_rows(timeline, "predicted", 0, findings);
  EXPECT_EQ(findings.texts(), std::vector<std::string>{});
  const Plan pooled = plan::lower_pooled(schedule, scenario);
  EXPECT_EQ(testing::difference_in_order_of_time(pooled, sim::simulate(pooled)), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RelayProperties, ::testing::Range(0, 60));

// Device 1 alone in its datacenter, neighbours on both sides: its two lanes share one interface.
// Two pipelines; gradients and activations leave node by node, one at a time.
TEST(Relays, LanesToBothSidesShareTheEgress) {
  Scenario scenario = uniform_scenario(3, 3);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.costs.message.assign(3, Bytes{200});
  scenario = spread(scenario, 3, Duration{20}, Duration{0});
  for (const int d : {0, 1, 2}) {
    NodeInterfaces nodes;
    nodes.datacenter = DatacenterId{d};
    nodes.egress = 8_Gbps;
    scenario.nodes.push_back(nodes);
  }
  const Plan plan =
      plan::lower(testing::in_cells(schedule::generate("1f1b", scenario), scenario, 2), scenario);
  const OpTimes times = sim::simulate(plan);
  for (const ReplicaId replica : {ReplicaId{0}, ReplicaId{1}}) {
    std::vector<std::pair<Duration, Duration>> holds;
    std::map<Rank, int> towards;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      if (plan.op(id).kind != OpKind::send || plan.op(id).leg != MessageLeg::wan) continue;
      if (plan.rank_of(id) != scenario.rank(replica, DeviceId{1})) continue;
      holds.emplace_back(times[i].start, times[i].end);
      ++towards[plan.op(id).peer];
    }
    EXPECT_EQ(towards.size(), 2u);
    std::ranges::sort(holds);
    ASSERT_EQ(holds.size(), 2u * 2 * 3);
    for (std::size_t i = 1; i < holds.size(); ++i) EXPECT_GE(holds[i].first, holds[i - 1].second);
    for (const auto& [start, end] : holds) EXPECT_EQ(end - start, Duration{100});
  }
}

TEST(RelayProperties, ReportsNeedNoRows) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Instance instance = random_instance(seed, false);
    const Plan plan = plan::lower(instance.schedule, instance.scenario);
    testing::expect_equal_reports(plan, sim::simulate(plan),
                                  instance.scenario.activation_budget().count(), seed);
  }
}

}  // namespace
}  // namespace longhaul
