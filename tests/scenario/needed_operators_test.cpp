#include "scenario/needed_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// d = 64, MLP 80, 4 heads, 10 words, 3 tokens; `more` goes to [model], [parallel] follows.
Scenario scenario_of(int layers, const std::string& more = {}, const std::string& rest = {}) {
  return parse_scenario(
      fmt::format("[model]\nlayers = {}\nhidden = 64\nintermediate = 80\nheads = 4\n"
                  "vocabulary = 10\nsequence_length = 3\n{}\n"
                  "[parallel]\nstages = 2\nmicrobatches = 4\n{}",
                  layers, more, rest),
      "s.toml");
}

std::vector<std::string> lines_of(const Scenario& scenario) {
  std::vector<std::string> lines;
  for (const NeededOperator& each : needed_operators(scenario))
    lines.push_back(fmt::format("{} {} {} {} {} {}", each.part, each.block, each.operation,
                                each.shape, each.type, each.calls));
  return lines;
}

TEST(NeededOperators, DoNotGrowWithLayersOrMicrobatches) {
  const auto few = lines_of(scenario_of(3));
  EXPECT_EQ(few, lines_of(scenario_of(100)));
  EXPECT_EQ(few, lines_of(scenario_of(3, "", "replicas = 2\ngradient_sync = \"all-reduce\"\n")));
  Scenario many = scenario_of(3);
  many.parallel.microbatches = 4096;
  EXPECT_EQ(few, lines_of(many));
  EXPECT_EQ(few.size(), 35U);
}

TEST(NeededOperators, AreThoseOfALayer) {
  const auto lines = lines_of(scenario_of(5));
  EXPECT_THAT(lines, Contains("layer F rms_norm rows=3 width=64 bf16 2"));
  EXPECT_THAT(lines, Contains("layer F gemm m=3 n=192 k=64 nt bf16 1"));
  EXPECT_THAT(lines, Contains("layer F copy count=192 bf16 2"));
  EXPECT_THAT(lines, Contains("layer F gemm m=3 n=64 k=80 nt add bf16 1"));
  EXPECT_THAT(lines, Contains("layer D gemm m=3 n=80 k=64 nn bf16 1"));
  EXPECT_THAT(lines, Contains("layer W gemm m=192 n=64 k=3 tn add bf16 1"));
  EXPECT_THAT(lines, Contains("layer update adamw count=31872 f32 1"));
  EXPECT_THAT(lines, Contains("embedding F embed rows=3 width=64 bf16 1"));
  EXPECT_THAT(lines, Contains("head F cross_entropy rows=3 width=10 bf16 1"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr(" R "))));
}

TEST(NeededOperators, HaveRecomputationWithoutTheLastProduct) {
  const auto lines = lines_of(scenario_of(5, "", "[memory]\nrecompute = true\n"));
  EXPECT_THAT(lines, Contains("layer R gemm m=3 n=192 k=64 nt bf16 1"));
  EXPECT_THAT(lines, Contains("layer R copy count=192 bf16 1"));
  EXPECT_THAT(lines, Not(Contains("layer R gemm m=3 n=64 k=80 nt add bf16 1")));
}

TEST(NeededOperators, OfTensorRanksAreTheirPartsAndCollectives) {
  const auto lines = lines_of(scenario_of(5, "precision = \"fp32\"", "tensor = 2\n"));
  EXPECT_THAT(lines, Contains("layer F gemm m=3 n=96 k=64 nt f32 1"));
  EXPECT_THAT(lines, Contains("layer F all_reduce bytes=768 ranks=2 nodes=1 f32 2"));
  EXPECT_THAT(lines, Contains("layer D all_reduce bytes=768 ranks=2 nodes=1 f32 2"));
  const std::string nodes = "[[datacenter]]\nname = \"here\"\n[[node]]\ndatacenter = \"here\"\n";
  EXPECT_THAT(lines_of(scenario_of(5, "", "tensor = 4\n" + nodes + "gpus = 2\n")),
              Contains("layer F all_reduce bytes=384 ranks=4 nodes=2 bf16 2"));
  const auto gathered = lines_of(scenario_of(5, "", "tensor = 2\nsequence_parallel = true\n"));
  EXPECT_THAT(gathered, Contains("layer F all_gather bytes=384 ranks=2 nodes=1 bf16 2"));
  EXPECT_THAT(gathered, Contains("layer F reduce_scatter bytes=384 ranks=2 nodes=1 bf16 2"));
  EXPECT_THAT(gathered, Contains("layer W all_gather bytes=384 ranks=2 nodes=1 bf16 2"));
}

TEST(NeededOperators, OfGptHaveItsOwnLayers) {
  const auto lines = lines_of(scenario_of(
      5, "mlp = \"gelu\"\npositions = \"learned\"\nbiases = true\nattention = \"plain\"\n"));
  EXPECT_THAT(lines, Contains("layer F layer_norm rows=3 width=64 bf16 2"));
  EXPECT_THAT(lines, Contains("layer F gelu rows=3 width=80 bf16 1"));
  EXPECT_THAT(lines, Contains("layer F batched_gemm batch=4 m=3 n=3 k=16 nt bf16 1"));
  EXPECT_THAT(lines, Contains("layer F bias rows=3 width=192 bf16 1"));
  EXPECT_THAT(lines, Contains("embedding F positions rows=3 width=64 bf16 1"));
}

TEST(NeededOperators, SelectiveRecomputationCallsTheScoresOnceMoreInD) {
  const std::string gpt = "mlp = \"gelu\"\nattention = \"plain\"\n";
  const std::string selective = "[memory]\nrecompute = \"selective\"\n";
  const auto kept = lines_of(scenario_of(5, gpt));
  const auto again = lines_of(scenario_of(5, gpt, selective));
  EXPECT_THAT(kept, Contains("layer D batched_gemm batch=4 m=3 n=3 k=16 nt bf16 1"));
  EXPECT_THAT(again, Contains("layer D batched_gemm batch=4 m=3 n=3 k=16 nt bf16 2"));
  EXPECT_THAT(again, Contains("layer D softmax rows=12 width=3 bf16 1"));
  EXPECT_THAT(again, Contains("layer D batched_gemm batch=4 m=3 n=16 k=3 nn bf16 2"));
  EXPECT_THAT(again, Not(Contains(HasSubstr(" R "))));
  EXPECT_EQ(again.size(), kept.size() + 1);  // D has a softmax now
  EXPECT_EQ(lines_of(scenario_of(5, "", selective)), lines_of(scenario_of(5)));  // flash
}

TEST(NeededOperators, RefuseRanksThatDoNotDivide) {
  Scenario odd = scenario_of(5);
  odd.parallel.tensor = 3;
  const auto why = [&] {
    try {
      (void)needed_operators(odd);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_THAT(why(), HasSubstr("3 tensor ranks do not divide model.heads = 4"));
  odd.parallel.tensor = 2;
  odd.model->intermediate = 95;
  EXPECT_THAT(why(), HasSubstr("2 tensor ranks do not divide model.intermediate = 95"));
}

}  // namespace
}  // namespace longhaul::scenario
