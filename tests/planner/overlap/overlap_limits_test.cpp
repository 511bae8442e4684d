#include "planner/overlap/overlap_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/overlap/overlap_search.hpp"
#include "planner/overlap/overlap_space.hpp"
#include "support/overlaps.hpp"

namespace longhaul::planner {
namespace {

using testing::centauri_toy;

FoundOverlap centauri_of(std::string_view allow, std::string_view rules = {},
                         const std::vector<std::string>& set = {}) {
  const Scenario scenario = centauri_toy(set);
  return searched_overlap("centauri", schedule::generate("gpipe", scenario), scenario,
                          Arrangement::decoupled, parse_overlap_limits(allow, rules))
      .or_throw();
}

// Known of the toy: 13 ms by the order of the layer tier alone, 12.25 with four pieces.
TEST(OverlapLimits, LeaveIdeasOut) {
  EXPECT_EQ(centauri_of("operation").makespan, Duration{14'000'000});
  EXPECT_EQ(centauri_of("layer").makespan, Duration{13'000'000});
  EXPECT_EQ(centauri_of("workload,operation,layer").makespan, Duration{12'250'000});
  EXPECT_EQ(centauri_of("").makespan, Duration{12'250'000});
  EXPECT_TRUE(centauri_of("layer").baselines.empty());
  EXPECT_FALSE(centauri_of("").baselines.empty());
}

TEST(OverlapLimits, LeaveCommunicationOfATierWhole) {
  const Scenario scenario = centauri_toy();
  const Schedule schedule = schedule::generate("gpipe", scenario);
  const auto most_options = [&](std::string_view allow) {
    const OverlapSpace space{schedule, scenario, Arrangement::decoupled, OverlapScope::as_given,
                             parse_overlap_limits(allow, "")};
    std::size_t most = 0;
    for (const auto& options : space.options(0)) {
      EXPECT_THAT(options, ::testing::Contains(collective::Partition{}));
      most = std::max(most, options.size());
    }
    return most;
  };
  EXPECT_GT(most_options("workload,operation,layer,model"), 1U);
  EXPECT_EQ(most_options("workload"), 1U);
}

// Equation 1 puts the wgrads first here, which is right.
TEST(OverlapLimits, DecideATierByItsRule) {
  EXPECT_EQ(centauri_of("layer", "layer").makespan, Duration{13'000'000});
  EXPECT_FALSE(centauri_of("", "layer").is_proof);
}

TEST(OverlapLimits, NameTheNearest) {
  const auto said = [](std::string_view allow, std::string_view rules) {
    try {
      (void)parse_overlap_limits(allow, rules);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(said("layr", ""), ::testing::HasSubstr("Did you mean \"layer\"?"));
  EXPECT_THAT(said("", "group"), ::testing::HasSubstr("--rules: there is no \"group\""));
}

// With [overlap] slowdown what hides has a price, which the search pays or not: never more than
// without any.
TEST(OverlapLimits, KnowThePriceOfOverlap) {
  Duration before{};
  for (const char* slowdown : {"1", "1.5", "2", "4"}) {
    const FoundOverlap found = centauri_of("", "", {fmt::format("overlap.slowdown={}", slowdown)});
    EXPECT_GE(found.makespan, before) << slowdown;
    EXPECT_LE(found.makespan, Duration{17'000'000}) << slowdown;
    before = found.makespan;
  }
}

}  // namespace
}  // namespace longhaul::planner
