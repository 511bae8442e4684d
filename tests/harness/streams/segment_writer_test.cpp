#include "harness/streams/segment_writer.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::harness {
namespace {

/// All rows of one rank of an iteration.
Timeline rows_of(int iteration) {
  Timeline timeline = testing::random_timeline(5, {.ranks = 2}, iteration + 1);
  return testing::rows_of_rank(timeline, iteration, 0);
}

TEST(SegmentWriter, AllIsThereWhenItIsFinished) {
  const testing::ScratchDirectory scratch;
  SegmentWriter writer{scratch.path()};
  for (int iteration = 0; iteration < 5; ++iteration)
    writer.write({0, iteration, 0}, rows_of(iteration));
  writer.finish();
  EXPECT_EQ(trace::finished_iterations(scratch.path(), 1).size(), 5U);
}

TEST(SegmentWriter, WritesWhatWaitsAtItsEnd) {
  const testing::ScratchDirectory scratch;
  {
    SegmentWriter writer{scratch.path()};
    writer.write({0, 0, 0}, rows_of(0));
  }
  EXPECT_EQ(trace::finished_iterations(scratch.path(), 1).size(), 1U);
}

TEST(SegmentWriter, SaysThatASegmentCannotBeWritten) {
  const testing::ScratchDirectory scratch;
  const std::filesystem::path no_directory = scratch.path() / "file";
  std::ofstream{no_directory} << "x";
  SegmentWriter writer{no_directory};
  writer.write({0, 0, 0}, rows_of(0));
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_THROW(writer.write({0, 1, 0}, rows_of(1)), Error);
}

}  // namespace
}  // namespace longhaul::harness
