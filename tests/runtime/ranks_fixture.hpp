#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "runtime/ranks.hpp"

namespace longhaul::testing {

/// Tests that need the ranks: made once for all of them, since MPI has one world. A test that needs
/// more ranks than there are is skipped on every rank alike.
class RanksTest : public ::testing::Test {
public:
  static Ranks& ranks() {
    if (!instance())
      instance() = std::make_unique<Ranks>(WatchdogOptions{std::chrono::seconds{60}});
    return *instance();
  }
  /// Emptied by main, before MPI ends.
  static std::unique_ptr<Ranks>& instance() {
    static std::unique_ptr<Ranks> ranks;
    return ranks;
  }

protected:
  static int self() { return static_cast<int>(ranks().self()); }
  /// Did it hold on every rank? Collective.
  static bool everywhere(bool mine) { return ranks().world().minimum(mine ? 1 : 0) == 1; }
};

#define NEEDS_RANKS(needed)                                                            \
  do {                                                                                 \
    if (ranks().count() < (needed))                                                    \
      GTEST_SKIP() << "needs " << (needed) << " ranks, there are " << ranks().count(); \
  } while (false)

}  // namespace longhaul::testing
