#include "harness/training/train_method.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
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

TEST(TrainMethods, SendActivationsAsTheyAreTold) {
  Scenario scenario = scenario_with(SetExchange::ring);
  Model model;
  model.hidden = model.sequence_length = 64;
  model.microbatch_size = 2;
  scenario.model = model;
  scenario.parallel.stages = 2;
  scenario.parallel.gradient_sync = GradientSync::compressed;
  scenario.costs.message.assign(2, 1_MiB);
  const TrainMethod method = train_method("int8:activations=int8", scenario, {});
  EXPECT_EQ(method.scenario.train.activations->format, ActivationFormat::int8);
  EXPECT_EQ(method.scenario.costs.message[1].count(), 64 * 64 * 2 + 4 * 64);  // a scale of 128
  EXPECT_FALSE(train_method("none", scenario, {}).scenario.train.activations);
  const TrainMethod largest = train_method(
      "stella:activations=topk:activations_keep=25%:activations_feedback=none", scenario, {});
  EXPECT_EQ(largest.scenario.train.activations,
            (ActivationCompression{ActivationFormat::topk, 0.25, ActivationFeedback::none}));
  EXPECT_EQ(largest.scenario.costs.message[1].count(), 12 + 3 * 64 * 64 * 2 / 4);
  EXPECT_THAT(refusal("none:activations_keep=25%"), HasSubstr("activations=topk before it"));
  EXPECT_THROW((void)train_method("none:activations=topk:activations_keep=2", scenario, {}), Error);
  EXPECT_THROW((void)train_method("none:activations=int8:activations_keep=20%", scenario, {}),
               Error);
  EXPECT_THAT(refusal("none:activations=int8"), HasSubstr("activations = int8"));
  EXPECT_THAT(refusal("none:activations=int4"), HasSubstr("int4"));
  scenario.train.local_steps = 4;
  EXPECT_THROW((void)train_method("none", scenario, {}), Error);
}

/// A replica at half the speed takes half the samples, in the same time.
TEST(TrainMethods, WithHeteroDivideBatchesByThroughput) {
  const Scenario scenario = scenario::parse_scenario(R"([costs]
forward = "10ms"
backward = "20ms"
weights = "4MB"
[parallel]
stages = 1
replicas = 2
microbatches = 1
gradient_sync = "compressed"
[train]
batch = 12
staleness = 1
[[datacenter]]
name = "west"
replicas = "0"
[[datacenter]]
name = "east"
replicas = "1"
speed = 0.5
[[link]]
between = ["west", "east"]
latency = "1ms"
bandwidth = "1Gbps"
)",
                                                     "s.toml");
  const TrainMethod none = train_method("none", scenario, {});
  EXPECT_THAT(none.scenario.train.batch, ElementsAre(12, 12));
  EXPECT_EQ(none.scenario.costs_of(ReplicaId{1}).forward[0], 20ms);
  for (const char* const name : {"none+hetero", "stella:keep=5%+hetero", "diloco:4+hetero"}) {
    const TrainMethod hetero = train_method(name, scenario, {});
    EXPECT_EQ(hetero.name, name);
    EXPECT_THAT(hetero.scenario.train.batch, ElementsAre(16, 8)) << name;
    for (const ReplicaId replica : scenario.replica_ids())
      EXPECT_NEAR(static_cast<double>(hetero.scenario.costs_of(replica).forward[0].count()),
                  40e6 / 3, 1);
  }
  EXPECT_EQ(train_method("none+hetero", scenario, {}).scenario.train.staleness, 0);
  EXPECT_THROW((void)train_method("none+heteroes", scenario, {}), Error);
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

