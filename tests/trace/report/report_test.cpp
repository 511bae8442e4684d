#include "trace/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "trace/sample_timeline.hpp"

namespace longhaul::trace {
namespace {

using testing::TimelineBuilder;

/// Rank 0 computes F(0,0) in [0,100); the message waits for the link until 130, is on the wire
/// until 150 and arrives at 200, where rank 1 runs F(1,0) and B(1,0) until 400. Its gradient
/// leaves at once, is on the wire until 420 and arrives at 470 for B(0,0), which ends at 570.
testing::TimelineBuilder two_ranks() {
  testing::TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100, {}, 10);                             // 0
  t.block(0, RowKind::B, 0, 0, 470, 570, {3, BoundKind::dependency}, -10);  // 1
  t.send(0, 1, 0, 0, {100, 130, 150}, {0, BoundKind::resource});            // 2
  t.recv(0, 1, 1, 0, {0, 400, 470}, {6, BoundKind::rendezvous});            // 3
  t.block(1, RowKind::F, 1, 0, 200, 300, {7, BoundKind::dependency}, 10);   // 4
  t.block(1, RowKind::B, 1, 0, 300, 400, {4, BoundKind::lane}, -10);        // 5
  t.send(1, 0, 1, 0, {400, 400, 420}, {5, BoundKind::dependency});          // 6
  t.recv(1, 0, 0, 0, {0, 130, 200}, {2, BoundKind::rendezvous});            // 7
  return t;
}

TEST(Report, MeasuresAnIteration) {
  const testing::TimelineBuilder t = two_ranks();
  const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
  EXPECT_EQ(report.schedule, "hand-made");
  EXPECT_EQ(report.makespan_ns, 570);
  EXPECT_EQ(report.device_span_ns, 570);
  ASSERT_EQ(report.bubble_ratio.size(), 2U);
  EXPECT_DOUBLE_EQ(report.bubble_ratio[0], 1 - 200.0 / 570);
  EXPECT_DOUBLE_EQ(report.bubble_ratio[1], 1 - 200.0 / 570);
  EXPECT_EQ(report.peak_activation_bytes, (std::vector<std::int64_t>{10, 10}));
  EXPECT_EQ(report.wan_crossings_on_critical_path, 2);
}

TEST(Report, CountsFromTheFirstOpOnAnyRank) {
  testing::TimelineBuilder t = two_ranks();
  for (std::int64_t op = 0; op < 8; ++op) {
    t.row(op).ready_ns += 1000;
    t.row(op).start_ns += 1000;
    t.row(op).end_ns += 1000;
  }
  const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
  EXPECT_EQ(report.makespan_ns, 570);
  EXPECT_EQ(report.idle.total(), 2 * 570 - 400);
}

TEST(Report, DpOverlapIsTheShareOfCollectivesBehindBlocks) {
  testing::TimelineBuilder t = two_ranks();
  EXPECT_FALSE(report_iteration(t.timeline(), 0, 0, 0).dp_overlap) << "there are no collectives";
  t.collective(0, RowKind::all_gather, {0, 0, 0});
  EXPECT_FALSE(report_iteration(t.timeline(), 0, 0, 0).dp_overlap) << "it takes no time";
  // Rank 0 computes in [0,100) and [470,570), rank 1 in [200,400).
  t.collective(0, RowKind::reduce_scatter, {40, 50, 150});    // 50 of 100
  t.collective(0, RowKind::reduce_scatter, {150, 450, 600});  // 100 of 150
  t.collective(1, RowKind::reduce_scatter, {400, 400, 450});  // 0 of 50
  EXPECT_DOUBLE_EQ(report_iteration(t.timeline(), 0, 0, 0).dp_overlap.value(), 150.0 / 300);
}

TEST(Report, SaysWhichIterationIsMissing) {
  const testing::TimelineBuilder t = two_ranks();
  EXPECT_THROW((void)report_iteration(t.timeline(), 0, 1, 0), Error);
  EXPECT_THROW((void)report_iteration(Timeline{}, 0, 0, 0), Error);
}

TEST(Idle, FollowsTheMessageBack) {
  const testing::TimelineBuilder t = two_ranks();
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  // Rank 0: 370 until B(0,0): 70 on the wire, 300 while rank 1 computed. Rank 1: 200 until F(1,0):
  // 70 on the wire, 30 for the link, 100 while rank 0 computed; 170 after its last block.
  EXPECT_EQ(idle.link_wait, 70 + 70);
  EXPECT_EQ(idle.link_busy, 30);
  EXPECT_EQ(idle.dependency, 300 + 100);
  EXPECT_EQ(idle.drained, 170);
  EXPECT_EQ(idle.total(), 2 * 570 - 400);
}

TEST(Idle, CallsAWaitForTheOtherSideRendezvous) {
  testing::TimelineBuilder t = two_ranks();
  t.row(2).bound_kind = BoundKind::rendezvous;
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.rendezvous, 30);
  EXPECT_EQ(idle.link_busy, 0);
}

