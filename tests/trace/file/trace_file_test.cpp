#include "trace/file/trace_file.hpp"

#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "trace/broken_file.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunInfo sample_info() {
  return {.creator = "longhaul 0.1",
          .git_commit = "abc",
          .command_line = "bench_pipeline x.toml",
          .scenario = "[scenario]\nname = \"ü\"\n",
          .environment = "{}",
          .time_scale = 0.25,
          .activation_budget_bytes = 123};
}

Trace written_trace(int iterations = 3) {
  const testing::Shape shape;
  return {sample_info(), testing::random_timeline(1, shape, iterations),
          testing::random_timeline(2, shape)};
}

void expect_equal(const Timeline& a, const Timeline& b) {
  EXPECT_EQ(a.schedules, b.schedules);
  EXPECT_EQ(a.datacenters, b.datacenters);
  EXPECT_EQ(a.lanes, b.lanes);
  EXPECT_EQ(a.resources, b.resources);
  EXPECT_EQ(a.collectives, b.collectives);
  EXPECT_EQ(a.operators, b.operators);
  EXPECT_EQ(a.rows, b.rows);
}

std::string refusal_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{directory})
    names.push_back(entry.path().filename().string());
  return names;
}

TEST(TraceFile, GivesBackWhatWasWritten) {
  const testing::ScratchDirectory scratch;
  Trace trace = written_trace();
  trace.measured.resources = {"link 0>1", ""};
  trace.measured.rows[3].resource = 1;
  write_trace(scratch.path() / "a.h5", trace);
  const Trace back = read_trace(scratch.path() / "a.h5");
  expect_equal(back.measured, trace.measured);
  expect_equal(back.predicted, trace.predicted);
  EXPECT_EQ(back.info.creator, trace.info.creator);
  EXPECT_EQ(back.info.git_commit, trace.info.git_commit);
  EXPECT_EQ(back.info.command_line, trace.info.command_line);
  EXPECT_EQ(back.info.scenario, trace.info.scenario);
  EXPECT_EQ(back.info.environment, trace.info.environment);
  EXPECT_EQ(back.info.time_scale, trace.info.time_scale);
  EXPECT_EQ(back.info.activation_budget_bytes, trace.info.activation_budget_bytes);
}

