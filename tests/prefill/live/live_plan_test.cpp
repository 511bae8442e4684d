#include "prefill/live/live_plan.hpp"

#include <gtest/gtest.h>

namespace longhaul::prefill {
namespace {

TEST(LiveAnswer, IsWhatItsWordsSay) {
  for (const bool withdrawn : {false, true}) {
    const LiveAnswer answer{.request = 2'000'000'000,
                            .tokens = 2'000'000'000,
                            .pipeline = 65'000,
                            .start = Duration{(std::int64_t{1} << 46) - 1},
                            .is_withdrawn = withdrawn};
    EXPECT_EQ(LiveAnswer::of(answer.words()), answer);
  }
}

}  // namespace
}  // namespace longhaul::prefill
