#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "trace/broken_file.hpp"
#include "trace/file/trace_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/sample_timeline.hpp"
#include "trace/scratch_directory.hpp"

#if defined(__SANITIZE_ADDRESS__)
/// HDF5 1.10 leaks what it had read of a damaged file before it gave up.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }  // NOLINT
#endif

namespace longhaul::trace {
namespace {

using testing::BrokenFile;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A valid trace on disk, to be spoilt.
class Validate : public ::testing::Test {
protected:
  Validate() { write_sample(testing::random_timeline(1, {}, 2)); }

  void write_sample(const Timeline& measured) {
    std::filesystem::remove(file_);
    Trace trace;
    trace.measured = measured;
    trace.predicted = testing::random_timeline(2, {});
    write_trace(file_, trace);
  }
  /// Diagnostics about a file that was changed.
  std::vector<std::string> after_breaking(const std::function<void(testing::BrokenFile&)>& change) {
    {
      const hdf5::Silence silence;
      testing::BrokenFile broken{file_};
      change(broken);
    }
    return problems();
  }
  std::vector<std::string> problems() {
    const std::vector<std::string> found = validate_trace(file_);
    EXPECT_EQ(found.empty(), is_read());
    return found;
  }
  [[nodiscard]] bool is_read() const {
    try {
      (void)read_trace(file_);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  testing::ScratchDirectory scratch_;
  std::filesystem::path file_ = scratch_.path() / "a.h5";
};

TEST_F(Validate, AcceptsWhatIsRight) { EXPECT_THAT(problems(), IsEmpty()); }

TEST_F(Validate, FindsMissingMembersAndAttributes) {
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove("measured/start_ns"); }),
              Contains(HasSubstr("measured/start_ns cannot be read (it is missing)")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove("predicted/lanes"); }),
              Contains(HasSubstr("predicted/lanes")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove("measured"); }), Not(IsEmpty()));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove_attribute("scenario"); }),
              Contains(HasSubstr("no attribute scenario")));
}

TEST_F(Validate, FindsAttributesOfAnotherTypeOrValue) {
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.replace_attribute("schema_version", std::int64_t{1});
              }),
              Contains(HasSubstr("schema_version is 1: the file is older than this program")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.replace_attribute("schema_version", std::int64_t{5});
              }),
              Contains(HasSubstr("schema_version is 5: the file is newer")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.replace_attribute("time_scale", std::int64_t{1});
              }),
              Contains(HasSubstr("time_scale has another type")));
  EXPECT_THAT(
      after_breaking([](testing::BrokenFile& f) { f.replace_attribute("time_scale", -1.0); }),
      Contains(HasSubstr("time_scale is -1")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.replace_attribute("creator", 0.5); }),
              Contains(HasSubstr("creator is no text")));
}

TEST_F(Validate, ReadsFilesOfProgramsThatKnewFewerKinds) {
  const std::vector<TimelineRow> before = read_trace(file_).measured.rows;
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.rename_kinds("measured/bound_kind",
                               {{"start", 0}, {"dependency", 1}, {"lane", 2}, {"resource", 3}});
              }),
              IsEmpty());
  EXPECT_EQ(read_trace(file_).measured.rows, before);
}

TEST_F(Validate, ReadsFilesOfSchema2) {
  const Trace before = read_trace(file_);
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.make_schema_2(); }), IsEmpty());
  const Trace back = read_trace(file_);
  EXPECT_EQ(back.measured.rows, before.measured.rows);
  EXPECT_EQ(back.predicted.rows, before.predicted.rows);
  EXPECT_THAT(back.measured.collectives, IsEmpty());
}

/// What a file of schema 2 has under these names is none of the schema's.
TEST_F(Validate, ReadsNothingOfSchema3InFilesOfSchema2) {
  const Trace before = read_trace(file_);
  Timeline more = before.measured;
  testing::add_columns_of_schema_3(more, 3);
  write_sample(more);
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.replace_attribute("schema_version", std::int64_t{2});
              }),
              IsEmpty());
  EXPECT_EQ(read_trace(file_).measured.rows, before.measured.rows);
}

TEST_F(Validate, FindsMissingColumnsOfSchema3) {
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove("measured/step"); }),
              Contains(HasSubstr("measured/step cannot be read (it is missing)")));
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.remove("predicted/operators"); }),
              Contains(HasSubstr("predicted/operators cannot be read (it is missing)")));
}

