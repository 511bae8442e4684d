#include "comm/blocking_call.hpp"

#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace longhaul::comm {
namespace {

using namespace std::chrono_literals;

/// The stderr and exit code of a child that runs `body`. It makes no MPI calls.
std::pair<std::string, int> in_a_child(void (*body)()) {
  int ends[2];
  if (pipe(ends) != 0) return {"no pipe", -1};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char c = 0;
  while (read(ends[0], &c, 1) == 1) text += c;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

TEST(BlockingCall, EndsAProcessThatWaitsTooLong) {
  const auto [text, code] = in_a_child([] {
    const BlockingCall guard{"the others' communicators", 1s};
    for (;;) pause();
  });
  EXPECT_EQ(code, 3);
  EXPECT_THAT(text, ::testing::HasSubstr("waited 1 s for the others' communicators"));
}

TEST(BlockingCall, LeavesOneAloneThatIsOverInTime) {
  const auto [text, code] = in_a_child([] {
    {
      const BlockingCall outer{"something", 60s};
      const BlockingCall inner{"a part of it", 1s};
    }
    if (alarm(0) != 0) _exit(4);  // nothing is left to go off
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text, "");
}

TEST(BlockingCall, OfSeveralThreadsSpeaksForTheOneWhoseLimitComesFirst) {
  const auto [text, code] = in_a_child([] {
    std::jthread{[] { const BlockingCall over{"a call that is over", 1s}; }}.join();
    std::jthread other{[] {
      const BlockingCall guard{"the first to end", 1s};
      for (;;) pause();
    }};
    const BlockingCall guard{"a longer call", 60s};
    for (;;) pause();
  });
  EXPECT_EQ(code, 3);
  EXPECT_THAT(text, ::testing::HasSubstr("waited 1 s for the first to end"));
}

}  // namespace
}  // namespace longhaul::comm
