#include "collective/overlap/rewrites.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;
using testing::planned_iteration;

const StageWork& only_stage(const IterationPlan& plan) { return plan.stages[DeviceId{0}]; }

TEST(Rewrites, SerializedCollectivesStandBetweenOperations) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "serial");
  const StageWork& work = only_stage(plan);
  for (const Communication& each : work.communications) {
    EXPECT_EQ(each.queue, 0);
    EXPECT_LE(each.before.size(), 1U);
    EXPECT_LE(each.after.size(), 1U);
  }
  EXPECT_EQ(work.issue.size(), work.communications.size());
}

TEST(Rewrites, DgradsRunAheadOfWgrads) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "ooo");
  const StageWork& work = only_stage(plan);
  std::vector<BlockKind> kinds;
  for (const OperationId id : work.order)
    if (number(work.operations[id].microbatch) >= 0) kinds.push_back(work.operations[id].work);
  EXPECT_THAT(kinds, ElementsAre(BlockKind::F, BlockKind::F, BlockKind::D, BlockKind::D,
                                 BlockKind::W, BlockKind::W));
  EXPECT_EQ(work.leaving, Leaving::with_dgrad);
}

// The gathers of weights can begin before the stage before has run, that of its output cannot.
TEST(Rewrites, EagerIssuesWhatWaitsForAnotherStageLast) {
  std::string text =
      "[parallel]\nstages = 2\nmicrobatches = 1\nreplicas = 2\ntensor = 2\n"
      "sequence_parallel = true\ngradient_sync = \"zero1\"\nbucket = \"1MB\"\n"
      "[costs]\nmessage = \"1MB\"\n[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 8\ndevice = \"1GB/s\"\n";
  for (const char* name : {"qkv", "output", "up", "down"})
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"matmul\"\nweights = \"2MB\"\nforward = \"1ms\"\n"
        "dgrad = \"1ms\"\nwgrad = \"1ms\"\n",
        name);
  const Scenario scenario = scenario::parse_scenario(text, "two.toml");
  const IterationPlan plan = planned_iteration(scenario, "zero1", "1f1b");
  const StageWork& work = plan.stages[DeviceId{1}];
  std::vector<std::size_t> weights, outputs;
  for (std::size_t i = 0; i < work.issue.size(); ++i) {
    const Communication& each = work.communications[work.issue[i]];
    if (each.input == 0) outputs.push_back(i);
    if (each.traffic == Traffic::dp && each.needs.empty()) weights.push_back(i);
  }
  EXPECT_GT(weights.size(), 1U);
  EXPECT_THAT(outputs, ElementsAre(weights.size()));
  EXPECT_EQ(weights.back(), weights.size() - 1);
}

TEST(Rewrites, SumsInTwoAreScattersAndTheirGathers) {
  const Scenario scenario = centauri_toy(
      {"parallel.gradient_sync=all-reduce", "parallel.shard=1", "parallel.bucket=2MB"});
  const IterationPlan plan = planned_iteration(scenario, "syndicate");
  const StageWork& work = only_stage(plan);
  ASSERT_EQ(work.issue.size(), 4U);
  for (std::size_t i = 0; i < 4; i += 2) {
    const Communication& scatter = work.communications[work.issue[i]];
    const Communication& gather = work.communications[work.issue[i + 1]];
    EXPECT_EQ(scatter.kind, CollectiveKind::reduce_scatter);
    EXPECT_EQ(gather.kind, CollectiveKind::all_gather);
    EXPECT_THAT(gather.follows, ElementsAre(work.issue[i]));
    EXPECT_NE(scatter.queue, gather.queue);
    EXPECT_TRUE(scatter.needed_by.empty());
    EXPECT_FALSE(gather.needed_by.empty());
  }
}

TEST(Rewrites, BackwardsGatherInTheNodeWhereThereAreSeveral) {
  const auto of_node = [](std::vector<std::string> set) {
    set.push_back("parallel.replicas=4");
    set.push_back("parallel.shard=4");
    int count = 0;
    const IterationPlan plan = planned_iteration(centauri_toy(set), "zeropp");
    for (const Communication& each : only_stage(plan).communications)
      count += each.members == Members::node ? 1 : 0;
    EXPECT_EQ(only_stage(plan).second_copy, count > 0 ? Bytes{2'000'000} : Bytes{});
    return count;
  };
  EXPECT_EQ(of_node({}), 1);  // all-but-last: one unit is gathered again
  EXPECT_EQ(of_node({"node.gpus=4"}), 0);
  EXPECT_EQ(of_node({"node.gpus=1"}), 0);
}

