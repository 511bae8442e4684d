// Exact timestamps of hand-computed cells that share the WAN in time.
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"
#include "support/plans.hpp"

namespace longhaul {
namespace {

using testing::cell_of;
using testing::in_cells;

/// The send of one leg of a piece; `gradient` is it one?
OpId leg_of(const Plan& plan, MessageLeg leg, int owner, int piece, bool gradient) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind == OpKind::send && op.leg == leg && plan.owner_of(id) == ReplicaId{owner} &&
        op.piece == piece && is_backward(op.block_kind) == gradient)
      return id;
  }
  fail("no such leg");
}

struct Played {
  Plan plan;
  OpTimes times = sim::simulate(plan);

  void expect_leg(MessageLeg leg, int owner, int piece, int start, int end, int arrival,
                  bool gradient = false) const {
    const OpId send = leg_of(plan, leg, owner, piece, gradient);
    EXPECT_EQ(times[index(send)].start, Duration{start}) << to_text(plan, send);
    EXPECT_EQ(times[index(send)].end, Duration{end}) << to_text(plan, send);
    EXPECT_EQ(times[plan.op(send).match].end, Duration{arrival}) << to_text(plan, send);
  }
  [[nodiscard]] Duration start(int rank, BlockKind kind) const {
    return times[index(testing::find(plan, rank, OpKind::compute, kind, 0))].start;
  }
};

// F = 100, B = 200. Both pipelines (ranks 0, 1 and 2, 3) end their F at 100; pieces of 30 bytes
// take 15 between nodes and 30 over the WAN, and arrive 50 later. m0 goes first.
TEST(Relays, CellOfTwo) {
  const Scenario scenario = testing::cell_of(2, 60_B);
  const Played run{
      plan::lower(testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario)};
  run.expect_leg(MessageLeg::scatter, 0, 1, 100, 115, 115);
  run.expect_leg(MessageLeg::scatter, 1, 0, 100, 115, 115);  // the other way: no conflict
  run.expect_leg(MessageLeg::wan, 0, 0, 100, 130, 180);
  run.expect_leg(MessageLeg::wan, 0, 1, 115, 145, 195);
  run.expect_leg(MessageLeg::wan, 1, 0, 130, 160, 210);  // after m0, though scattered at 115
  run.expect_leg(MessageLeg::wan, 1, 1, 145, 175, 225);
  run.expect_leg(MessageLeg::gather, 0, 1, 195, 210, 210);
  run.expect_leg(MessageLeg::gather, 1, 0, 210, 225, 225);
  EXPECT_EQ(run.start(1, BlockKind::F), Duration{210});
  EXPECT_EQ(run.start(3, BlockKind::F), Duration{225});
  // Gradients at 510 and 525.
  run.expect_leg(MessageLeg::scatter, 0, 1, 510, 525, 525, true);
  run.expect_leg(MessageLeg::wan, 0, 0, 510, 540, 590, true);
  run.expect_leg(MessageLeg::wan, 0, 1, 525, 555, 605, true);
  run.expect_leg(MessageLeg::gather, 0, 1, 605, 620, 620, true);
  run.expect_leg(MessageLeg::scatter, 1, 0, 525, 540, 540, true);
  run.expect_leg(MessageLeg::wan, 1, 0, 540, 570, 620, true);
  run.expect_leg(MessageLeg::wan, 1, 1, 555, 585, 635, true);
  run.expect_leg(MessageLeg::gather, 1, 0, 620, 635, 635, true);
  EXPECT_EQ(run.start(0, BlockKind::B), Duration{620});
  EXPECT_EQ(run.start(2, BlockKind::B), Duration{635});
}

// 61 bytes in pieces of 21, 20, 20: 11, 10, 10 between nodes. All scatters are ready at 100 and
// share the nodes' interfaces inside the datacenter; ties go by op id, so rank by rank:
//   0>1 100..110, 0>2 110..120, 1>0 100..111, 1>2 120..130, 2>0 111..122, 2>1 122..132
TEST(Relays, CellOfThreeWithUnevenPieces) {
  const Scenario scenario = testing::cell_of(3, 61_B);
  const Played run{
      plan::lower(testing::in_cells(schedule::generate("gpipe", scenario), scenario, 3), scenario)};
  run.expect_leg(MessageLeg::scatter, 0, 1, 100, 110, 110);
  run.expect_leg(MessageLeg::scatter, 0, 2, 110, 120, 120);  // one interface outwards
  run.expect_leg(MessageLeg::scatter, 1, 0, 100, 111, 111);
  run.expect_leg(MessageLeg::scatter, 1, 2, 120, 130, 130);  // after 0>2 inwards
  run.expect_leg(MessageLeg::scatter, 2, 0, 111, 122, 122);
  run.expect_leg(MessageLeg::scatter, 2, 1, 122, 132, 132);
  run.expect_leg(MessageLeg::wan, 0, 0, 100, 121, 171);
  run.expect_leg(MessageLeg::wan, 1, 0, 121, 142, 192);
  run.expect_leg(MessageLeg::wan, 2, 0, 142, 163, 213);
  run.expect_leg(MessageLeg::wan, 0, 1, 110, 130, 180);
  run.expect_leg(MessageLeg::wan, 1, 1, 130, 150, 200);
  run.expect_leg(MessageLeg::wan, 2, 1, 150, 170, 220);
  run.expect_leg(MessageLeg::wan, 0, 2, 120, 140, 190);
  run.expect_leg(MessageLeg::wan, 1, 2, 140, 160, 210);
  run.expect_leg(MessageLeg::wan, 2, 2, 160, 180, 230);
  run.expect_leg(MessageLeg::gather, 0, 1, 180, 190, 190);
  run.expect_leg(MessageLeg::gather, 0, 2, 190, 200, 200);
  run.expect_leg(MessageLeg::gather, 1, 0, 192, 203, 203);
  run.expect_leg(MessageLeg::gather, 1, 2, 210, 220, 220);
  run.expect_leg(MessageLeg::gather, 2, 0, 213, 224, 224);
  run.expect_leg(MessageLeg::gather, 2, 1, 224, 234, 234);  // inwards after the one from node 0
  EXPECT_EQ(run.start(1, BlockKind::F), Duration{200});
  EXPECT_EQ(run.start(3, BlockKind::F), Duration{220});
  EXPECT_EQ(run.start(5, BlockKind::F), Duration{234});
}

