#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::rows_of_rank;
using testing::ScratchDirectory;

constexpr int kRanks = 4;

/// Names only what its rows use, in the order in which they do: as a rank's own table.
Timeline with_own_tables(const Timeline& part) {
  Timeline own = part;
  own.lanes.clear();
  own.datacenters.clear();
  const auto renamed = [](std::int32_t index, const std::vector<std::string>& from,
                          std::vector<std::string>& to) {
    const std::string& name = from[static_cast<std::size_t>(index)];
    const auto at = std::ranges::find(to, name);
    const auto position = static_cast<std::int32_t>(at - to.begin());
    if (at == to.end()) to.push_back(name);
    return position;
  };
  for (TimelineRow& row : own.rows) {
    row.lane = renamed(row.lane, part.lanes, own.lanes);
    row.datacenter = renamed(row.datacenter, part.datacenters, own.datacenters);
  }
  return own;
}

Timeline shifted(Timeline timeline, std::int64_t by_ns) {
  for (TimelineRow& row : timeline.rows) {
    row.ready_ns += by_ns;
    row.start_ns += by_ns;
    row.end_ns += by_ns;
  }
  return timeline;
}

void write_iteration(const std::filesystem::path& directory, const Timeline& all, int iteration,
                     std::int64_t origin_ns = 0) {
  for (int rank = 0; rank < kRanks; ++rank)
    write_segment(directory, {0, iteration, rank},
                  shifted(with_own_tables(testing::rows_of_rank(all, iteration, rank)), origin_ns));
}

Timeline sample(int iterations) {
  return testing::random_timeline(5, {.ranks = kRanks}, iterations);
}

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Merge, GathersEveryFinishedIterationInOrder) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(3);
  RunInfo info;
  info.creator = "test";
  info.time_scale = 0.5;
  begin_run(scratch.path(), info, sample(1), kRanks);
  constexpr std::int64_t kUnixTime = 1'700'000'000'000'000'000;
  for (const int iteration : {2, 0, 1})
    write_iteration(scratch.path(), all, iteration, kUnixTime + iteration);
  EXPECT_THAT(finished_iterations(scratch.path()),
              ElementsAre(IterationKey{0, 0}, IterationKey{0, 1}, IterationKey{0, 2}));
  const Trace trace = merge_run(scratch.path());
  EXPECT_EQ(trace.info.creator, "test");
  EXPECT_EQ(trace.info.time_scale, 0.5);
  EXPECT_EQ(trace.predicted.rows, sample(1).rows);
  EXPECT_EQ(trace.measured.rows, all.rows);  // as the tables of the prediction name them
  EXPECT_EQ(trace.measured.lanes, all.lanes);
  EXPECT_EQ(trace.measured.datacenters, all.datacenters);
  EXPECT_EQ(trace.measured.schedules, all.schedules);
  write_trace(scratch.path() / "trace.h5", trace);
  EXPECT_THAT(validate_trace(scratch.path() / "trace.h5"), IsEmpty());
}

// A row of an op that did not run has times of 0, on whatever clock the others are.
TEST(Merge, WhatDidNotRunIsNotTheFirst) {
  const testing::ScratchDirectory scratch;
  Timeline all = sample(1);
  begin_run(scratch.path(), {}, all, kRanks);
  constexpr std::int64_t kUnixTime = 1'700'000'000'000'000'000;
  for (int rank = 0; rank < kRanks; ++rank) {
    Timeline mine = shifted(testing::rows_of_rank(all, 0, rank), kUnixTime);
    TimelineRow& skipped = mine.rows[1];
    skipped.outcome = static_cast<std::int32_t>(Outcome::skipped);
    skipped.ready_ns = skipped.start_ns = skipped.end_ns = 0;
    TimelineRow& same = *std::ranges::find(all.rows, skipped.op, &TimelineRow::op);
    same.outcome = skipped.outcome;
    same.ready_ns = same.start_ns = same.end_ns = 0;
    write_segment(scratch.path(), {0, 0, rank}, mine);
  }
  EXPECT_EQ(merge_run(scratch.path()).measured.rows, all.rows);
}