TEST(Idle, ChargesAStragglerNoMoreThanItsOverrun) {
  testing::TimelineBuilder t = two_ranks();
  t.row(0).planned_ns = 60;   // took 100: of the 100 that rank 1 waited for it, 40
  t.row(5).planned_ns = 101;  // took 100: none
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.straggler, 40);
  EXPECT_EQ(idle.dependency, 300 + 60);
}

TEST(Idle, ChargesAStragglerNoMoreThanTheWait) {
  testing::TimelineBuilder t = two_ranks();
  t.row(0).planned_ns = 0;
  t.row(0).start_ns = -100;  // ran 200 beyond its plan, the iteration begins with it
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.straggler, 200);
  EXPECT_EQ(idle.total(), 2 * 670 - 500);
}

/// Rank 1 holds F(1,0) (10 bytes) and waits for the gradient of it from rank 2 during [100,500);
/// F(1,1) has arrived at 150 and follows it.
testing::TimelineBuilder memory_bound() {
  testing::TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 10);                                      // 0
  t.block(1, RowKind::F, 1, 0, 20, 100, {4, BoundKind::dependency}, 10);    // 1
  t.block(1, RowKind::B, 1, 0, 500, 600, {6, BoundKind::dependency}, -10);  // 2
  t.block(1, RowKind::F, 1, 1, 600, 700, {2, BoundKind::lane}, 10);         // 3
  t.recv(1, 0, 0, 0, {0, 10, 20}, {});                                      // 4
  t.recv(1, 0, 0, 1, {0, 140, 150}, {});                                    // 5
  t.recv(1, 2, 2, 0, {0, 490, 500}, {8, BoundKind::rendezvous});            // 6
  t.block(2, RowKind::B, 2, 0, 300, 490);                                   // 7
  t.send(2, 1, 2, 0, {490, 490, 495}, {7, BoundKind::dependency});          // 8
  return t;
}

TEST(Idle, CallsAGapThatOnlyTheBudgetKeepsOpenMemory) {
  const testing::TimelineBuilder t = memory_bound();
  const IdleTime tight = attribute_idle(t.timeline().rows, 19);
  EXPECT_EQ(tight.memory, 490 - 150);  // from the arrival of F(1,1) to the gradient's departure
  const IdleTime enough = attribute_idle(t.timeline().rows, 20);
  EXPECT_EQ(enough.memory, 0);
  EXPECT_EQ(enough.dependency, tight.dependency + tight.memory);
  EXPECT_EQ(attribute_idle(t.timeline().rows, 0).memory, 0);
}

TEST(Idle, AForwardOfTheDeviceItselfArrivesWhenItEnds) {
  testing::TimelineBuilder t = memory_bound();
  t.row(3).chunk = ChunkId{2};  // F(2,1) follows F(1,1) ...
  t.row(3).microbatch =
      MicrobatchId{0};  // ... of this rank: F(2,0) follows F(1,0), which ends at 100
  EXPECT_EQ(attribute_idle(t.timeline().rows, 19).memory, 490 - 100);
}

/// Lowering makes no such plan; a plan made by hand may.
TEST(Idle, BlamesASendThatABlockDependsOnForItsTimeOnTheWire) {
  testing::TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100);                                // 0
  t.block(0, RowKind::F, 0, 1, 170, 270, {2, BoundKind::dependency});  // 1
  t.send(0, 1, 0, 0, {100, 120, 170}, {0, BoundKind::rendezvous});     // 2
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.link_wait, 50);
  EXPECT_EQ(idle.rendezvous, 20);
  EXPECT_EQ(idle.total(), 70);
}

TEST(Idle, KnowsCollectivesBeforeAndBehindTheBlocks) {
  testing::TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 50, 100, {1, BoundKind::dependency});                      // 0
  t.collective(0, RowKind::all_gather, {0, 0, 50});                                       // 1
  t.collective(0, RowKind::reduce_scatter, {100, 120, 180}, {0, BoundKind::rendezvous});  // 2
  t.block(1, RowKind::F, 0, 0, 0, 120);                                                   // 3
  t.collective(1, RowKind::reduce_scatter, {120, 120, 180}, {3, BoundKind::dependency});  // 4
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.collective, 50 + 80 + 60);
  EXPECT_EQ(idle.drained, 0);
  EXPECT_EQ(idle.total(), 2 * 180 - 50 - 120);
}