// Three pipelines in cells of two: the last one sends for itself, whole and without relays.
TEST(Relays, TheLastCellMayBeSmaller) {
  const Scenario scenario = testing::cell_of(3, 60_B);
  const Played run{
      plan::lower(testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario)};
  run.expect_leg(MessageLeg::gather, 1, 0, 210, 225, 225);  // as in the cell of two
  const OpId alone = leg_of(run.plan, MessageLeg::wan, 2, 0, false);
  EXPECT_EQ(run.plan.op(alone).pieces, 1);
  EXPECT_EQ(run.plan.op(alone).size, 60_B);
  run.expect_leg(MessageLeg::wan, 2, 0, 100, 160, 210);
  EXPECT_EQ(run.start(5, BlockKind::F), Duration{210});
}

/// 16 Gbps from datacenter to datacenter, where each node sends at 8: two messages at a time.
Scenario two_at_a_time() {
  Scenario scenario = testing::cell_of(3, 60_B);
  for (Link& link : scenario.links) link.aggregate = 16_Gbps;
  return scenario;
}

// Each for itself: the third waits for a place. Gradients come back at 510, 510 and 570, when the
// first two have left.
TEST(Relays, TheAggregateLetsTwoOfThreeMessagesTravel) {
  const Scenario scenario = two_at_a_time();
  const Played run{plan::lower(schedule::generate("gpipe", scenario), scenario)};
  run.expect_leg(MessageLeg::whole, 0, 0, 100, 160, 210);
  run.expect_leg(MessageLeg::whole, 1, 0, 100, 160, 210);
  run.expect_leg(MessageLeg::whole, 2, 0, 160, 220, 270);
  run.expect_leg(MessageLeg::whole, 0, 0, 510, 570, 620, true);
  run.expect_leg(MessageLeg::whole, 1, 0, 510, 570, 620, true);
  run.expect_leg(MessageLeg::whole, 2, 0, 570, 630, 680, true);
}

// Pieces of 20 bytes, 20 on the WAN. Scattered (10 each, as in CellOfThreeWithUnevenPieces): m0's
// at 100, 110, 120; m1's at 110, 100, 130; m2's at 120, 130, 100. The two places of the aggregate
// go to who is scattered first and at the head of its lane (ties: rank), and none overtakes: m1/0
// has its place from 110 on and starts when m0/0 has left its node.
//   A 100 m0/0, 120 m0/1, 140 m1/1, 160 m0/2, 180 m1/2
//   B 120 m1/0, 140 m2/0, 160 m2/1, 200 m2/2 (node 2 is busy until then)
TEST(Relays, TheAggregateLetsTwoPiecesOfACellTravel) {
  const Scenario scenario = two_at_a_time();
  const Played run{
      plan::lower(testing::in_cells(schedule::generate("gpipe", scenario), scenario, 3), scenario)};
  run.expect_leg(MessageLeg::wan, 0, 0, 100, 120, 170);
  run.expect_leg(MessageLeg::wan, 1, 0, 120, 140, 190);
  run.expect_leg(MessageLeg::wan, 0, 1, 120, 140, 190);
  run.expect_leg(MessageLeg::wan, 1, 1, 140, 160, 210);
  run.expect_leg(MessageLeg::wan, 2, 0, 140, 160, 210);
  run.expect_leg(MessageLeg::wan, 0, 2, 160, 180, 230);
  run.expect_leg(MessageLeg::wan, 2, 1, 160, 180, 230);
  run.expect_leg(MessageLeg::wan, 1, 2, 180, 200, 250);
  run.expect_leg(MessageLeg::wan, 2, 2, 200, 220, 270);
  EXPECT_EQ(run.start(1, BlockKind::F), Duration{240});  // gathered from node 2 at 230
  EXPECT_EQ(run.start(3, BlockKind::F), Duration{260});
  EXPECT_EQ(run.start(5, BlockKind::F), Duration{270});
}

// Whole over both nodes: 60 bytes at 2 bytes/ns, m1 after m0. No scatter, no gather.
TEST(Relays, PooledCellOfTwo) {
  const Scenario scenario = testing::cell_of(2, 60_B);
  const Plan plan = plan::lower_pooled(
      testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario);
  const OpTimes times = sim::simulate(plan);
  const OpId m0 = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  const OpId m1 = testing::find(plan, 2, OpKind::send, BlockKind::F, 0);
  EXPECT_EQ(times[index(m0)].start, Duration{100});
  EXPECT_EQ(times[index(m0)].end, Duration{130});
  EXPECT_EQ(times[index(m1)].start, Duration{130});
  EXPECT_EQ(times[plan.op(m1).match].end, Duration{210});
  EXPECT_EQ(times[index(m1)].bound_by, m0);
  EXPECT_EQ(times[index(m1)].bound_kind, BoundKind::resource);
  EXPECT_EQ(plan.resources[index(plan.resources_of(m0).front())].name, "turns 0/0>1");
}

}  // namespace
}  // namespace longhaul
