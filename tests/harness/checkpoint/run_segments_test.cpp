#include "harness/checkpoint/run_segments.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "trace/scratch_directory.hpp"

namespace longhaul::harness {
namespace {

using Names = std::vector<std::string>;

void make(const std::filesystem::path& directory, const Names& names) {
  for (const std::string& name : names) std::ofstream{directory / name} << "x";
}

Names names_in(const std::filesystem::path& directory) {
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator{directory})
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

TEST(RunSegments, CountsWhatAllRanksHaveFinishedWithoutAGap) {
  const testing::ScratchDirectory scratch;
  make(scratch.path(), {"segment.0.0.0.h5", "segment.0.0.1.h5", "segment.0.1.0.h5",
                        "segment.0.2.0+2.h5", "segment.1.0.0+2.h5", "segment.1.1.0+2.h5"});
  EXPECT_EQ(count_finished(scratch.path(), 2, 3), (std::vector<int>{1, 2, 0}));
}

TEST(RunSegments, SetsAsideWhatIsNotGoneOnFrom) {
  const testing::ScratchDirectory scratch;
  const Names kept{"input.json", "run.h5", "segment.0.0.0+2.h5"};
  const Names lost{".segment.0.1.0.h5.7.tmp", "report.1.txt", "segment.0.1.0.h5",
                   "segment.1.0.0+2.h5", "trace.h5"};
  make(scratch.path(), kept);
  make(scratch.path(), lost);
  set_unfinished_aside(scratch.path(), {1});
  EXPECT_EQ(names_in(scratch.path() / "unfinished-1"), lost);
  std::filesystem::remove_all(scratch.path() / "unfinished-1");
  EXPECT_EQ(names_in(scratch.path()), kept);
  set_unfinished_aside(scratch.path(), {1});
  EXPECT_EQ(names_in(scratch.path()), kept) << "nothing to move, no directory";
  remove_segments(scratch.path());
  EXPECT_EQ(names_in(scratch.path()), Names{"input.json"});
}

}  // namespace
}  // namespace longhaul::harness
