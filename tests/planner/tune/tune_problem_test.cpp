#include "planner/tune/tune_problem.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::planner {
namespace {

using ::testing::HasSubstr;

Scenario two_replicas(const std::vector<std::string>& set = {}) {
  return scenario::parse_scenario(
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\ngradient_sync = \"compressed\"\n"
      "[train]\npreset = \"vit-b-16\"\nlambda = 3\n"
      "[[datacenter]]\nname = \"east\"\nreplicas = [0]\ngpu = \"rtx4090\"\n"
      "[[datacenter]]\nname = \"west\"\nreplicas = [1]\ngpu = \"rtx2080ti\"\n"
      "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\nbandwidth = \"1Gbps\"\n",
      "s.toml", set);
}

/// A table of probes in a file that goes with the test.
class ProbesFile : public ::testing::Test {
protected:
  std::vector<std::string> with(const std::string& model, double scale) {
    std::ofstream{path_} << "model,version,batch,compression_rate,g\n"
                         << model << ",v2,64,0.9,-0.02\n"
                         << model << ",v2,512,0.5,0.05\n"
                         << model << ",v2,2048,0.1,0.1\n";
    return {"train.adapt.probes=" + path_.string(), fmt::format("train.adapt.scale={}", scale)};
  }
  testing::ScratchDirectory scratch_;
  std::filesystem::path path_ = scratch_.path() / "probes.csv";
};

TEST(TuneProblem, IsOfTheGpusOfReplicas) {
  const TuneProblem problem = tune_problem_of(two_replicas());
  EXPECT_EQ(problem.gpus, (std::vector<GpuSpeed>{{28, 300}, {20, 99}}));
  EXPECT_EQ(problem.model_bytes, 352e6);
  EXPECT_EQ(problem.lambda, 3);
  EXPECT_EQ(problem.most_samples, std::nullopt);
  EXPECT_EQ(tune_problem_of(two_replicas({"train.adapt.most_batch=112"})).most_samples, 112);
}

TEST(SurrogateFor, NoProbesTakesAllForEqual) {
  const Surrogate surrogate = surrogate_for(two_replicas());
  EXPECT_EQ(surrogate.least_batch(), 2);
  EXPECT_EQ(surrogate.largest_batch(), 1024);
  for (const double batch : {2.0, 137.0, 1024.0})
    for (const double rate : {0.0, 0.97, 0.999}) EXPECT_NEAR(surrogate.g(batch, rate), 0, 1e-12);
}

TEST_F(ProbesFile, IsScaled) {
  const double once = surrogate_for(two_replicas(with("vit_b_16", 1))).g(512, 0.5);
  const double ten = surrogate_for(two_replicas(with("ViT-B-16", 10))).g(512, 0.5);
  EXPECT_NEAR(ten, 10 * once, 1e-3);
}

TEST_F(ProbesFile, IsRefusedInOneLine) {
  const auto said = [](const std::vector<std::string>& set) {
    try {
      (void)surrogate_for(two_replicas(set));
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_THAT(said(with("swin_b", 1)), HasSubstr("probes of swin_b, and"));
  EXPECT_THAT(said(with("vit_b_16", 50)), HasSubstr("no loss is reached in no time"));
  EXPECT_EQ(said(with("vit_b_16", 49)), "accepted");
  EXPECT_THAT(said({"train.adapt.probes=/nowhere/p.csv"}), HasSubstr("/nowhere/p.csv"));
}

}  // namespace
}  // namespace longhaul::planner
