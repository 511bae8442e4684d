#include <gtest/gtest.h>

#include "base/index.hpp"
#include "sim/simulate.hpp"
#include "support/optional_ops.hpp"

namespace longhaul::sim {
namespace {

// The block that closes the bubble starts 3 ms later than planned.
TEST(MovingDeadlines, MoveWithWhatHasHappened) {
  using testing::MovingDeadline;
  using How = MovingDeadline::Deadline;
  struct Case {
    Duration first, optional;
    How how;
    Outcome outcome;
  };
  for (const auto& [first, optional, how, outcome] :
       {Case{7ms, 5ms, How::moves, Outcome::ran}, Case{7ms, 6ms, How::moves, Outcome::skipped},
        Case{7ms, 5ms, How::stays, Outcome::skipped}, Case{7ms, 2ms, How::stays, Outcome::ran},
        Case{4ms, 2ms, How::moves, Outcome::ran}, Case{4ms, 3ms, How::moves, Outcome::skipped}}) {
    const MovingDeadline ranks{first, optional, how};
    const OpResults results = simulate_results(ranks.plan);
    const Outcome seen =
        results.outcomes.empty() ? Outcome::ran : results.outcomes[index(ranks.optional)];
    EXPECT_EQ(seen, outcome) << optional.count();
    EXPECT_EQ(results.times[index(ranks.closes)].start, first + 6ms);
    if (outcome == Outcome::ran) {
      EXPECT_EQ(results.times[index(ranks.optional)].start, 8ms);
    }
  }
}

}  // namespace
}  // namespace longhaul::sim
