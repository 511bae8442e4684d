// The text of the check, for people.
#include "harness/session/check_report.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/cells.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;

TEST(CheckReport, CountsInWordsAndKeepsKeysInTheRecord) {
  engine::Checks checks;
  EXPECT_EQ(harness::check_text(checks), "ok");
  checks.mixed_up = 1;
  checks.out_of_order = 2;
  checks.wrong_tensors = 1;
  EXPECT_EQ(harness::check_text(checks), "1 mixed up, 2 out of order, 1 wrong tensor");
  checks.wrong_tensors = 7;
  EXPECT_EQ(harness::check_text(checks), "1 mixed up, 2 out of order, 7 wrong tensors");
  const auto json = harness::checks_json(checks);
  EXPECT_EQ(json["out_of_order"], 2);
  EXPECT_EQ(json["wrong_tensors"], 7);
}

TEST(WrongTensors, TheWorstComesFirstAndNoNumberIsWorse) {
  const Scenario scenario = uniform_scenario(2, 2);
  const Plan plan =
      plan::lower(schedule::generate("1f1b", scenario), scenario, Arrangement::decoupled);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(harness::lines_of(plan, 3,
                                {{std::nullopt, "loss", "it", -nan, 1e-5},
                                 {1, "head.norm", "gradient", 0.25, 1e-5},
                                 {1, "head.output", "weight", nan, 1e-5}}),
              ElementsAre("iteration 3, all ranks: loss: it is not a number (1e-05 is allowed)",
                          "iteration 3, rank 1 (dc0, stage 1): head.output: weight is not a "
                          "number; head.norm: gradient differs by 0.25 (1e-05 is allowed)"));
}

}  // namespace
}  // namespace longhaul::testing
