#include "base/result.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace longhaul {
namespace {

Result<std::unique_ptr<int>> half(int of) {
  if (of % 2 != 0) return refused("{} has no half", of);
  return std::make_unique<int>(of / 2);
}

TEST(Result, HoldsAValueOrTheReasonWhyThereIsNone) {
  const auto three = half(6);
  ASSERT_TRUE(three);
  EXPECT_EQ(**three, 3);
  const auto none = half(7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.refusal().reason, "7 has no half");
}

TEST(Result, GivesItsValueAwayOrThrowsWithItsExitCode) {
  EXPECT_EQ(*half(6).or_throw(), 3);
  const Result<int> stuck = Refusal{"it is stuck", ExitCode::run_failed};
  try {
    static_cast<void>(Result<int>{stuck}.or_throw());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "it is stuck");
    EXPECT_EQ(error.code(), ExitCode::run_failed);
  }
}

TEST(Result, ARefusalAloneIsAnErrorWhereNoneMayBe) {
  EXPECT_NO_THROW(require_none(std::nullopt));
  EXPECT_THROW(require_none(refused("no")), Error);
}

}  // namespace
}  // namespace longhaul
