#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/page/reported_run.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// One block of 5 ms, and two measured iterations of it.
trace::Trace small_trace() {
  trace::Trace trace;
  for (Timeline* timeline : {&trace.predicted, &trace.measured}) {
    timeline->schedules = {"gpipe"};
    timeline->lanes = {"compute"};
    timeline->datacenters = {"west"};
  }
  TimelineRow row;
  row.kind = RowKind::F;
  row.chunk = row.microbatch = 0;
  row.end_ns = 5'000'000;
  trace.predicted.rows = {row};
  for (int i = 0; i < 2; ++i) {
    row.iteration = i;
    row.end_ns = 6'000'000;
    trace.measured.rows.push_back(row);
  }
  return trace;
}

class PageOfRun : public ::testing::Test {
protected:
  PageOfRun() {
    std::string name = ::testing::TempDir() + "longhaul-page-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~PageOfRun() override { fs::remove_all(directory_); }
  fs::path directory_;
};

TEST_F(PageOfRun, IsWrittenBesideTheTrace) {
  trace::write_trace(directory_ / "trace.h5", small_trace());
  EXPECT_EQ(write_page_of_run(directory_), "");
  std::ifstream page{directory_ / "report.html"};
  const std::string text{std::istreambuf_iterator<char>{page}, {}};
  EXPECT_THAT(text, HasSubstr("6 ms an iteration, measured (median of 2)"));
  EXPECT_THAT(text, HasSubstr("+20.00"));
}

/// The run is over by then: it must not fail for its page.
TEST_F(PageOfRun, IsLeftOutInOneLineWhereItCannotBe) {
  EXPECT_THAT(write_page_of_run(directory_), HasSubstr("report.html is left out"));
  trace::write_trace(directory_ / "trace.h5", small_trace());
  std::ofstream{directory_ / "report.html"} << "precious";
  const std::string line = write_page_of_run(directory_);
  EXPECT_THAT(line, HasSubstr("exists"));
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
}

TEST_F(PageOfRun, NeedsAFinishedIteration) {
  trace::Trace trace = small_trace();
  trace.measured.rows.clear();
  trace.predicted.rows.clear();
  trace::write_trace(directory_ / "trace.h5", trace);
  EXPECT_THAT(write_page_of_run(directory_), HasSubstr("no iteration of a schedule is finished"));
}

}  // namespace
}  // namespace longhaul::report
