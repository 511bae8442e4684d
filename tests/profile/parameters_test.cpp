#include "profile/parameters.hpp"

#include <gtest/gtest.h>

namespace longhaul::profile {
namespace {

TEST(Parameters, AreAtMostTwelveEachWithAMeaningAndARange) {
  EXPECT_LE(kCountOf<Parameter>, 12);
  for (const Parameter parameter : every<Parameter>()) {
    const ParameterFacts& facts = facts_of(parameter);
    EXPECT_LT(facts.low, facts.value) << to_string(parameter);
    EXPECT_LT(facts.value, facts.high) << to_string(parameter);
    EXPECT_GT(facts.spread, 0) << to_string(parameter);
    EXPECT_STRNE(facts.unit, "");
    EXPECT_STRNE(facts.meaning, "");
    EXPECT_EQ(ParameterValues{}[parameter], facts.value);
  }
}

}  // namespace
}  // namespace longhaul::profile