/// What a pass changed, by the columns of Centauri's table 1.
struct Dimensions {
  bool primitive = false, group = false, workload = false, scheduling = false;
};

/// Pieces count once.
std::vector<std::uint32_t> operators_in_order(const StageWork& work) {
  std::vector<std::uint32_t> positions;
  for (const OperationId id : work.order) positions.push_back(work.operations[id].position);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

Dimensions changed(const Overlap& overlap, const Scenario& scenario) {
  Scenario sharded = scenario;
  sharded.parallel = overlap.sharded(scenario.parallel);
  const IterationPlan before =
      with_communications(iteration_of(schedule::generate("gpipe", sharded), sharded).or_throw())
          .or_throw();
  const StageWork& old = only_stage(before);
  const IterationPlan after = overlap.rewrite(before);
  const StageWork& work = only_stage(after);
  Dimensions dimensions;
  dimensions.scheduling = operators_in_order(work) != operators_in_order(old);
  for (const CommunicationId id : work.communications.ids()) {
    const Communication& each = work.communications[id];
    dimensions.workload = dimensions.workload || each.cut_with >= 0;
    const bool is_new = index(id) >= old.communications.size();
    if (each.cut_with >= 0) continue;
    // Collectives that nothing but their gather or their operator waits for run beside others.
    dimensions.scheduling = dimensions.scheduling || (each.after.empty() && each.before.empty());
    dimensions.primitive =
        dimensions.primitive || is_new || each.kind != old.communications[id].kind;
    dimensions.group =
        dimensions.group || (!is_new && each.members != old.communications[id].members);
  }
  return dimensions;
}

TEST(Rewrites, KeepToTheDimensionsOfTable1) {
  const std::map<std::string, Dimensions> allowed{
      {"serial", {}},
      {"ddp", {.workload = true, .scheduling = true}},
      {"ooo", {.scheduling = true}},
      {"zero1", {.primitive = true, .workload = true, .scheduling = true}},
      {"zero2", {.primitive = true, .workload = true, .scheduling = true}},
      {"zero3", {.primitive = true, .workload = true, .scheduling = true}},
      {"fsdp2", {.workload = true, .scheduling = true}},
      {"zeropp", {.group = true, .scheduling = true}},  // ZeRO++ is none of the table's
      {"megatron", {.scheduling = true}},
      {"breadth-first", {.scheduling = true}},
      {"syndicate", {.primitive = true, .scheduling = true}},
      {"coconet", {.primitive = true, .workload = true}},
      {"dist-einsum", {.workload = true}}};
  const Scenario sharded = centauri_toy({"parallel.replicas=4", "parallel.shard=4"});
  const Scenario whole = centauri_toy({"parallel.replicas=4", "parallel.gradient_sync=all-reduce",
                                       "parallel.shard=1", "parallel.bucket=2MB"});
  for (const Overlap& overlap : overlaps()) {
    ASSERT_TRUE(allowed.contains(overlap.name)) << overlap.name;
    const Dimensions& most = allowed.at(overlap.name);
    Dimensions used;
    for (const Scenario& scenario : {sharded, whole}) {
      const Dimensions own = changed(overlap, scenario);
      used = {used.primitive || own.primitive, used.group || own.group,
              used.workload || own.workload, used.scheduling || own.scheduling};
    }
    EXPECT_LE(used.primitive, most.primitive) << overlap.name;
    EXPECT_LE(used.group, most.group) << overlap.name;
    EXPECT_LE(used.workload, most.workload) << overlap.name;
    EXPECT_LE(used.scheduling, most.scheduling) << overlap.name;
  }
  EXPECT_TRUE(changed(testing::overlap_named("syndicate"), whole).primitive);
  EXPECT_TRUE(changed(testing::overlap_named("zeropp"), sharded).group);
  EXPECT_TRUE(changed(testing::overlap_named("dist-einsum"), sharded).workload);
  EXPECT_FALSE(changed(testing::overlap_named("serial"), sharded).scheduling);
  EXPECT_TRUE(changed(testing::overlap_named("ddp"), whole).scheduling);
}

}  // namespace
}  // namespace longhaul::collective
