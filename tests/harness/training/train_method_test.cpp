#include "harness/training/train_method.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using training::Rival;

Scenario scenario_with(SetExchange exchange) {
  Scenario scenario;
  scenario.parallel.stages = 1;
  scenario.parallel.replicas = 2;
  scenario.parallel.microbatches = 1;
  scenario.train.staleness = 1;
  scenario.train.compress.keep = 0.02;
  scenario.train.compress.exchange = exchange;
  return scenario;
}

TrainMethod method_of(const std::string& text, SetExchange exchange = SetExchange::ring) {
  return train_method(text, scenario_with(exchange), {});
}

std::string refusal(const std::string& text) {
  try {
    (void)method_of(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(TrainMethods, OfRivalsHaveTheirAuthorsSettings) {
  const TrainMethod dgc = method_of("dgc:keep=1%");
  ASSERT_TRUE(dgc.rival);
  EXPECT_EQ(dgc.rival->rival, Rival::dgc);
  EXPECT_DOUBLE_EQ(dgc.rival->keep, 0.01);
  EXPECT_FLOAT_EQ(dgc.rival->momentum, 0.9F);
  EXPECT_EQ(dgc.scenario.train.staleness, 0);
  EXPECT_EQ(dgc.scenario.train.compress.method, CompressMethod::none) << "resized in the plan";
  EXPECT_DOUBLE_EQ(method_of("demo").rival->keep, 0.02) << "the scenario's";
  EXPECT_FALSE(method_of("stella").rival);
  EXPECT_EQ(method_of("stella").local_steps(), 1);
}

TEST(TrainMethods, TakeABareNumberOfLocalSteps) {
  const TrainMethod diloco = method_of("diloco:20:outer=1:momentum=0:inner=sgd");
  EXPECT_EQ(diloco.local_steps(), 20);
  EXPECT_EQ(diloco.scenario.parallel.microbatches, 20);
  EXPECT_FLOAT_EQ(diloco.rival->outer_rate, 1);
  EXPECT_FLOAT_EQ(diloco.rival->momentum, 0);
  EXPECT_EQ(diloco.optimizer.rule, compress::OptimizerRule::sgd);
  EXPECT_EQ(method_of("diloco").optimizer.rule, compress::OptimizerRule::adamw);
  EXPECT_EQ(method_of("sparseloco:steps=5").local_steps(), 5);
  EXPECT_THAT(refusal("dgc:20"), HasSubstr("says nothing"));
  EXPECT_THAT(refusal("localsgd:0"), HasSubstr("whole number from 1"));
}

TEST(TrainMethods, OfRivalsGoThroughSitesWhereSumsAreDefined) {
  EXPECT_EQ(method_of("localsgd:4").scenario.train.compress.exchange, SetExchange::sites);
  EXPECT_EQ(method_of("onebit", SetExchange::sites).scenario.train.compress.exchange,
            SetExchange::direct);
  EXPECT_EQ(method_of("dgc").scenario.train.compress.exchange, SetExchange::ring);
  for (const char* name : {"dgc", "demo", "onebit", "sparseloco"})
    EXPECT_THAT(refusal(std::string{name} + ":exchange=sites"), HasSubstr("is not defined"))
        << name;
}

TEST(TrainMethods, RefuseWhatARivalDoesNotHave) {
  for (const char* name : {"localsgd:2", "diloco:2", "sparseloco:2", "onebit"}) {
    const std::string why = refusal(std::string{name} + ":staleness=1");
    EXPECT_THAT(why, HasSubstr("staleness 1")) << name;
    EXPECT_THAT(why, Not(HasSubstr("\n"))) << name;
  }
  EXPECT_EQ(refusal("dgc:staleness=1"), "taken");
  EXPECT_THAT(refusal("dgc:values=int8"), HasSubstr("no key of this method"));
  EXPECT_THAT(refusal("localsgd:2:outer=0.5"), HasSubstr("no key of this method"));
  EXPECT_THAT(refusal("stella:warmup=3"), HasSubstr("no key of this method"));
  EXPECT_THAT(refusal("demo:decay=2"), HasSubstr("from 0 to 1"));
  Scenario pipeline = scenario_with(SetExchange::ring);
  pipeline.parallel.microbatches = 4;
  EXPECT_THROW((void)train_method("diloco:2", pipeline, {}), Error);
}

}  // namespace
}  // namespace longhaul::harness
