// A rank that is told to drain and gets on, but does not come to its end.
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "comm/group/thread_group.hpp"
#include "engine/ranks.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

/// One rank, of this process. Ends the process, or after 5 s with 0.
void drain_for_ever(bool says_drained, int signals) {
  comm::run_thread_ranks(1, [&] {
    engine::Ranks ranks{{.deadline = 20s, .drains = true}};
    engine::Watchdog& watchdog = ranks.watchdog();
    watchdog.drain_on_signal(300ms);
    for (int i = 0; i < signals; ++i) raise(SIGUSR1);
    if (!watchdog.is_told_to_drain()) std::_Exit(1);
    if (says_drained) watchdog.drained();
    for (const TimePoint until = now() + 2s; now() < until;) {
      watchdog.progress(now());
      watchdog.check(now(), kNever);
      std::this_thread::sleep_for(10ms);
    }
    std::_Exit(0);
  });
}

TEST(DrainLimitDeathTest, EndsARunThatDoesNotHeed) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(drain_for_ever(false, 1), ::testing::ExitedWithCode(143),
              "rank 0 was told to end .signal 15, SIGTERM., and what runs has not ended within");
  EXPECT_EXIT(drain_for_ever(true, 1), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(drain_for_ever(true, 2), ::testing::ExitedWithCode(143), "SIGTERM.. What");
}

}  // namespace
}  // namespace longhaul::testing