TEST(Idle, PartsAddUpOnRandomPipelines) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random{seed};
    const testing::Shape shape{.ranks = static_cast<int>(random.between(1, 8)),
                               .microbatches = static_cast<int>(random.between(1, 12)),
                               .latency_ns = random.between(0, 300'000),
                               .transfer_ns = random.between(0, 300'000)};
    const Timeline timeline = testing::random_timeline(seed, shape);
    const IterationReport report = report_iteration(timeline, 0, 0, 2000);
    std::int64_t busy = 0;
    for (const TimelineRow& row : timeline.rows)
      if (is_compute(row.kind)) busy += row.end_ns - row.start_ns;
    EXPECT_EQ(report.idle.total(), shape.ranks * report.makespan_ns - busy) << seed;
    for (const IdlePart& part : idle_parts()) EXPECT_GE(report.idle.*part.member, 0) << part.name;
  }
}

TEST(Idle, PartsAddUpOnNonsense) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random{seed};
    testing::TimelineBuilder t;
    const int rows = static_cast<int>(random.between(1, 60));
    for (int i = 0; i < rows; ++i) {
      const auto op = t.block(static_cast<int>(random.between(0, 3)), RowKind::F,
                              static_cast<int>(random.between(-1, 3)),
                              static_cast<int>(random.between(-1, 3)), 0, 0);
      TimelineRow& row = t.row(op);
      row.kind = static_cast<RowKind>(random.between(0, kCountOf<RowKind> - 1));
      row.peer = static_cast<std::int32_t>(random.between(-1, 5));
      row.size_bytes = random.between(-5, 5);
      row.start_ns = random.between(0, 100);
      row.ready_ns = random.between(0, 100);
      row.end_ns = row.start_ns + random.between(0, 30);
      row.planned_ns = random.between(0, 30);
      row.bound_by = random.between(-1, rows + 1);
      row.bound_kind = static_cast<BoundKind>(random.between(0, kCountOf<BoundKind> - 1));
    }
    const IterationReport report = report_iteration(t.timeline(), 0, 0, 7);
    double busy_share = 0;
    for (const double ratio : report.bubble_ratio) busy_share += 1 - ratio;
    const double expected = (static_cast<double>(report.bubble_ratio.size()) - busy_share) *
                            static_cast<double>(report.makespan_ns);
    EXPECT_NEAR(static_cast<double>(report.idle.total()), expected, 1e-6) << seed;
    for (const IdlePart& part : idle_parts()) EXPECT_GE(report.idle.*part.member, 0) << seed;
    EXPECT_LE(critical_path(t.timeline().rows).size(), t.timeline().rows.size());
  }
}

TEST(CriticalPath, RunsFromTheLastOpBackToTheStart) {
  const testing::TimelineBuilder t = two_ranks();
  std::vector<std::int64_t> ops;
  std::vector<std::int64_t> crossings;
  for (const PathStep& step : critical_path(t.timeline().rows)) {
    ops.push_back(step.op);
    if (step.crosses_datacenters) crossings.push_back(step.op);
  }
  EXPECT_THAT(ops, ::testing::ElementsAre(0, 2, 7, 4, 5, 6, 3, 1));
  EXPECT_THAT(crossings, ::testing::ElementsAre(7, 3));
}

TEST(CriticalPath, StopsInACycleAndTakesTheLowerOpOfATie) {
  testing::TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 10, {1, BoundKind::lane});
  t.block(0, RowKind::F, 0, 1, 0, 10, {0, BoundKind::lane});
  const auto path = critical_path(t.timeline().rows);
  ASSERT_EQ(path.size(), 2U);
  EXPECT_EQ(path.back().op, 0);
  EXPECT_TRUE(critical_path({}).empty());
}

TEST(Rows, AreFoundInAnyOrderOfIterations) {
  testing::TimelineBuilder t;
  for (const int iteration : {3, 0, 7, 5}) {
    t.begin_iteration("s", iteration);
    for (int i = 0; i <= iteration; ++i) t.block(0, RowKind::F, 0, i, i, i + 1);
  }
  for (const int iteration : {3, 0, 7, 5})
    EXPECT_EQ(rows_of(t.timeline(), 0, iteration).size(), static_cast<std::size_t>(iteration + 1));
  EXPECT_TRUE(rows_of(t.timeline(), 0, 4).empty());
  EXPECT_TRUE(rows_of(t.timeline(), 1, 3).empty());
  EXPECT_THAT(iterations_of(t.timeline()),
              ::testing::ElementsAre(IterationKey{0, 3}, IterationKey{0, 0}, IterationKey{0, 7},
                                     IterationKey{0, 5}));
}

}  // namespace
}  // namespace longhaul::trace
