// A stated cost of each hop between ranks: what they hear of each other, they hear so much later.
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/plans.hpp"

namespace longhaul::sim {
namespace {

using testing::find;

Duration makespan_of(const OpTimes& times) {
  return std::ranges::max_element(times, {}, &OpTime::end)->end;
}

// Blocks of 100 and, backward, 200 ns; a message holds its link for 30 ns and arrives 70 ns later,
// a hop of 5 ns after its sender counts.
TEST(HopCost, DelaysEachMessage) {
  const Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{70}, Duration{30});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const OpTimes times = simulate(plan, {}, Duration{5});
  const OpTime& send = times[index(find(plan, 0, OpKind::send, BlockKind::F, 0))];
  const OpTime& recv = times[index(find(plan, 1, OpKind::recv, BlockKind::F, 0))];
  EXPECT_EQ(send.start, Duration{100});
  EXPECT_EQ(send.end, Duration{130});
  EXPECT_EQ(recv.start, Duration{105});
  EXPECT_EQ(recv.end, Duration{205});
  EXPECT_EQ(makespan_of(times), makespan_of(simulate(plan)) + Duration{10});
}

// Two microbatches, grouped: rank 0 is ready for the gradient of the second when its B(0, 0) ends,
// long after rank 1 has it. The sender hears of that a hop later.
TEST(HopCost, DelaysTheReceiversWord) {
  Scenario scenario = spread(uniform_scenario(2, 2), 2, Duration{70}, Duration{30});
  scenario.costs.backward.front() = Duration{500};
  const Plan plan =
      plan::lower(schedule::generate("gpipe", scenario), scenario, Arrangement::grouped);
  const OpTimes at_once = simulate(plan);
  const OpTimes times = simulate(plan, {}, Duration{5});
  const OpId block = find(plan, 0, OpKind::compute, BlockKind::B, 0);
  const OpId recv = find(plan, 0, OpKind::recv, BlockKind::B, 1);
  const OpId send = find(plan, 1, OpKind::send, BlockKind::B, 1);
  ASSERT_EQ(times[index(recv)].ready, times[index(block)].end);
  EXPECT_EQ(at_once[index(send)].start, at_once[index(block)].end);
  EXPECT_EQ(times[index(send)].start, times[index(block)].end + Duration{5});
  EXPECT_EQ(times[index(recv)].start, times[index(send)].start + Duration{5});
}

// ZeRO-1 on two replicas, 1 ms and 1 Gbps apart: half of 8 MiB and one latency, 34554432 ns. What
// a member sends at 0 is seen at 5.
TEST(HopCost, DelaysTheStepsOfACollective) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 2;
  scenario.datacenters = {{"a", {}}, {"b", {}}};
  scenario.placement = {DatacenterId{0}, DatacenterId{1}};
  scenario.links = {{DatacenterId{0}, DatacenterId{1}, 1ms, 1_Gbps, Sharing::pair},
                    {DatacenterId{1}, DatacenterId{0}, 1ms, 1_Gbps, Sharing::pair}};
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const OpTimes times = simulate(plan, {}, Duration{5});
  const OpId gather = plan.stepped.front().receives.front();
  EXPECT_EQ(times[index(gather)].start, Duration{5});
  EXPECT_EQ(times[index(gather)].end, Duration{5 + 34'554'432});
}

}  // namespace
}  // namespace longhaul::sim
