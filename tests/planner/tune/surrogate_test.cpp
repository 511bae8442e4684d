#include "planner/tune/surrogate.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::planner {
namespace {

using ::testing::HasSubstr;

/// Smooth, with noise; the noise is not to be learnt.
std::vector<Probe> probes_of(int count, double noise) {
  Random random{5};
  std::vector<Probe> probes;
  for (int i = 0; i < count; ++i) {
    const double batch = 64 + 1900 * random.uniform(), rate = random.uniform();
    const double g = 0.1 * std::sin(batch / 900) + 0.05 * rate * rate;
    probes.push_back({batch, rate, g + noise * random.normal()});
  }
  return probes;
}

TEST(Surrogate, LearnsASmoothSurface) {
  const Surrogate surrogate{probes_of(30, 0)};
  EXPECT_NEAR(surrogate.g(1000, 0.5), 0.1 * std::sin(1000.0 / 900) + 0.05 * 0.25, 2e-3);
  EXPECT_LT(surrogate.leave_one_out_rms(), 2e-3);
  EXPECT_GT(surrogate.length_scales()[0], 100);
}

TEST(Surrogate, KnowsWhereItKnowsLittle) {
  const std::vector<Probe> probes{
      {100, 0.1, 0.1}, {150, 0.2, 0.12}, {120, 0.15, 0.11}, {130, 0.3, 0.1}, {180, 0.1, 0.13}};
  const Surrogate surrogate{probes};
  EXPECT_LT(surrogate.estimate(125, 0.16).deviation, surrogate.estimate(180, 0.95).deviation);
}

/// By taking each probe out in fact, at the same parameters: the error of a constant surface is 0.
TEST(Surrogate, LeaveOneOutErrorIsThatOfNoise) {
  const double noise = 0.01;
  const double error = Surrogate{probes_of(40, noise)}.leave_one_out_rms();
  EXPECT_GT(error, 0.5 * noise);
  EXPECT_LT(error, 2 * noise);
}

TEST(ExpectedImprovement, IsTheMeanGainWhereNothingIsUnsure) {
  EXPECT_EQ(expected_improvement({.mean = 1, .deviation = 0}, 3), 2);
  EXPECT_EQ(expected_improvement({.mean = 4, .deviation = 0}, 3), 0);
  EXPECT_NEAR(expected_improvement({.mean = 3, .deviation = 1}, 3), 0.3989423, 1e-6);
  EXPECT_NEAR(expected_improvement({.mean = 2, .deviation = 1}, 3), 1.0833155, 1e-6);
}

TEST(Probes, AreReadFromATable) {
  const ProbeTable table = read_probes(
      "model,version,batch,compression_rate,g\n# mine\nvit_b_16,v2,64.0,0.99,0.053\r\n"
      "ViT-B-16,v2,1883.284,0.5,-0.01\nvit_b_16,v2,10,0,0\n",
      "p.csv");
  ASSERT_EQ(table.probes.size(), 3U);
  EXPECT_EQ(table.probes[1].batch, 1883.284);
  EXPECT_EQ(table.probes[1].g, -0.01);
  EXPECT_TRUE(is_same_model(table.model, "vit-b-16"));
  EXPECT_FALSE(is_same_model(table.model, "vit-b-32"));
}

std::string probe_refusal(const std::string& csv) {
  try {
    static_cast<void>(read_probes(csv, "p.csv"));
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Probes, AreRefusedWithTheirLine) {
  const std::string head = "model,batch,compression_rate,g\n";
  EXPECT_THAT(probe_refusal("model,batch,g\n"),
              HasSubstr("p.csv:1: there is no column compression_rate"));
  EXPECT_THAT(probe_refusal(head + "a,0,0.5,0\n"), HasSubstr("p.csv:2: batch is \"0\""));
  EXPECT_THAT(probe_refusal(head + "a,1,1.5,0\n"), HasSubstr("compression_rate is \"1.5\""));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,nan\n"), HasSubstr("g is \"nan\""));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5\n"), HasSubstr("3 words are too few"));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,0\nb,1,0.5,0\n"), HasSubstr("p.csv:3: a probe of b"));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,0\n"), HasSubstr("1 probes say nothing"));
}

}  // namespace
}  // namespace longhaul::planner