TEST(TrainMethods, TakeSeveralNumbers) {
  const TrainMethod streaming = method_of("streaming-diloco:8,2,3");
  EXPECT_EQ(streaming.local_steps(), 8);
  EXPECT_EQ(streaming.rival->fragments, 2);
  EXPECT_EQ(streaming.rival->overlap, 3);
  EXPECT_EQ(streaming.rival->bits, training::kFourBits);
  EXPECT_FLOAT_EQ(streaming.rival->mixing, 0.5F);
  EXPECT_FLOAT_EQ(streaming.rival->momentum, 0.9F);
  EXPECT_EQ(streaming.optimizer.rule, compress::OptimizerRule::adamw);
  const auto all = train_methods("none,streaming-diloco:8,2,3:bits=32,powersgd:2",
                                 scenario_with(SetExchange::ring), {});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].name, "streaming-diloco:8,2,3:bits=32");
  EXPECT_EQ(all[1].rival->bits, training::kAllBits);
  EXPECT_EQ(all[2].rival->rank, 2);
  EXPECT_EQ(all[2].scenario.train.compress.exchange, SetExchange::sites);
  EXPECT_THAT(refusal("streaming-diloco:8,2,3,4"), HasSubstr("has 4 numbers"));
  EXPECT_THAT(refusal("streaming-diloco:8,3,0"), HasSubstr("8 steps and 3 fragments"));
  EXPECT_THAT(refusal("streaming-diloco:8,2,4"), HasSubstr("Give fewer than 4"));
  EXPECT_THAT(refusal("streaming-diloco:8,2:bits=5"), HasSubstr("Write 4 or 32"));
  EXPECT_FALSE(streaming.rival->feedback) << "its authors have none";
  EXPECT_TRUE(method_of("streaming-diloco:8,2:feedback=1").rival->feedback);
  EXPECT_THAT(refusal("streaming-diloco:8,2:bits=32:feedback=1"), HasSubstr("nothing is rounded"));
  EXPECT_THAT(refusal("streaming-diloco:8,2:feedback=2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("diloco:8:feedback=1"), HasSubstr("no key of this method"));
  EXPECT_THAT(refusal("streaming-diloco:8,2:mixing=2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("powersgd"), HasSubstr("powersgd:2"));
  EXPECT_THAT(refusal("powersgd:0"), HasSubstr("whole number from 1"));
  Scenario with_model = scenario_with(SetExchange::ring);
  Model model;
  model.layers = 3;
  model.hidden = model.vocabulary = 16;
  model.intermediate = 8;
  model.heads = model.kv_heads = 2;
  model.sequence_length = model.microbatch_size = 2;
  with_model.model = model;
  EXPECT_THROW((void)train_method("powersgd:9", with_model, {}), Error) << "down: 16 x 8";
  EXPECT_NO_THROW((void)train_method("powersgd:8", with_model, {}));
}

TEST(TrainMethods, OfRivalsGoThroughSitesWhereSumsAreDefined) {
  EXPECT_EQ(method_of("localsgd:4").scenario.train.compress.exchange, SetExchange::sites);
  EXPECT_EQ(method_of("onebit", SetExchange::sites).scenario.train.compress.exchange,
            SetExchange::direct);
  EXPECT_EQ(method_of("dgc").scenario.train.compress.exchange, SetExchange::ring);
  for (const char* name : {"dgc", "demo", "onebit", "sparseloco", "streaming-diloco"})
    EXPECT_THAT(refusal(std::string{name} + ":exchange=sites"), HasSubstr("is not defined"))
        << name;
}

TEST(TrainMethods, RefuseWhatARivalDoesNotHave) {
  for (const char* name :
       {"localsgd:2", "diloco:2", "sparseloco:2", "onebit", "powersgd:2", "streaming-diloco:2"}) {
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

/// Theirs compress on the device: times of the host would make them slower than they are.
TEST(TrainMethods, OfOtherAuthorsHaveNoTimesOfTheHost) {
  Scenario scenario = scenario_with(SetExchange::ring);
  scenario.train.costs.compress = scenario.train.costs.copy_out = {100ms};
  for (const char* name :
       {"none", "byteps", "fp16", "int8", "bytepscompress", "espresso", "dgc", "demo", "onebit",
        "powersgd:2", "localsgd:2", "diloco:2", "streaming-diloco:2", "sparseloco:2"}) {
    const TrainMethod method = train_method(name, scenario, {});
    EXPECT_EQ(method.scenario.train.costs, PartCosts{}) << name;
    EXPECT_FALSE(method.has_host_tasks) << name;
  }
  for (const char* name : {"block", "threshold", "topk", "randomk", "stella"}) {
    const TrainMethod method = train_method(name, scenario, {});
    EXPECT_EQ(method.scenario.train.costs, scenario.train.costs) << name;
    EXPECT_TRUE(method.has_host_tasks) << name;
  }
}

/// Single numbers of each replica, whatever StellaTrain's exchange is in the scenario.
TEST(TrainMethods, OfBytePsCompressAreItsAuthors) {
  const TrainMethod method = method_of("bytepscompress:keep=10%");
  const GradientCompression& compress = method.scenario.train.compress;
  EXPECT_EQ(compress.method, CompressMethod::topk);
  EXPECT_EQ(compress.share, KeptShare::each);
  EXPECT_EQ(compress.exchange, SetExchange::sites);
  EXPECT_DOUBLE_EQ(compress.keep, 0.1);
  EXPECT_EQ(method.scenario.train.serve, Serve::deadline);
  EXPECT_EQ(method.scenario.train.staleness, 0);
  const TrainMethod espresso = method_of("espresso:keep=10%");
  EXPECT_EQ(espresso.scenario.train.compress, compress) << "the same of each tensor, or dense";
  EXPECT_EQ(espresso.scenario.train.serve, Serve::deadline);
  EXPECT_TRUE(espresso.chooses_for_parts);
  EXPECT_THAT(refusal("espresso:share=split"), HasSubstr("would differ in size"));
  EXPECT_EQ(refusal("espresso:share=split:exchange=direct"), "taken");
  const TrainMethod other = method_of("bytepscompress:share=split:exchange=ring");
  EXPECT_EQ(other.scenario.train.compress.share, KeptShare::split);
  EXPECT_EQ(other.scenario.train.compress.exchange, SetExchange::ring);
}

}  // namespace
}  // namespace longhaul::harness