/// Where nothing is stored the file's own fill value counts, if it has one.
TEST_F(Validate, ReadsTheFillValueOfTheFile) {
  const std::size_t rows = read_trace(file_).measured.rows.size();
  const auto claim = [&](unsigned long long length) {
    return [length](testing::BrokenFile& f) {
      f.replace_by_claim("measured/step", ColumnType::int32, {length}, 64);
    };
  };
  EXPECT_THAT(after_breaking(claim(rows)), IsEmpty());
  for (const TimelineRow& row : read_trace(file_).measured.rows) EXPECT_EQ(row.step, 0);
  EXPECT_THAT(after_breaking(claim(rows + 1)), Contains(HasSubstr("measured/step has")));
  EXPECT_THAT(after_breaking(claim(1ULL << 60)), Contains(HasSubstr("measured/step has")));
}

/// A newer program has a kind of rows that this one does not know.
class NewKind : public Validate {
protected:
  static constexpr int kNumber = 40;

  /// Rows of `which` get the new kind; the file names it, or does not.
  void corrupt(const std::function<bool(const TimelineRow&)>& which, const char* named) {
    std::vector<std::pair<const char*, std::uint8_t>> kinds;
    for (const RowKind kind : every<RowKind>())
      kinds.emplace_back(longhaul::to_string(kind), static_cast<std::uint8_t>(kind));
    if (named != nullptr) kinds.emplace_back(named, kNumber);
    std::vector<std::uint8_t> numbers;
    for (const TimelineRow& row : read_trace(file_).measured.rows)
      numbers.push_back(which(row) ? std::uint8_t{kNumber} : static_cast<std::uint8_t>(row.kind));
    const hdf5::Silence silence;
    testing::BrokenFile{file_}.replace_kinds("measured/kind", kinds, numbers);
  }
};

bool of_both_sides(const TimelineRow& row) { return is_message(row.kind) && row.microbatch == 3; }

