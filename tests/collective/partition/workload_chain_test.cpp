#include "collective/partition/workload_chain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using ::testing::ElementsAre;
using Dimension = WorkloadDimension;
using Type = DimensionType;

std::vector<WorkloadCut> cuts(OperatorKind kind, const char* name, BlockKind work) {
  Operator each;
  each.name = name;
  each.kind = kind;
  return workload_cuts(each, work);
}

std::vector<Type> types(OperatorKind kind, const char* name, BlockKind work = BlockKind::F) {
  std::vector<Type> all;
  for (const WorkloadCut& cut : cuts(kind, name, work)) all.push_back(cut.type);
  return all;
}

TEST(WorkloadChain, HasTheTypesOfTable3) {
  EXPECT_THAT(types(OperatorKind::matmul, "qkv"),
              ElementsAre(Type::other, Type::contraction, Type::other));
  EXPECT_THAT(types(OperatorKind::elementwise, "add"), ElementsAre(Type::other, Type::other));
  EXPECT_THAT(types(OperatorKind::elementwise, "swiglu"), ElementsAre(Type::other, Type::none));
  EXPECT_THAT(types(OperatorKind::normalization, "norm"), ElementsAre(Type::other, Type::none));
  EXPECT_THAT(types(OperatorKind::attention, "attention"), ElementsAre(Type::other, Type::none));
  // The gradient of the input adds up over the columns of the output, that of weights over tokens.
  EXPECT_THAT(types(OperatorKind::matmul, "qkv", BlockKind::D),
              ElementsAre(Type::other, Type::other, Type::contraction));
  EXPECT_THAT(types(OperatorKind::matmul, "qkv", BlockKind::W),
              ElementsAre(Type::contraction, Type::other, Type::other));
}

TEST(WorkloadChain, NeighboursAgreeOnRowsOrColumns) {
  const auto product = cuts(OperatorKind::matmul, "x", BlockKind::F);
  const auto gelu = cuts(OperatorKind::elementwise, "gelu", BlockKind::F);
  EXPECT_TRUE(agree(product[0], gelu[0]));
  EXPECT_FALSE(agree(product[0], gelu[1]));
  EXPECT_TRUE(agree(product[2], gelu[1]));
  EXPECT_TRUE(agree(gelu[1], product[1]));   // a contraction: its parts are added up
  EXPECT_FALSE(agree(product[1], gelu[0]));  // summands of the result
  EXPECT_FALSE(agree(gelu[1], product[2]));  // takes its input whole
}

/// product, gelu, product, of 2, 1 and 2 ms.
IterationPlan two_products() {
  std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\nshard = 2\n"
      "gradient_sync = \"zero3\"\n[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 2\ndevice = \"1GB/s\"\n";
  for (const char* name : {"up", "gelu", "down"}) {
    const bool product = std::string{name} != "gelu";
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"{}\"\nforward = \"{}ms\"\n"
        "dgrad = \"1ms\"\n{}",
        name, product ? "matmul" : "elementwise", product ? 2 : 1,
        product ? "wgrad = \"1ms\"\nweights = \"2MB\"\n" : "");
  }
  return testing::planned_iteration(scenario::parse_scenario(text, "mlp.toml"), "zero3");
}

std::vector<std::size_t> lengths(const IterationPlan& plan, Duration enough) {
  const StageWork& work = plan.stages[DeviceId{0}];
  std::vector<std::size_t> counts;
  for (const WorkloadChain& chain : workload_chains(plan, work, work.order.front(), enough))
    counts.push_back(chain.operations.size());
  return counts;
}

// Along the tokens up to `down`, which waits for weights of its own; along B no further than the
// product; along C up to gelu, whose columns `down` would add up.
TEST(WorkloadChain, EndsWhereItReachesTheCostOrNoneFits) {
  const IterationPlan plan = two_products();
  EXPECT_THAT(lengths(plan, 10ms), ElementsAre(2, 1, 2));
  EXPECT_THAT(lengths(plan, 2ms), ElementsAre(1, 1, 1));
  const StageWork& work = plan.stages[DeviceId{0}];
  EXPECT_EQ(chain_from(plan, work, work.order.front(), 3, Traffic::fsdp).size(), 2U);
  EXPECT_EQ(chain_from(plan, work, work.order.front(), 1, Traffic::fsdp).size(), 1U);
}

}  // namespace
}  // namespace longhaul::collective
