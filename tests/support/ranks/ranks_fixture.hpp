#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "comm/group/thread_group.hpp"
#include "engine/ranks.hpp"

namespace longhaul::testing {

/// Number of threads of this process that are the ranks (--ranks-per-process); 0: its processes
/// are.
inline int& thread_ranks() {
  static int count = 0;
  return count;
}

/// The results of tests on a rank. A test that needs more ranks than there are is skipped on every
/// rank in the same way.
class OnRanks {
public:
  /// Ranks that are processes, made once for all tests, since MPI has one world; of threads for
  /// each test.
  static engine::Ranks& ranks() {
    if (!instance())
      instance() =
          std::make_unique<engine::Ranks>(engine::WatchdogOptions{std::chrono::seconds{60}});
    return *instance();
  }
  /// Emptied before MPI, or the thread, ends.
  static std::unique_ptr<engine::Ranks>& instance() {
    thread_local std::unique_ptr<engine::Ranks> ranks;
    return ranks;
  }

protected:
  static int self() { return static_cast<int>(ranks().self()); }
  /// Did it hold on every rank? Collective.
  static bool everywhere(bool mine) { return ranks().world().minimum(mine ? 1 : 0) == 1; }
};

/// For tests that need processes as ranks, or none in particular.
class RanksTest : public ::testing::Test, public OnRanks {};

/// Plays `Body` on this rank, or on as many threads as there are to be ranks.
template <typename Body>
void play_on_ranks() {
  const auto play = [] {
    Body body;
    body.on_this_rank();
  };
  if (thread_ranks() == 0) return play();
  comm::run_thread_ranks(thread_ranks(), [&] {
    play();
    OnRanks::instance().reset();
  });
}

/// Filters of the tests below, which are all that run on threads.
inline std::vector<std::string>& tests_on_ranks() {
  static std::vector<std::string> filters;
  return filters;
}
inline bool add_test_on_ranks(const char* filter) {
  tests_on_ranks().emplace_back(filter);
  return true;
}

#define NEEDS_RANKS(needed)                                                            \
  do {                                                                                 \
    if (ranks().count() < (needed))                                                    \
      GTEST_SKIP() << "needs " << (needed) << " ranks, there are " << ranks().count(); \
  } while (false)

/// A test that every rank plays, whatever ranks are. `Fixture` is derived from OnRanks; there is
/// one for each rank.
#define RANKS_TEST(Fixture, Name)                                                          \
  class Fixture##_##Name##_OnRank : public Fixture {                                       \
  public:                                                                                  \
    void on_this_rank();                                                                   \
  };                                                                                       \
  [[maybe_unused]] static const bool Fixture##_##Name##_is_added =                         \
      ::longhaul::testing::add_test_on_ranks(#Fixture "." #Name);                          \
  TEST(Fixture, Name) { ::longhaul::testing::play_on_ranks<Fixture##_##Name##_OnRank>(); } \
  void Fixture##_##Name##_OnRank::on_this_rank()

/// The same for each type of the typed suite `Suite`, by a fixture `Suite``OnRank<Kind>`.
#define RANKS_TYPED_TEST(Suite, Name)                                              \
  template <typename Kind>                                                         \
  class Suite##_##Name##_OnRank : public Suite##OnRank<Kind> {                     \
  public:                                                                          \
    void on_this_rank();                                                           \
  };                                                                               \
  [[maybe_unused]] static const bool Suite##_##Name##_is_added =                   \
      ::longhaul::testing::add_test_on_ranks(#Suite "/*." #Name);                  \
  TYPED_TEST(Suite, Name) {                                                        \
    if (const std::string why = Suite##OnRank<TypeParam>::why_not(); !why.empty()) \
      GTEST_SKIP() << why;                                                         \
    ::longhaul::testing::play_on_ranks<Suite##_##Name##_OnRank<TypeParam>>();      \
  }                                                                                \
  template <typename Kind>                                                         \
  void Suite##_##Name##_OnRank<Kind>::on_this_rank()

}  // namespace longhaul::testing
