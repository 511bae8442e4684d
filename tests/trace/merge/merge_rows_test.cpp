// Merging chunk by chunk gives what merging in memory gives; segments of hosts, of interleaved
// ranks, and damaged ones.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "trace/broken_file.hpp"
#include "trace/file/segment.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScratchDirectory;

constexpr int kStreamRanks = 4;

Timeline sample_stream(int iterations, int microbatches = 8) {
  return testing::random_timeline(5, {.ranks = kStreamRanks, .microbatches = microbatches},
                                  iterations);
}

/// The rows of some ranks, in the first `iteration`.
Timeline rows_of_ranks(const Timeline& all, int iteration, const std::vector<int>& ranks) {
  Timeline part = all;
  std::erase_if(part.rows, [&](const TimelineRow& row) {
    return row.iteration != iteration || std::ranges::find(ranks, row.rank) == ranks.end();
  });
  return part;
}

void write_hosts(const std::filesystem::path& directory, const Timeline& all, int iteration,
                 const std::vector<std::vector<int>>& hosts) {
  for (const std::vector<int>& ranks : hosts)
    write_segment(directory, {0, iteration}, ranks, rows_of_ranks(all, iteration, ranks));
}

/// The file that merging gives, and that it is what merging in memory gives.
Trace merged(const std::filesystem::path& directory, const MergeOptions& options = {}) {
  const auto file = directory / "trace.h5";
  std::filesystem::remove(file);
  const MergedRows rows = merge_run_into(directory, file, options);
  Trace trace = read_trace(file);
  EXPECT_EQ(trace.measured.rows.size(), rows.measured);
  EXPECT_EQ(trace.predicted.rows.size(), rows.predicted);
  const Trace in_memory = merge_run(directory, options.clocks);
  EXPECT_EQ(trace.measured.rows, in_memory.measured.rows);
  EXPECT_EQ(trace.measured.lanes, in_memory.measured.lanes);
  EXPECT_EQ(trace.measured.schedules, in_memory.measured.schedules);
  return trace;
}

TEST(MergeStream, PutsHostsTogetherWhateverTheirRanks) {
  const Timeline all = sample_stream(3);
  const std::vector<std::vector<std::vector<int>>> placements{
      {{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{3, 0}, {1}, {2}}};
  for (const auto& hosts : placements) {
    const testing::ScratchDirectory scratch;
    begin_run(scratch.path(), {}, sample_stream(1), kStreamRanks);
    for (int iteration = 0; iteration < 3; ++iteration)
      write_hosts(scratch.path(), all, iteration, hosts);
    EXPECT_EQ(finished_iterations(scratch.path()).size(), 3U);
    const Trace trace = merged(scratch.path());
    EXPECT_EQ(trace.measured.rows, all.rows);
    EXPECT_EQ(trace.predicted.rows, sample_stream(1).rows);
    EXPECT_THAT(validate_trace(scratch.path() / "trace.h5"), IsEmpty());
  }
}

/// Each segment has tables of its own, in another order.
TEST(MergeStream, KeepsWhatSchema3Adds) {
  Timeline all = sample_stream(2);
  testing::add_columns_of_schema_3(all, 4);
  const testing::ScratchDirectory scratch;
  Timeline planned;
  planned.schedules = all.schedules;
  planned.collectives = {"of the plan", all.collectives[1]};
  begin_run(scratch.path(), {}, planned, kStreamRanks);
  for (int iteration = 0; iteration < 2; ++iteration) {
    write_hosts(scratch.path(), all, iteration, {{0, 2}});
    Timeline turned = rows_of_ranks(all, iteration, {1, 3});
    std::ranges::reverse(turned.collectives);
    std::ranges::reverse(turned.operators);
    for (TimelineRow& row : turned.rows) {
      if (row.collective >= 0) row.collective = 1 - row.collective;
      if (row.operator_index >= 0) row.operator_index = 2 - row.operator_index;
    }
    write_segment(scratch.path(), {0, iteration}, {1, 3}, turned);
  }
  const Trace trace = merged(scratch.path());
  EXPECT_THAT(trace.measured.collectives,
              ElementsAre("of the plan", all.collectives[1], all.collectives[0]));
  EXPECT_THAT(trace.measured.operators, ::testing::UnorderedElementsAreArray(all.operators));
  std::vector<TimelineRow> expected = all.rows;
  for (TimelineRow& row : expected) {
    if (row.collective >= 0) row.collective = row.collective == 0 ? 2 : 1;
    if (row.operator_index >= 0) {
      const auto& names = trace.measured.operators;
      const auto& name = all.operators[static_cast<std::size_t>(row.operator_index)];
      row.operator_index =
          static_cast<std::int32_t>(std::ranges::find(names, name) - names.begin());
    }
  }
  EXPECT_EQ(trace.measured.rows, expected);
}

TEST(MergeStream, MergesSegmentsOfSchema2) {
  const Timeline all = sample_stream(2);
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, sample_stream(1), kStreamRanks);
  for (int iteration = 0; iteration < 2; ++iteration)
    write_hosts(scratch.path(), all, iteration, {{0, 1}, {2, 3}});
  {
    const hdf5::Silence silence;
    for (const char* const name : {"run.h5", "segment.0.0.0+2.h5", "segment.0.1.2+2.h5"})
      testing::BrokenFile{scratch.path() / name}.make_schema_2();
  }
  const Trace trace = merged(scratch.path());
  EXPECT_EQ(trace.measured.rows, all.rows);
  EXPECT_EQ(trace.predicted.rows, sample_stream(1).rows);
}

