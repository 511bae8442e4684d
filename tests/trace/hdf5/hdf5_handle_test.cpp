// What a user reads where HDF5 fails: our words, neither its own nor the place in our source.
#include "trace/hdf5/hdf5_handle.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::trace::hdf5 {
namespace {

/// The message of the Error that `work` throws.
template <typename Work>
std::string complaint_of(Work&& work) {
  const Silence silence;
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Hdf5Check, SaysWhatIsWrongWithAFileInOurWords) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "notes.h5";
  std::ofstream{file} << "no HDF5 at all";
  EXPECT_EQ(complaint_of([&] { (void)open_file(file); }), "it is no HDF5 file");
  const auto whole = scratch.path() / "whole.h5";
  write_new_file(whole, Writing::piecewise, [](Id) {});
  std::filesystem::resize_file(whole, std::filesystem::file_size(whole) - 1);
  EXPECT_EQ(complaint_of([&] { (void)open_file(whole); }), "it is cut short");
}

/// No file may grow beyond `bytes` while it lives.
class SmallFiles {
public:
  explicit SmallFiles(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Hdf5Check, TellsWhatTheSystemSays) {
  const testing::ScratchDirectory scratch;
  const auto file = scratch.path() / "large.h5";
  const std::string text = complaint_of([&] {
    const SmallFiles small{10};
    write_new_file(file, Writing::piecewise, [](Id) {});
  });
  EXPECT_EQ(text,
            "cannot write " + file.string() + " (File too large). Check that there is space.");
}

TEST(Hdf5Check, KeepsItsOwnTextToItself) {
  const std::string text = complaint_of([] { check(-1); });
  EXPECT_EQ(text, "it is damaged");
  EXPECT_EQ(check(7), 7);
}

}  // namespace
}  // namespace longhaul::trace::hdf5
