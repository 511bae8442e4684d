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

/// Trials of the method alone, and the probes that its controller goes by.
TEST(TrainRun, CountsWhatWasRunToChoose) {
  TrainRun run;
  run.trials = {{"none", 0.1, 2, Duration{5}},
                {"stella", 0.1, 2, Duration{3}},
                {"stella", 0.2, 2, Duration{4}}};
  run.probes = {{"stella", Duration{100}}, {"topk", std::nullopt}};
  EXPECT_EQ(run.search_cost("none"), Duration{5});
  EXPECT_EQ(run.search_cost("stella"), Duration{107});
  EXPECT_EQ(run.search_cost("topk"), std::nullopt) << "the paper's probes do not say";
}

TrainSettings settings_with(const std::string& rates) {
  TrainOptions options;
  options.scenario = "s.toml";
  options.methods = "none,topk:keep=1%,topk:keep=5%,dgc:keep=1%+hetero,streaming-diloco:4,2,1";
  options.learning_rates = rates;
  return settings_of(options);
}

std::string refusal_of_rates(const std::string& rates) {
  try {
    (void)settings_with(rates);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

/// Steps of another size are no reason for a method to do badly, nor to be tried more often.
TEST(TrainRun, TriesMethodsWithRatesOfTheirOwn) {
  const TrainSettings settings = settings_with("0.003,0.01;dgc=0.1,0.3;topk:keep=5%=0.02,0.05");
  EXPECT_EQ(settings.rates_of("none"), (std::vector{0.003, 0.01}));
  EXPECT_EQ(settings.rates_of("dgc:keep=1%+hetero"), (std::vector{0.1, 0.3}));
  EXPECT_EQ(settings.rates_of("topk:keep=5%"), (std::vector{0.02, 0.05}));
  EXPECT_EQ(settings.rates_of("topk:keep=1%"), (std::vector{0.003, 0.01}));
  EXPECT_EQ(settings_with("0.1").rates_of("dgc:keep=1%+hetero"), (std::vector{0.1}));
  EXPECT_THAT(refusal_of_rates("0.1,0.2;dgc=0.1"),
              HasSubstr("1 rates of dgc, and 2 of the others"));
  EXPECT_THAT(refusal_of_rates("0.1;demo=0.2"), HasSubstr("is of none of --methods none,"));
  EXPECT_THAT(refusal_of_rates("0.1;0.2"), HasSubstr("METHOD=X"));
  EXPECT_THAT(refusal_of_rates("0.1;dgc=0.2;dgc=0.3"), HasSubstr("dgc has two grids"));
  EXPECT_THAT(refusal_of_rates("0.1;dgc=fast"), HasSubstr("--lr-grid"));
}

}  // namespace
}  // namespace longhaul::harness