TEST(RankClock, AddsWhatHasDriftedSince) {
  const RankClock clock{1'000'000'000, 9'000'000'000,
                        20e-6};  // a second in, 20 us more each second
  EXPECT_EQ(clock.moved(1'000'000'000), 1'000'000'000);
  EXPECT_EQ(clock.moved(3'000'000'000), 3'000'040'000);
  EXPECT_EQ(clock.moved(999'999'999), 999'999'999) << "of an earlier part of the run";
  EXPECT_EQ(clock.moved(9'000'000'001), 9'000'000'001);
  EXPECT_EQ(RankClock{}.moved(7), 7);
}

/// Two ranks' clocks run 100 and 50 us a second too slow and too fast, an hour into the run.
TEST(Merge, MovesStampsByTheDriftOfTheirRank) {
  constexpr std::int64_t kBegin = 5'000'000'000'000;
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const std::vector<RankClock> clocks{
      {}, {kBegin, 2 * kBegin, 1e-4}, {kBegin, 2 * kBegin, -5e-5}, {}};
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(1);
  begin_run(scratch.path(), {}, all, kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    const RankClock& clock = clocks[static_cast<std::size_t>(rank)];
    Timeline mine = shifted(testing::rows_of_rank(all, 0, rank), kBegin + kHour);
    for (TimelineRow& row : mine.rows)
      for (std::int64_t* stamp : {&row.ready_ns, &row.start_ns, &row.end_ns})
        *stamp = kBegin + std::llround(static_cast<double>(*stamp - kBegin) / (1 + clock.drift));
    write_segment(scratch.path(), {0, 0, rank}, mine);
  }
  const auto largest_error = [&](const Timeline& measured) {
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < all.rows.size(); ++i)
      largest = std::max({largest, std::abs(measured.rows[i].start_ns - all.rows[i].start_ns),
                          std::abs(measured.rows[i].end_ns - all.rows[i].end_ns)});
    return largest;
  };
  EXPECT_LE(largest_error(merge_run(scratch.path(), clocks).measured), 2);  // rounded twice
  EXPECT_GT(largest_error(merge_run(scratch.path()).measured), 500'000'000);
}

TEST(Merge, LeavesOutIterationsThatLackARank) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(2);
  begin_run(scratch.path(), {}, sample(1), kRanks);
  write_iteration(scratch.path(), all, 0);
  for (const int rank : {0, 1, 3})
    write_segment(scratch.path(), {0, 1, rank}, testing::rows_of_rank(all, 1, rank));
  EXPECT_THAT(finished_iterations(scratch.path()), ElementsAre(IterationKey{0, 0}));
  EXPECT_EQ(merge_run(scratch.path()).measured.rows.size(), all.rows.size() / 2);
}

TEST(Merge, LooksPastWhatIsNotASegment) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(3);
  begin_run(scratch.path(), {}, sample(1), kRanks);
  for (int iteration = 0; iteration < 3; ++iteration)
    write_iteration(scratch.path(), all, iteration);
  const auto put = [&](const char* name, const std::string& text) {
    std::ofstream{scratch.path() / name, std::ios::binary} << text;
  };
  put("notes.txt", "hello");
  put("segment.h5", "");
  put("segment.1.2.h5", "x");
  put("segment.00.1.2.h5", "x");
  put("segment.-1.1.2.h5", "x");
  put("segment.0.99999999999999999999.2.h5", "x");
  put(".segment.0.7.0.h5.12-0.tmp", "half");
  std::filesystem::create_directory(scratch.path() / "segment.0.5.0.h5");
  // Iteration 1: one segment is garbage, iteration 2: one is cut short, one more rank than there
  // is.
  std::filesystem::remove(scratch.path() / "segment.0.1.2.h5");
  put("segment.0.1.2.h5", "no HDF5 at all");
  std::filesystem::resize_file(scratch.path() / "segment.0.2.3.h5", 5000);
  put("segment.0.0.9.h5", "a rank that does not exist");
  const Trace trace = merge_run(scratch.path());
  const auto one = static_cast<std::ptrdiff_t>(all.rows.size() / 3);
  EXPECT_EQ(trace.measured.rows, std::vector(all.rows.begin(), all.rows.begin() + one));
}

TEST(Merge, TrustsNoSegmentThatSaysAnotherKeyThanItsName) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(2);
  begin_run(scratch.path(), {}, sample(1), kRanks);
  write_iteration(scratch.path(), all, 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string id = std::to_string(rank) + ".h5";
    std::filesystem::copy_file(scratch.path() / ("segment.0.0." + id),
                               scratch.path() / ("segment.0.1." + id));
  }
  EXPECT_EQ(merge_run(scratch.path()).measured.rows.size(), all.rows.size() / 2);
}

TEST(Merge, KeepsSchedulesOfOneNameApart) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample(1);
  Timeline predicted = all;
  predicted.schedules = {"gpipe", "other", "gpipe"};
  begin_run(scratch.path(), {}, predicted, kRanks);
  for (const int schedule : {0, 2, 3}) {
    for (int rank = 0; rank < kRanks; ++rank)
      write_segment(scratch.path(), {schedule, 0, rank}, testing::rows_of_rank(all, 0, rank));
  }
  const Timeline measured = merge_run(scratch.path()).measured;
  EXPECT_THAT(measured.schedules, ElementsAre("gpipe", "other", "gpipe", "gpipe"));
  std::set<int> used;
  for (const TimelineRow& row : measured.rows) used.insert(row.schedule);
  EXPECT_THAT(used, ElementsAre(0, 2, 3));
}

