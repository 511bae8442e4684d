#include "base/program/working_line.hpp"

#include <array>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

namespace longhaul {
namespace {

using ::testing::EndsWith;

/// Both ends of a terminal; what the program says is read at ours.
class Terminal {
public:
  Terminal() : ours_{posix_openpt(O_RDWR | O_NOCTTY)} {
    EXPECT_EQ(grantpt(ours_), 0);
    EXPECT_EQ(unlockpt(ours_), 0);
    theirs_ = open(ptsname(ours_), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    close(theirs_);
    close(ours_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] int theirs() const { return theirs_; }
  /// Reads until `text` has been said, for a minute at most.
  bool says(const std::string& text) {
    while (said_.find(text) == std::string::npos) {
      if (!read_some(60'000)) return false;
    }
    return true;
  }
  /// All that is there.
  std::string said() {
    while (read_some(0)) continue;
    return said_;
  }

private:
  bool read_some(int wait_ms) {
    pollfd ready{ours_, POLLIN, 0};
    if (poll(&ready, 1, wait_ms) != 1) return false;
    std::array<char, 256> part{};
    const ssize_t count = read(ours_, part.data(), part.size());
    if (count > 0) said_.append(part.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  int ours_, theirs_ = -1;
  std::string said_;
};

constexpr WorkingLine::Timing kSoon{std::chrono::milliseconds{1}, std::chrono::milliseconds{1}};

TEST(WorkingLine, ShowsItsStepAndGoes) {
  Terminal terminal;
  {
    const WorkingLine line{"longhaul layers", terminal.theirs(), kSoon};
    EXPECT_TRUE(terminal.says("\rlonghaul layers: working ... 0 s\033[K"));
    WorkingLine::step("division 3");
    EXPECT_TRUE(terminal.says("\rlonghaul layers: division 3 ... 0 s\033[K"));
  }
  EXPECT_THAT(terminal.said(), EndsWith("s\033[K\r\033[K"));
}

TEST(WorkingLine, SaysNothingOfWhatIsOverSoonOrHasABar) {
  Terminal terminal;
  { const WorkingLine line{"quick", terminal.theirs()}; }
  EXPECT_EQ(terminal.said(), "");
  WorkingLine::give_way(1);
  {
    const WorkingLine line{"other", terminal.theirs(), kSoon};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    EXPECT_EQ(terminal.said(), "");
    WorkingLine::give_way(-1);
    EXPECT_TRUE(terminal.says("other: working"));
  }
}

TEST(WorkingLine, IsNotThereWithoutATerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
  {
    const WorkingLine line{"longhaul", ends[1], kSoon};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  char any = 0;
  EXPECT_EQ(read(ends[0], &any, 1), -1) << "the pipe is empty";
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace longhaul
