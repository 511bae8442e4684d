#include "host/background.hpp"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace longhaul::host {
namespace {

TEST(Background, StepsBackBehindTheRankAndLeavesSignalsToIt) {
  const int before = getpriority(PRIO_PROCESS, 0);
  int priority = 0;
  bool is_blocked = false;
  {
    const std::jthread thread = run_in_background([&] {
      priority = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      is_blocked = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGALRM) == 1;
    });
  }
  EXPECT_EQ(priority, 19);
  EXPECT_TRUE(is_blocked);
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before) << "the rank itself stays as it was";
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

}  // namespace
}  // namespace longhaul::host