TEST(Run, BeginsOnlyOnceInADirectory) {
  const testing::ScratchDirectory scratch;
  const auto directory = scratch.path() / "deep" / "run";
  begin_run(directory, {}, sample(1), kRanks);
  EXPECT_THAT(message_of([&] { begin_run(directory, {}, sample(1), kRanks); }),
              HasSubstr("exists"));
  EXPECT_THAT(validate_trace(directory / "run.h5"), IsEmpty());
  write_iteration(directory, sample(1), 0);
  std::filesystem::remove(directory / "run.h5");
  EXPECT_THAT(message_of([&] { begin_run(directory, {}, sample(1), kRanks); }),
              HasSubstr("another run"));
  EXPECT_THAT(message_of([&] { (void)merge_run(directory); }), HasSubstr("run.h5"));
}

TEST(Segment, IsWrittenOnce) {
  const testing::ScratchDirectory scratch;
  const Timeline part = testing::rows_of_rank(sample(1), 0, 1);
  write_segment(scratch.path(), {0, 0, 1}, part);
  EXPECT_THAT(message_of([&] {
                write_segment(scratch.path(), {0, 0, 1}, part);
              }),
              HasSubstr("exists"));
}

/// Writes its segments until it is killed, and says after each that it is on disk.
[[noreturn]] void write_until_killed(const std::filesystem::path& directory, const Timeline& rows,
                                     int rank, int report) {
  for (int iteration = 0;; ++iteration) {
    Timeline part = testing::rows_of_rank(rows, 0, rank);
    for (TimelineRow& row : part.rows) row.iteration = iteration;
    write_segment(directory, {0, iteration, rank}, part);
    if (write(report, &iteration, sizeof iteration) != sizeof iteration) _exit(1);
  }
}

/// Forks a writer; its reports can be read from `pipe`.
pid_t fork_writer(const std::filesystem::path& directory, const Timeline& rows, int rank,
                  int& pipe_end) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    write_until_killed(directory, rows, rank, ends[1]);
  }
  close(ends[1]);
  pipe_end = ends[0];
  return child;
}

/// Waits until the writer has reported `count` iterations.
void await_reports(int pipe_end, int count) {
  for (int iteration = -1; iteration + 1 < count;)
    ASSERT_EQ(read(pipe_end, &iteration, sizeof iteration), ssize_t{sizeof iteration});
}

/// The last iteration that the writer reported before it died, after `count` that were awaited.
int last_report(int pipe_end, int count) {
  int last = count - 1;
  while (read(pipe_end, &last, sizeof last) == sizeof last) {
  }
  close(pipe_end);
  return last;
}

TEST(Segment, OfAnIterationThatReturnedSurvivesAKillAtAnyTime) {
  const Timeline rows = testing::random_timeline(9, {.ranks = kRanks, .microbatches = 64});
  Random random{11};
  int merged_iterations = 0;
  for (int round = 0; round < 20; ++round) {
    const testing::ScratchDirectory scratch;
    begin_run(scratch.path(), {}, rows, kRanks);
    pid_t children[kRanks];
    int reports[kRanks];
    for (int rank = 0; rank < kRanks; ++rank)
      children[rank] = fork_writer(scratch.path(), rows, rank, reports[rank]);
    const auto awaited = static_cast<int>(random.between(0, 4));
    for (const int report : reports) await_reports(report, awaited);
    usleep(static_cast<useconds_t>(random.between(0, 5'000)));  // any moment is a good one
    for (const pid_t child : children) ASSERT_EQ(kill(child, SIGKILL), 0);
    int finished = 1 << 30;
    for (int rank = 0; rank < kRanks; ++rank) {
      finished = std::min(finished, last_report(reports[rank], awaited) + 1);
      int status = 0;
      waitpid(children[rank], &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status));
    }
    const Trace trace = merge_run(scratch.path());
    EXPECT_GE(trace.measured.rows.size(), static_cast<std::size_t>(finished) * rows.rows.size());
    EXPECT_EQ(trace.measured.rows.size() % rows.rows.size(), 0U);
    EXPECT_EQ(finished_iterations(scratch.path()).size(),
              trace.measured.rows.size() / rows.rows.size());
    merged_iterations += finished;
  }
  EXPECT_GT(merged_iterations, 20);
}

}  // namespace
}  // namespace longhaul::trace
