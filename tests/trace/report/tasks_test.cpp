// Several lanes that work: what is a device's, and what its host and its copies do beside it.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "trace/report/report.hpp"
#include "trace/sample_timeline.hpp"

namespace longhaul::trace {
namespace {

using testing::TimelineBuilder;

constexpr auto kDependency = BoundKind::dependency;

std::int64_t task(TimelineBuilder& t, RowKind kind, std::int64_t ready, std::int64_t start,
                  std::int64_t end, testing::Bound bound = {}) {
  const std::int64_t op = t.collective(0, kind, {ready, start, end}, bound);
  return op;
}

TEST(Tasks, ADeviceIsBusyWithBlocksOnAllItsLanes) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100);
  t.block(0, RowKind::F, 0, 1, 150, 200, {}, 0);
  t.row(t.block(0, RowKind::W, 0, 2, 100, 150)).lane = 1;  // in between, on another lane
  t.row(t.block(0, RowKind::W, 0, 3, 180, 240)).lane = 1;  // a device that takes two at a time
  task(t, RowKind::host_task, 0, 0, 400);
  const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
  EXPECT_EQ(report.makespan_ns, 400) << "an iteration is over when its tasks are";
  EXPECT_DOUBLE_EQ(report.bubble_ratio[0], 1 - 240.0 / 400);
  EXPECT_EQ(report.idle.host_task, 160);
  EXPECT_EQ(report.idle.total(), 160);
  EXPECT_EQ(report.device_span_ns, 240);
}

TEST(Tasks, AreCountedApartWithTheTimeOfAllThreads) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100);
  task(t, RowKind::host_task, 0, 20, 60);
  task(t, RowKind::host_task, 0, 0, 50);
  task(t, RowKind::host_task, 0, 80, 90);
  task(t, RowKind::copy, 0, 10, 30);
  t.row(task(t, RowKind::host_task, 0, 0, 40)).rank = 1;
  const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
  EXPECT_EQ(report.tasks[index(TaskKind::host_task)], (TaskUse{4, 60 + 10 + 40, 140}));
  EXPECT_EQ(report.tasks[index(TaskKind::copy)], (TaskUse{1, 20, 20}));
  EXPECT_EQ(report.bubble_ratio[0], 0);
}

// The block waits from 100 on: its input is on the wire until 150, waits for a thread until 180, is
// unpacked until 220 and copied to the device until 300.
TEST(Tasks, AWaitForThemIsFollowedBack) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100);
  t.block(0, RowKind::F, 0, 1, 300, 400, {3, kDependency});
  task(t, RowKind::host_task, 150, 180, 220, {4, BoundKind::resource});
  task(t, RowKind::copy, 220, 220, 300, {2, kDependency});
  task(t, RowKind::host_task, 0, 0, 180);
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.copy, 80);
  EXPECT_EQ(idle.host_task, 70);  // from 150, when it was ready
  EXPECT_EQ(idle.dependency, 50);
  EXPECT_EQ(idle.total(), 200);
}

TEST(Tasks, AMessageThatATaskMadeLeadsToIt) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 40);                        // 0
  task(t, RowKind::host_task, 40, 40, 90, {0, kDependency});  // 1: packs
  t.send(0, 1, 0, 0, {90, 95, 110}, {1, kDependency});        // 2
  t.block(1, RowKind::F, 1, 0, 120, 200, {4, kDependency});   // 3
  t.recv(1, 0, 0, 0, {0, 95, 120}, {2, kDependency});         // 4
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.link_wait, 25);
  EXPECT_EQ(idle.link_busy, 5);
  EXPECT_EQ(idle.host_task, 50 + 50) << "of rank 1, and of rank 0 after its last block";
  EXPECT_EQ(idle.dependency, 40);
  EXPECT_EQ(idle.drained, 110);
}

TEST(Tasks, AfterTheLastBlockWhatEndsLastCounts) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 0, 100);
  task(t, RowKind::copy, 100, 100, 160);
  t.collective(0, RowKind::all_reduce, {100, 100, 130});
  task(t, RowKind::host_task, 100, 100, 120);
  t.block(1, RowKind::F, 1, 0, 0, 200);
  const IdleTime idle = attribute_idle(t.timeline().rows, 0);
  EXPECT_EQ(idle.drained, 40);
  EXPECT_EQ(idle.copy, 30);
  EXPECT_EQ(idle.collective, 10);
  EXPECT_EQ(idle.host_task, 20);
}

TEST(Tasks, OpsThatDidNotRunAreNoBlocks) {
  TimelineBuilder t;
  t.block(0, RowKind::F, 0, 0, 50, 100, {}, 10);
  t.row(t.block(0, RowKind::F, 0, 1, 0, 0, {}, 30)).outcome = static_cast<int>(Outcome::skipped);
  t.row(task(t, RowKind::copy, 0, 0, 0)).outcome = static_cast<int>(Outcome::undrawn);
  const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
  EXPECT_EQ(report.makespan_ns, 50);
  EXPECT_EQ(report.peak_activation_bytes.front(), 10);
  EXPECT_EQ(report.tasks, decltype(report.tasks){});
}

/// Rows with any causes, cycles among them: the parts still add up to the idle time.
TEST(Tasks, PartsAddUpWhateverTheRowsSay) {
  Random random{5};
  for (int i = 0; i < 300; ++i) {
    TimelineBuilder t;
    std::int64_t busy_until[2] = {0, 0};
    std::int64_t busy = 0;
    const std::int64_t rows = random.between(3, 20);
    for (std::int64_t k = 0; k < rows; ++k) {
      const testing::Bound bound{random.between(-1, rows - 1),
                                 static_cast<BoundKind>(random.between(1, 4))};
      const std::int64_t start = random.between(0, 200);
      const std::int64_t end = start + random.between(0, 60);
      const int rank = static_cast<int>(random.between(0, 1));
      if (random.between(0, 1) == 0) {
        const RowKind kind = random.between(0, 1) == 0 ? RowKind::host_task : RowKind::copy;
        t.row(task(t, kind, start - random.between(0, 30), start, end, bound)).rank = rank;
        continue;
      }
      const std::int64_t from = busy_until[rank] + random.between(0, 50);
      busy_until[rank] = from + end - start;
      busy += end - start;
      t.block(rank, RowKind::F, rank, static_cast<int>(k), from, busy_until[rank], bound);
    }
    const IterationReport report = report_iteration(t.timeline(), 0, 0, 0);
    const auto ranks = static_cast<std::int64_t>(report.bubble_ratio.size());
    ASSERT_EQ(report.idle.total(), ranks * report.makespan_ns - busy) << i;
    for (const IdlePart& part : idle_parts()) ASSERT_GE(report.idle.*part.member, 0) << part.name;
  }
}

}  // namespace
}  // namespace longhaul::trace