TEST(TraceFile, HoldsMoreRowsThanAChunkAndNoneAtAll) {
  const testing::ScratchDirectory scratch;
  Trace trace;
  trace.info = sample_info();
  trace.measured = testing::random_timeline(3, {.ranks = 8, .microbatches = 256}, 15);
  ASSERT_GT(trace.measured.rows.size(), 131'072U);
  write_trace(scratch.path() / "a.h5", trace);
  const Trace back = read_trace(scratch.path() / "a.h5");
  expect_equal(back.measured, trace.measured);
  expect_equal(back.predicted, trace.predicted);
}

TEST(TraceFile, GivesBackWhatSchema3Adds) {
  const testing::ScratchDirectory scratch;
  Trace trace = written_trace();
  testing::add_columns_of_schema_3(trace.measured, 7);
  testing::add_columns_of_schema_3(trace.predicted, 8);
  write_trace(scratch.path() / "a.h5", trace);
  const Trace back = read_trace(scratch.path() / "a.h5");
  expect_equal(back.measured, trace.measured);
  expect_equal(back.predicted, trace.predicted);
}

/// A column may be stored in some chunks alone: there are 21 here.
TEST(TraceFile, GivesBackAColumnThatFewRowsSaySomethingIn) {
  const testing::ScratchDirectory scratch;
  Trace trace;
  trace.info = sample_info();
  trace.measured = testing::random_timeline(3, {.ranks = 8, .microbatches = 2'048}, 15);
  const std::size_t rows = trace.measured.rows.size();
  ASSERT_GT(rows, 20 * 65'536U);
  trace.measured.rows[rows - 1].version = 4;
  trace.measured.rows[rows / 2].slices = 2;
  write_trace(scratch.path() / "a.h5", trace);
  EXPECT_THAT(validate_trace(scratch.path() / "a.h5"), IsEmpty());
  const Trace back = read_trace(scratch.path() / "a.h5");
  EXPECT_TRUE(back.measured.rows == trace.measured.rows);
}

/// Bytes of a file, and those of them that the columns of schema 3 take.
struct StoredBytes {
  std::uintmax_t file = 0, columns_of_schema_3 = 0;
};

StoredBytes stored_bytes(const std::filesystem::path& file,
                         const std::vector<std::string>& groups) {
  const hdf5::Silence silence;
  const hdf5::Handle opened = hdf5::open_file(file);
  StoredBytes bytes{std::filesystem::file_size(file), 0};
  for (const std::string& group : groups)
    for (const Column& column : timeline_columns())
      if (may_be_empty(column))
        bytes.columns_of_schema_3 +=
            testing::stored_bytes(opened.get(), (group + '/' + column.name).c_str());
  return bytes;
}

TEST(TraceFile, StoresNothingOfColumnsThatAreEmpty) {
  const testing::ScratchDirectory scratch;
  Trace trace = written_trace(700);
  ASSERT_GT(trace.measured.rows.size(), 65'536U);
  write_trace(scratch.path() / "empty.h5", trace);
  testing::add_columns_of_schema_3(trace.measured, 1);
  write_trace(scratch.path() / "full.h5", trace);
  const StoredBytes empty = stored_bytes(scratch.path() / "empty.h5", {"measured", "predicted"});
  const StoredBytes full = stored_bytes(scratch.path() / "full.h5", {"measured", "predicted"});
  EXPECT_EQ(empty.columns_of_schema_3, 0U);
  EXPECT_GT(full.columns_of_schema_3, trace.measured.rows.size());
  EXPECT_GE(full.file, empty.file + full.columns_of_schema_3);
}

/// Nor do these have a name in it: a segment of today is as large as one of schema 2.
TEST(TraceFile, LeavesEmptyColumnsOutOfSegments) {
  for (const int microbatches : {8, 2'048}) {  // plain and compressed
    const testing::ScratchDirectory scratch;
    Timeline all = testing::random_timeline(1, {.ranks = 2, .microbatches = microbatches});
    all.collectives = {"all_reduce of chunk 0"};
    all.rows[3].collective = 0;
    write_segment(scratch.path(), {0, 0}, {0, 1}, all);
    const hdf5::Silence silence;
    const hdf5::Handle file = hdf5::open_file(scratch.path() / "segment.0.0.0+2.h5");
    const hdf5::Handle group = hdf5::open_member(file.get(), "measured");
    for (const Column& column : timeline_columns())
      EXPECT_EQ(hdf5::has_member(group.get(), column.name),
                column.since == 2 || column.name == std::string{"collective"})
          << column.name;
    EXPECT_TRUE(hdf5::has_member(group.get(), "collectives"));
    EXPECT_FALSE(hdf5::has_member(group.get(), "operators"));
  }
}

TEST(TraceFile, KeepsATextLongerThanHdf5StoresInline) {
  const testing::ScratchDirectory scratch;
  Trace trace = written_trace();
  trace.info.scenario.assign(1'000'000, 'x');
  write_trace(scratch.path() / "a.h5", trace);
  EXPECT_EQ(read_trace(scratch.path() / "a.h5").info.scenario, trace.info.scenario);
}

TEST(TraceFile, NeverOverwritesAndLeavesNothingHalfDone) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  std::ofstream{file} << "precious";
  EXPECT_THAT(refusal_of([&] { write_trace(file, written_trace()); }), HasSubstr("exists"));
  std::string kept;
  std::ifstream{file} >> kept;
  EXPECT_EQ(kept, "precious");
  EXPECT_THAT(names_in(scratch.path()), ElementsAre("a.h5"));
}

TEST(TraceFile, SaysWhereItCannotWrite) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "missing" / "a.h5";
  EXPECT_THAT(refusal_of([&] { write_trace(file, written_trace()); }),
              AllOf(HasSubstr(file.string()), HasSubstr("No such file")));
}

/// Writes in a child whose files may not grow beyond `limit_bytes`, its log neither; its exit code.
int exit_code_with_file_limit(rlim_t limit_bytes, const std::function<void()>& call) {
  const testing::ScratchDirectory scratch;
  const std::string log = scratch.path() / "log";
  std::ofstream{log} << std::string(20'000, '.');
  const pid_t child = fork();
  if (child == 0) {
    if (freopen(log.c_str(), "a", stderr) == nullptr) _exit(3);
    setvbuf(stderr, nullptr, _IONBF, 0);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{limit_bytes, limit_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      call();
    } catch (const Error&) {
      _exit(2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TraceFile, IsLeftOutWhenThereIsNoSpaceForIt) {
  const testing::ScratchDirectory scratch;
  const auto write = [&] { write_trace(scratch.path() / "a.h5", written_trace(50)); };
  const auto write_part = [&] {
    write_segment(scratch.path(), {}, testing::rows_of_rank(written_trace().measured, 0, 0));
  };
  for (const rlim_t limit : {rlim_t{0}, rlim_t{1000}, rlim_t{20'000}}) {
    EXPECT_EQ(exit_code_with_file_limit(limit, write), 2) << limit;
    EXPECT_THAT(names_in(scratch.path()), IsEmpty()) << limit;
  }
  EXPECT_EQ(exit_code_with_file_limit(1000, write_part), 2);
  EXPECT_THAT(names_in(scratch.path()), IsEmpty());
  EXPECT_EQ(exit_code_with_file_limit(10'000'000, write), 0);
}

TEST(ValidateTrace, FindsNothingWrongWithATrace) {
  const testing::ScratchDirectory scratch;
  write_trace(scratch.path() / "a.h5", written_trace());
  EXPECT_THAT(validate_trace(scratch.path() / "a.h5"), IsEmpty());
}

}  // namespace
}  // namespace longhaul::trace