/// Rows that a merge left out would be gone for good.
TEST(MergeStream, LeavesOutIterationsWithKindsThatItDoesNotKnow) {
  const Timeline all = sample_stream(2);
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, sample_stream(1), kStreamRanks);
  for (int iteration = 0; iteration < 2; ++iteration)
    write_hosts(scratch.path(), all, iteration, {{0, 1, 2, 3}});
  const auto corrupt = [](const std::filesystem::path& file, const char* name, std::size_t rows) {
    const hdf5::Silence silence;
    testing::BrokenFile{file}.replace_kinds(name, {{"barrier", std::uint8_t{40}}},
                                            std::vector<std::uint8_t>(rows, 40));
  };
  corrupt(scratch.path() / "segment.0.1.0+4.h5", "measured/kind", all.rows.size() / 2);
  EXPECT_EQ(merged(scratch.path()).measured.rows.back().iteration, 0);
  corrupt(scratch.path() / "run.h5", "predicted/kind", sample_stream(1).rows.size());
  try {
    (void)merge_run(scratch.path());
    FAIL() << "merged";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows of kind 40 (barrier) are left out"));
  }
}

TEST(MergeStream, MergesOpsOfInterleavedRanksOverManyPieces) {
  // Ops of ranks in turn: 0, 1, 2, 3, 0, ... in segments that are read in several pieces.
  Timeline all = sample_stream(1, 8'192);
  std::vector<std::int64_t> next(kStreamRanks, 0);
  for (TimelineRow& row : all.rows) {
    row.op = next[static_cast<std::size_t>(row.rank)]++ * kStreamRanks + row.rank;
    row.bound_by = -1;
    row.bound_kind = BoundKind::start;
  }
  std::ranges::sort(all.rows, {}, &TimelineRow::op);
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, {}, kStreamRanks);
  write_hosts(scratch.path(), all, 0, {{0}, {1}, {2}, {3}});
  EXPECT_EQ(merge_run(scratch.path()).measured.rows, all.rows);
  merge_run_into(scratch.path(), scratch.path() / "trace.h5");
  EXPECT_EQ(overview_of(scratch.path() / "trace.h5").measured_rows, all.rows.size());
}

