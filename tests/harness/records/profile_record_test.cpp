// Records and cost files that bench_profile makes of its measurements.
#include "harness/records/profile_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/model_costs.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// 4 chunks of 10 layers where there are 2 a stage.
constexpr const char* kModel =
    "[model]\nlayers = 41\nhidden = 32\nintermediate = 64\nheads = 4\nkv_heads = 2\n"
    "sequence_length = 16\nmicrobatch_size = 2\nvocabulary = 64\n"
    "[parallel]\nstages = 2\nmicrobatches = 4\n";

Scenario scenario(const std::vector<std::string>& set = {}) {
  return scenario::parse_scenario(kModel, "s.toml", set);
}

std::vector<double> sample(double ns) { return {ns - 1, ns - 0.5, ns, ns, ns + 1, ns + 4}; }

DeviceProfile measured(const std::string& name, std::vector<nn::LayerRange> chunks,
                       std::vector<DeviceId> devices, double ns) {
  DeviceProfile profile{name, std::move(chunks), std::move(devices)};
  profile.samples = {sample(ns), sample(3 * ns), sample(2 * ns), sample(1.5 * ns), sample(ns + 7)};
  profile.memory = {1000_B, 3000_B, 500_B, 400_B, 64_B, 700_B, 0_B};
  return profile;
}

/// As if one operator did a layer's FLOPs.
OperatorTimes operators_of(const char* block, double flops) {
  return {"layer",
          block,
          {"gemm", "m=1 n=2 k=3 nn", NumberType::f32, flops / 2, 8, {}},
          2,
          sample(1000)};
}

ModelProfile synthetic_profile() {
  const Model model = *scenario().model;
  const double linear = scenario::linear_flops(model);
  const double attention = scenario::attention_flops(model);
  ModelProfile profile;
  profile.shape.batch = 2;
  profile.shape.sequence = 16;
  profile.shape.hidden = 32;
  profile.shape.intermediate = 64;
  profile.shape.heads = 4;
  profile.shape.kv_heads = 2;
  profile.shape.vocabulary = 64;
  profile.shape.layers = 41;
  profile.devices = {measured("stage 0", {{0, 21}}, {DeviceId{0}}, 1'000'000),
                     measured("stage 1", {{21, 20}}, {DeviceId{1}}, 1'100'000)};
  profile.parts = {measured("layer", {{1, 1}}, {}, 50'000)};
  profile.message = sample(1500);
  profile.operators = {operators_of("F", linear + attention),
                       operators_of("D", linear + 2 * attention), operators_of("W", linear)};
  return profile;
}

std::string costs_of(const ModelProfile& profile) {
  return costs_text(profile, scenario(),
                    {"cpu: a \"fast\" one", "1f1b", 1, 2, "2026-01-01", "a\\b \"c\"", "c0ffee"});
}

TEST(Profile, IsReadByTheScenarioThatItWasMeasuredOf) {
  const std::string costs = costs_of(synthetic_profile());
  const Scenario read = scenario::parse_scenario(
      std::string{kModel} + "[costs]\nfile = \"it\"\n" + "[profiles]\nit = '''\n" + costs + "'''\n",
      "s.toml");
  EXPECT_THAT(read.costs.forward, ElementsAre(1ms, 1'100us));
  EXPECT_THAT(read.costs.backward, ElementsAre(3ms, 3'300us));
  EXPECT_THAT(read.costs.dgrad, ElementsAre(2ms, 2'200us));
  EXPECT_THAT(read.costs.wgrad, ElementsAre(1'500us, 1'650us));
  EXPECT_THAT(read.costs.recompute, ElementsAre(1'000'007ns, 1'100'007ns));
  EXPECT_THAT(read.costs.activation, ElementsAre(500_B, 500_B));
  EXPECT_THAT(read.costs.weights, ElementsAre(1000_B, 1000_B));
  EXPECT_THAT(read.costs.message, ElementsAre(4_KiB, 4_KiB));  // 2 * 16 * 32 numbers of 4 bytes
}

TEST(Profile, HoldsAsManyFlopsAsPredictionsTake) {
  ModelProfile profile = synthetic_profile();
  EXPECT_THAT(profile_problems(profile, scenario(), costs_of(profile)), IsEmpty());
  profile.operators[1].calls = 3;
  EXPECT_THAT(profile_problems(profile, scenario(), costs_of(profile)),
              ElementsAre(HasSubstr("D of a layer is ")));
}

TEST(Profile, NoticesWhatIsWrong) {
  ModelProfile profile = synthetic_profile();
  profile.devices[1].memory.left_over = 8_B;
  profile.parts[0].loss = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(profile_problems(profile, scenario(), costs_of(profile)),
              ElementsAre(HasSubstr("stage 1: 8 B are left behind W"),
                          HasSubstr("layer: the loss is no number")));
  const std::string costs = costs_of(synthetic_profile());
  ModelProfile slower = synthetic_profile();
  slower.devices[0].samples.forward = sample(2'000'000);
  EXPECT_THAT(profile_problems(slower, scenario(), costs),
              ElementsAre(HasSubstr("stage 0 reads as F 1 ms")));
}

TEST(Profile, ListsOperatorsWithTheirIntervals) {
  const std::string csv = operators_csv(synthetic_profile().operators);
  EXPECT_THAT(csv, HasSubstr("part,block,operator,shape,type,calls,n,median_ns,low_ns,high_ns,"
                             "min_ns,flops,bytes\nlayer,F,gemm,m=1 n=2 k=3 nn,f32,2,6,1000,999,"
                             "1004,999,"));
}

TEST(Profile, MeasuresDevicesThatAreAlikeOnce) {
  const std::vector<std::string> set{"parallel.stages=4", "model.layers=41"};
  const Scenario four = scenario(set);
  const auto devices = profiled_devices(schedule::generate("1f1b", four), four);
  ASSERT_EQ(devices.size(), 3U);  // embedding and 10, twice 10, 9 and the head
  EXPECT_EQ(devices[1].name, "stages 1-2");
  EXPECT_THAT(devices[1].devices, ElementsAre(DeviceId{1}, DeviceId{2}));
  const auto wave = profiled_devices(schedule::generate("zbv", four), four);
  ASSERT_EQ(wave[0].chunks.size(), 2U);
  EXPECT_EQ(wave[0].chunks[0].first, 0);
  EXPECT_EQ(wave[0].chunks[1].first + wave[0].chunks[1].count, 41);
  const Scenario odd = scenario({"model.heads=3"});
  EXPECT_THROW((void)profiled_devices(schedule::generate("1f1b", odd), odd), Error);
}

}  // namespace
}  // namespace longhaul::harness
