// [[operator]] and what stands beside it; costs.operators is in operators_table_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kParallel = "[parallel]\nstages = 2\nmicrobatches = 4\n";

std::string operator_text(const std::string& name, const std::string& times,
                          const std::string& kind = "matmul") {
  return "[[operator]]\nname = \"" + name + "\"\nkind = \"" + kind + "\"\n" + times;
}

std::string three_operators() {
  return kParallel +
         operator_text("first",
                       "weights = \"8MiB\"\nforward = \"10ms\"\ndgrad = \"11ms\"\n"
                       "wgrad = \"12ms\"\n") +
         operator_text("second", "forward = \"1ms\"\ndgrad = \"2ms\"\nrecompute = \"3ms\"\n",
                       "normalization") +
         operator_text("third", "forward = \"5ms\"\ndgrad = \"6ms\"\nwgrad = \"7ms\"\n");
}

TEST(ReadOperators, AListIsTheModelOfAllStages) {
  const Scenario scenario = parse_scenario(three_operators(), "s.toml");
  ASSERT_TRUE(scenario.operators.known());
  EXPECT_TRUE(scenario.operators.are_costs);
  EXPECT_EQ(scenario.operators.all->at(1).kind, OperatorKind::normalization);
  EXPECT_EQ(scenario.operators.all->at(1).wgrad, 0ns);
  EXPECT_THAT(scenario.costs.forward, ElementsAre(11ms, 5ms));
  EXPECT_THAT(scenario.costs.backward, ElementsAre(25ms, 13ms));
  EXPECT_THAT(scenario.costs.dgrad, ElementsAre(13ms, 6ms));
  EXPECT_THAT(scenario.costs.recompute, ElementsAre(13ms, 5ms));
  EXPECT_THAT(scenario.costs.weights, ElementsAre(8_MiB, 0_B));
}

TEST(ReadOperators, SizesAndTheOptimizerStandBesideThem) {
  const Scenario scenario = parse_scenario(
      three_operators() +
          "[costs]\nmessage = \"3MiB\"\nactivation = \"7MiB\"\noptimizer = [\"4ms\", \"0ms\"]\n",
      "s.toml");
  EXPECT_THAT(scenario.costs.message, ElementsAre(3_MiB, 3_MiB));
  EXPECT_THAT(scenario.costs.activation, ElementsAre(7_MiB, 7_MiB));
  EXPECT_THAT(scenario.costs.optimizer, ElementsAre(4ms, 0ms));
  EXPECT_EQ(scenario.as_played().operators.all->front().forward, 10ms);
  Scenario slow = scenario;
  slow.run.time_scale = 3;
  EXPECT_EQ(slow.as_played().operators.all->front().forward, 30ms);
  EXPECT_THAT(slow.as_played().costs.optimizer, ElementsAre(12ms, 0ms));
}

TEST(ReadOperators, AModelHasThoseOfItsLayers) {
  const Scenario scenario =
      parse_scenario(kParallel + "[model]\npreset = \"llama3-8b\"\n", "s.toml");
  ASSERT_TRUE(scenario.operators.known());
  EXPECT_FALSE(scenario.operators.are_costs);
  EXPECT_EQ(scenario.operators.all->size(), 1U + 32 * 8 + 3);
  EXPECT_FALSE(parse_scenario(with_line(0, ""), "s.toml").operators.known());
}

TEST(ReadOperators, RefusesAnOperatorWithoutTimes) {
  EXPECT_EQ(complaint(kParallel + operator_text("qkv", "")),
            "s.toml:4:1: operator.forward is missing (nothing else tells how long \"qkv\" takes). "
            "Add it.");
  EXPECT_THAT(complaint(kParallel + operator_text("qkv", "forward = \"1ms\"\n")),
              HasSubstr("operator.dgrad is missing"));
  EXPECT_THAT(complaint(kParallel + operator_text("qkv",
                                                  "weights = \"1MiB\"\nforward = \"1ms\"\n"
                                                  "dgrad = \"1ms\"\n")),
              HasSubstr("operator.wgrad is missing"));
}

TEST(ReadOperators, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(complaint(kParallel + operator_text("qkv", "forward = \"1ms\"\n", "matmull")),
              HasSubstr("Did you mean \"matmul\"?"));
  EXPECT_THAT(complaint(kParallel + operator_text("qkv", "forwards = \"1ms\"\n")),
              HasSubstr("Did you mean \"forward\"?"));
  EXPECT_THAT(complaint(kParallel + operator_text("a,b", "forward = \"1ms\"\n")),
              HasSubstr("operator.name = \"a,b\" is no name"));
  EXPECT_THAT(complaint("operator = 3\n" + kParallel),
              HasSubstr("operator = 3 is no list of tables"));
}

TEST(ReadOperators, RefusesFewerThanStages) {
  EXPECT_EQ(complaint(kParallel + operator_text("qkv", "forward = \"1ms\"\ndgrad = \"1ms\"\n")),
            "s.toml:4:1: 1 [[operator]] for parallel.stages = 2 (a stage would be empty). Give one "
            "for each stage at least.");
}

TEST(ReadOperators, RefusesWhatSaysOtherwiseWhatBlocksTake) {
  EXPECT_THAT(complaint(three_operators() + "[model]\npreset = \"m8\"\n"),
              HasSubstr("[[operator]] and [model] are both given"));
  for (const char* key : {"forward = \"1ms\"", "backward = \"1ms\"", "dgrad = \"1ms\"",
                          "wgrad = \"1ms\"", "recompute = \"1ms\"", "weights = \"1MiB\""})
    EXPECT_THAT(complaint(three_operators() + "[costs]\n" + key + "\n"),
                HasSubstr("[[operator]] and [costs] with "))
        << key;
}

}  // namespace
}  // namespace longhaul::scenario