TEST(MergeStream, LeavesOutAnIterationThatTurnsOutDamagedAndKeepsItsNeighbours) {
  // More rows than a chunk before, in and after it: the rows written of it are taken back.
  const Timeline all = sample_stream(3, 6'000);
  ASSERT_GT(all.rows.size() / 3, 65'536U);
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, {}, kStreamRanks);
  for (int iteration = 0; iteration < 3; ++iteration)
    write_hosts(scratch.path(), all, iteration, {{0, 1}, {2, 3}});
  const auto last = scratch.path() / "segment.0.1.2+2.h5";
  const auto size = std::filesystem::file_size(last);
  {
    std::fstream file{last, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(size / 2));
    file << std::string(2'000, 'x');
  }
  const Trace trace = merged(scratch.path());
  EXPECT_EQ(trace.measured.rows.size(), all.rows.size() / 3 * 2);
  EXPECT_THAT(validate_trace(scratch.path() / "trace.h5"), IsEmpty());
  EXPECT_EQ(trace.measured.rows.back().iteration, 2);
}

TEST(MergeStream, LeavesOutIterationsWhoseRanksDoNotAddUp) {
  const Timeline all = sample_stream(2);
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, {}, kStreamRanks);
  write_hosts(scratch.path(), all, 0, {{0, 1, 2, 3}});
  write_hosts(scratch.path(), all, 1, {{0, 1}, {1, 2}});  // rank 1 twice, rank 3 not at all
  EXPECT_EQ(merged(scratch.path()).measured.rows.size(), all.rows.size() / 2);
  EXPECT_EQ(merge_run_into(scratch.path(), scratch.path() / "again.h5").iterations_left_out, 1U);
  std::filesystem::remove(scratch.path() / "segment.0.1.1+2.h5");
  EXPECT_THAT(finished_iterations(scratch.path()), ElementsAre(IterationKey{0, 0}));
}

TEST(MergeStream, AddsPredictionsUnderTheNamesOfTheMeasuredRows) {
  const testing::ScratchDirectory scratch;
  begin_run(scratch.path(), {}, sample_stream(1), kStreamRanks);
  Timeline other = sample_stream(1);
  other.schedules = {"another"};
  for (int rank = 0; rank < kStreamRanks; ++rank)
    write_segment(scratch.path(), {1, 0, rank}, testing::rows_of_rank(other, 0, rank));
  MergeOptions options;
  options.environment = "{\"a\":1}";
  options.add_predictions = [&](Timeline& predicted) {
    EXPECT_THAT(predicted.schedules, ElementsAre("gpipe", "another"));
    for (TimelineRow row : other.rows) {
      row.schedule = 1;
      predicted.rows.push_back(row);
    }
  };
  const Trace trace = merged(scratch.path(), options);
  EXPECT_EQ(trace.info.environment, "{\"a\":1}");
  EXPECT_THAT(trace.predicted.schedules, ElementsAre("gpipe", "another"));
  EXPECT_EQ(trace.predicted.rows.size(), 2 * other.rows.size());
}

TEST(MergeStream, MovesRanksByTheirClocks) {
  const testing::ScratchDirectory scratch;
  const Timeline all = sample_stream(1);
  begin_run(scratch.path(), {}, {}, kStreamRanks);
  write_hosts(scratch.path(), all, 0, {{0, 1}, {2, 3}});
  const std::vector<RankClock> clocks(kStreamRanks, {0, INT64_MAX, 1e-3});
  MergeOptions options;
  options.clocks = clocks;
  const Trace trace = merged(scratch.path(), options);
  for (std::size_t i = 0; i < all.rows.size(); ++i)
    EXPECT_EQ(trace.measured.rows[i].end_ns, clocks[0].moved(all.rows[i].end_ns));
}

TEST(SegmentNames, SayWhoseRowsTheyHold) {
  const auto there_and_back = [](const std::string& text) {
    const auto name = parse_segment_name(text);
    return name ? to_string(*name) : "no segment";
  };
  for (const char* const text : {"segment.0.0.0.h5", "segment.3.12.8+8.h5"})
    EXPECT_EQ(there_and_back(text), text);
  for (const char* const text :
       {"segment.0.0.0+1.h5", "segment.0.0.h5", "segment.0.0.0+0.h5", "segment.0.0.0.1.h5",
        "segment.0.0.0+.h5", "segment.0.0.0+02.h5", "segment.0.0.0+2.h5.tmp", "segment..0.0.h5"})
    EXPECT_EQ(there_and_back(text), "no segment") << text;
}

TEST(TracePart, ReadsOnlyWhatIsSelected) {
  const testing::ScratchDirectory scratch;
  Trace trace;
  trace.measured = sample_stream(3);
  trace.predicted = sample_stream(1);
  write_trace(scratch.path() / "a.h5", trace);
  const auto size = trace.predicted.rows.size();
  const Trace part = read_trace_part(scratch.path() / "a.h5", {"gpipe", 1}, 2 * size);
  EXPECT_EQ(part.measured.rows.size(), size);
  EXPECT_EQ(part.measured.rows.front().iteration, 1);
  EXPECT_EQ(part.predicted.rows, trace.predicted.rows);
  EXPECT_THAT(read_trace_part(scratch.path() / "a.h5", {"other", {}}, 0).measured.rows, IsEmpty());
  try {
    (void)read_trace_part(scratch.path() / "a.h5", {}, 2 * size);
    ADD_FAILURE() << "more rows than allowed were read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Select with --schedule and --iteration"));
  }
}

}  // namespace
}  // namespace longhaul::trace