TEST_F(NewKind, IsLeftOutAndTold) {
  write_sample(testing::random_timeline(1, {.ranks = 4, .microbatches = 4'000}, 3));
  std::vector<TimelineRow> kept = read_trace(file_).measured.rows;
  ASSERT_GT(kept.size(), 65'536U);
  const auto gone = static_cast<std::uint64_t>(std::ranges::count_if(kept, of_both_sides));
  std::erase_if(kept, of_both_sides);
  corrupt(of_both_sides, "barrier");
  EXPECT_THAT(problems(), IsEmpty());
  const Trace trace = read_trace(file_);
  EXPECT_TRUE(trace.measured.rows == kept);
  ASSERT_EQ(trace.measured.left_out.size(), 1U);
  EXPECT_EQ(trace.measured.left_out.front().kind, kNumber);
  EXPECT_EQ(trace.measured.left_out.front().rows, gone);
  EXPECT_EQ(overview_of(file_).measured_rows, kept.size());
  EXPECT_THAT(overview_of(file_).notes,
              ElementsAre(fmt::format("measured: {} rows of kind 40 (barrier) are left out (this "
                                      "program does not know it).",
                                      gone)));
  std::vector<TimelineRow> second = kept;
  std::erase_if(second, [](const TimelineRow& row) { return row.iteration != 1; });
  EXPECT_TRUE(read_trace_part(file_, {{}, 1}, kept.size()).measured.rows == second);
}

TEST_F(NewKind, WithoutRowsIsNoNote) {
  corrupt([](const TimelineRow&) { return false; }, "barrier");
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_THAT(overview_of(file_).notes, IsEmpty());
}

TEST_F(NewKind, ThatTheFileDoesNotNameIsAFault) {
  corrupt([](const TimelineRow& row) { return row.op == 5; }, nullptr);
  EXPECT_THAT(problems(), Contains(HasSubstr("has kind 40")));
}

TEST_F(NewKind, OfAllRowsLeavesNone) {
  corrupt([](const TimelineRow&) { return true; }, "\x1B[1m\xFF");
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_THAT(overview_of(file_).notes, ElementsAre(HasSubstr("kind 40 (?[1m?)")));
  EXPECT_THAT(read_trace(file_).measured.rows, IsEmpty());
}

TEST_F(Validate, RefusesKindsUnderOtherNumbersOrNames) {
  for (const auto& kinds : {std::vector<std::pair<const char*, std::uint8_t>>{{"F", 1}, {"B", 0}},
                            {{"F", 0}, {"forward", 1}}}) {
    write_sample(testing::random_timeline(1, {}, 2));
    EXPECT_THAT(
        after_breaking([&](testing::BrokenFile& f) { f.rename_kinds("measured/kind", kinds); }),
        Contains(HasSubstr("measured/kind cannot be read (it has another type")));
  }
}

TEST_F(Validate, FindsColumnsOfAnotherLengthOrType) {
  EXPECT_THAT(
      after_breaking([](testing::BrokenFile& f) { f.replace("measured/rank", "predicted/rank"); }),
      Contains(HasSubstr("measured/rank has")));
  write_sample({});
  EXPECT_THAT(
      after_breaking([](testing::BrokenFile& f) { f.replace("measured/rank", "predicted/op"); }),
      Contains(HasSubstr("measured/rank cannot be read (it has another type")));
  write_sample({});
  EXPECT_THAT(
      after_breaking([](testing::BrokenFile& f) { f.replace("measured/lanes", "predicted/op"); }),
      Contains(HasSubstr("measured/lanes cannot be read (it holds no text")));
  write_sample({});
  EXPECT_THAT(
      after_breaking([](testing::BrokenFile& f) { f.replace("measured/lanes", "predicted"); }),
      Contains(HasSubstr("it is no dataset")));
  write_sample({});
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) { f.replace("measured", "predicted/op"); }),
              Contains(HasSubstr("it is no group")));
}

TEST_F(Validate, DoesNotFollowLinksToOtherFiles) {
  EXPECT_THAT(after_breaking([](testing::BrokenFile& f) {
                f.replace_by_link("measured/op", "/etc/passwd", "x");
              }),
              Contains(HasSubstr("link to somewhere else")));
}

/// Claims must be found out before memory is taken for them: here the limit is 2 GiB.
TEST_F(Validate, TakesNoMemoryForWhatIsOnlyClaimed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit limited{rlim_t{2} << 30, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
#endif
  const char* const name = "measured/op";
  for (const unsigned long long chunk : {0ULL, 1024ULL, 1ULL << 24}) {
    for (const unsigned long long length : {1ULL << 24, 1ULL << 40, 1ULL << 60}) {
      write_sample({});
      EXPECT_THAT(after_breaking([&](testing::BrokenFile& f) {
                    f.replace_by_claim(name, ColumnType::int64, {length}, chunk);
                  }),
                  Contains(HasSubstr("measured/op")))
          << chunk << " " << length;
    }
  }
  EXPECT_THAT(after_breaking([&](testing::BrokenFile& f) {
                f.replace_by_claim(name, ColumnType::int64, {4, 4}, 0);
              }),
              Contains(HasSubstr("no list")));
  setrlimit(RLIMIT_AS, &before);
}

TEST_F(Validate, FindsFilesThatAreNoTrace) {
  const auto about = [&](const std::string& text) {
    std::ofstream{file_, std::ios::binary} << text;
    return problems();
  };
  EXPECT_THAT(about(""), Contains(HasSubstr("cannot be opened")));
  EXPECT_THAT(about("hello"), Contains(HasSubstr("no HDF5 file")));
  EXPECT_THAT(about(std::string(10'000'000, 'x')), Not(IsEmpty()));
  std::filesystem::remove(file_);
  EXPECT_THAT(problems(), Contains(HasSubstr("no such file")));
  std::filesystem::create_directory(file_);
  EXPECT_THAT(problems(), Contains(HasSubstr("it is no file")));
  std::filesystem::remove(file_);
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(problems(), Contains(HasSubstr("it is no file")));
}

TEST_F(Validate, FindsEveryTruncation) {
  const auto whole = std::filesystem::file_size(file_);
  for (std::uintmax_t size = whole - 1; size > whole / 50; size -= whole / 50) {
    std::filesystem::resize_file(file_, size);
    EXPECT_THAT(problems(), Not(IsEmpty())) << size;
  }
}

/// Flipped bits either do no harm or are found; nothing crashes.
TEST_F(Validate, SurvivesFlippedBits) {
  std::string bytes;
  {
    std::ifstream in{file_, std::ios::binary};
    bytes.assign(std::istreambuf_iterator<char>{in}, {});
  }
  Random random{17};
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int flips = 0; flips < 8; ++flips) {
      const auto at = random.between(0, static_cast<std::int64_t>(damaged.size()) - 1);
      damaged[static_cast<std::size_t>(at)] ^= static_cast<char>(1 << random.between(0, 7));
    }
    std::ofstream{file_, std::ios::binary} << damaged;
    found += validate_trace(file_).empty() ? 0 : 1;
  }
  EXPECT_GT(found, 200);
}

}  // namespace
}  // namespace longhaul::trace
