#include "harness/training/train_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(const Scenario& scenario) {
  try {
    check_can_train(scenario, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(TrainRun, RefusesATimeScaleThatLayersDoNotFollow) {
  Scenario scenario;
  scenario.name = "apart";
  EXPECT_THAT(refusal(scenario), Not(HasSubstr("time_scale")));
  scenario.run.time_scale = 0.25;
  EXPECT_THAT(refusal(scenario), AllOf(HasSubstr("scenario apart has run.time_scale = 0.25"),
                                       HasSubstr("write --set run.time_scale=1")));
}

}  // namespace
}  // namespace longhaul::harness
