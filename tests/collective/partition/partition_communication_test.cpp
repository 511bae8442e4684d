#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/iteration/lower_iteration.hpp"
#include "collective/partition/partition.hpp"
#include "plan/lowering/prove_collectives.hpp"
#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;
using testing::planned_iteration;

/// Two nodes of two ranks that hold the weights together.
IterationPlan four_ranks(std::vector<std::string> set = {}) {
  set.push_back("parallel.replicas=4");
  set.push_back("parallel.shard=4");
  return planned_iteration(centauri_toy(set), "zero3");
}

/// The first gather of the plan, partitioned; its parts in the order of issue.
std::vector<Communication> parts_of_first(IterationPlan& plan, const Partition& partition) {
  StageWork& work = plan.stages[DeviceId{0}];
  const std::size_t others = work.issue.size() - 1;
  partition_communication(plan, work, work.issue.front(), partition,
                          levels_of_shard(*plan.scenario, DeviceId{0}));
  std::vector<Communication> parts;
  for (std::size_t i = 0; i < work.issue.size() - others; ++i)
    parts.push_back(work.communications[work.issue[i]]);
  return parts;
}

std::vector<Duration> pieces_of_first(const StageWork& work) {
  std::vector<Duration> durations;
  for (const OperationId id : work.order)
    if (work.operations[id].position == 0) durations.push_back(work.operations[id].duration);
  return durations;
}

/// Bytes that ranks send to others in their node, and to other nodes, in collectives of the plan.
std::pair<std::int64_t, std::int64_t> sent_near_and_far(const IterationPlan& plan) {
  const LoweredIteration lowered = lower_iteration(plan).or_throw();
  EXPECT_FALSE(plan::why_collectives_wrong(lowered.plan));
  std::pair<std::int64_t, std::int64_t> bytes{};
  for (const Op& op : lowered.plan.ops) {
    if (op.kind != OpKind::send) continue;
    const auto from = index(lowered.plan.lanes[index(op.lane)].rank);
    const auto to = index(op.peer);
    const bool is_near = from / 2 == to / 2;
    (is_near ? bytes.first : bytes.second) += op.size.count();
  }
  return bytes;
}

TEST(PartitionCommunication, GroupsAGatherByNodes) {
  IterationPlan plan = four_ranks();
  const auto parts = parts_of_first(plan, {.grouping = Grouping::far_first});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].members, Members::across);
  EXPECT_EQ(parts[0].size, Bytes{1'000'000});
  EXPECT_EQ(parts[1].members, Members::node);
  EXPECT_EQ(parts[1].size, Bytes{2'000'000});
  EXPECT_EQ(parts[1].follows.size(), 1U);
  EXPECT_NE(parts[0].queue, parts[1].queue);
  EXPECT_FALSE(parts[1].needed_by.empty());
  EXPECT_FALSE(plan::why_collectives_wrong(lower_iteration(plan).or_throw().plan));
}

// Of 8 shards a quarter comes from far, then the rest; or the node's half, the other's, the rest.
TEST(PartitionCommunication, CutsTheOperatorByWhatSubGroupsBring) {
  IterationPlan plan = four_ranks();
  (void)parts_of_first(plan, {.grouping = Grouping::far_first, .group_parts = 2});
  EXPECT_THAT(pieces_of_first(plan.stages[DeviceId{0}]), ElementsAre(1ms, 1ms));
  plan = four_ranks({"overlap.split_overhead=10us"});
  const auto three = parts_of_first(plan, {.grouping = Grouping::near_first, .group_parts = 3});
  EXPECT_THAT(pieces_of_first(plan.stages[DeviceId{0}]), ElementsAre(1ms, 510us, 510us));
  ASSERT_EQ(three.size(), 3U);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_NE(three[i].needed_by, three[i - 1].needed_by);
  EXPECT_FALSE(plan::why_collectives_wrong(lower_iteration(plan).or_throw().plan));
}

// A flat ring of 0 1 2 3 crosses twice in each of its 3 steps; sub-groups cross with half of it.
TEST(PartitionCommunication, SendsLessBetweenNodes) {
  const auto far = [](const Partition& partition) {
    IterationPlan plan = four_ranks();
    StageWork& work = plan.stages[DeviceId{0}];
    const auto levels = levels_of_shard(*plan.scenario, DeviceId{0});
    for (const CommunicationId id : std::vector<CommunicationId>{work.issue}) {
      Partition own = partition;
      if (work.communications[id].kind != CollectiveKind::all_gather &&
          own.grouping == Grouping::far_first)
        own.grouping = Grouping::near_first;
      partition_communication(plan, work, id, own, levels);
    }
    return sent_near_and_far(plan).second;
  };
  // Five collectives of 2 MB.
  EXPECT_EQ(far({}), 5 * 2 * 3 * 500'000);
  EXPECT_EQ(far({.grouping = Grouping::far_first}), 5 * 4 * 500'000);
  EXPECT_EQ(far({.grouping = Grouping::near_first}), 5 * 4 * 500'000);
}

TEST(PartitionCommunication, SubstitutesEachRow) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const Substitution row : substitutions_of(kind)) {
      IterationPlan plan = kind == CollectiveKind::all_reduce
                               ? planned_iteration(centauri_toy(), "ddp")
                               : four_ranks();
      StageWork& work = plan.stages[DeviceId{0}];
      std::size_t expected = work.issue.size();
      for (const CommunicationId id : std::vector<CommunicationId>{work.issue}) {
        if (work.communications[id].kind != kind) continue;
        partition_communication(plan, work, id, {.substitution = row}, {});
        expected += kinds_of(row, kind).size() - 1;
      }
      EXPECT_EQ(work.issue.size(), expected) << to_string(row);
      EXPECT_FALSE(plan::why_collectives_wrong(lower_iteration(plan).or_throw().plan))
          << to_string(row);
    }
  }
}

/// product, gelu, product, of 2, 1 and 2 ms, each with its weights in one unit.
IterationPlan mlp(const std::vector<std::string>& set = {}) {
  std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\nshard = 2\n"
      "gradient_sync = \"zero3\"\n[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 2\ndevice = \"1GB/s\"\n";
  for (const char* name : {"up", "gelu", "down"}) {
    const bool product = std::string{name} != "gelu";
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"{}\"\nforward = \"{}ms\"\ndgrad = \"1ms\"\n{}", name,
        product ? "matmul" : "elementwise", product ? 2 : 1,
        product ? "wgrad = \"1ms\"\nweights = \"2MB\"\n" : "");
  }
  return planned_iteration(scenario::parse_scenario(text, "mlp.toml", set), "zero3");
}

// Columns of the product are columns of gelu: their pieces in turn. `down` would add them up.
TEST(PartitionCommunication, CutsAChainInALoop) {
  IterationPlan plan = mlp();
  StageWork& work = plan.stages[DeviceId{0}];
  EXPECT_EQ(parts_of_first(plan, {.pieces = 2, .chain = 3}).size(), 2U);
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < 5; ++i) positions.push_back(work.operations[work.order[i]].position);
  EXPECT_THAT(positions, ElementsAre(0, 1, 0, 1, 2));
  const auto needs = [&](std::size_t place) { return work.operations[work.order[place]].needs; };
  EXPECT_THAT(needs(1), ElementsAre(work.order[0]));
  EXPECT_THAT(needs(3), ::testing::UnorderedElementsAre(work.order[1], work.order[2]));
  EXPECT_THAT(needs(4), ElementsAre(work.order[3]));
}

TEST(PartitionCommunication, EachPieceOfAChainButTheFirstTakesTheOverhead) {
  IterationPlan plan = mlp({"overlap.split_overhead=10us"});
  StageWork& work = plan.stages[DeviceId{0}];
  (void)parts_of_first(plan, {.pieces = 2, .chain = 3});
  std::vector<Duration> durations;
  for (std::size_t i = 0; i < 4; ++i) durations.push_back(work.operations[work.order[i]].duration);
  EXPECT_THAT(durations, ElementsAre(1ms, 500us, 1010us, 510us));
}

TEST(PartitionCommunication, SumsShardsByUnit) {
  const std::vector<std::string> hybrid{"parallel.replicas=4", "parallel.shard=2"};
  IterationPlan plan = planned_iteration(centauri_toy(hybrid), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  const auto sums = [&] {
    std::vector<Bytes> sizes;
    for (const Communication& each : work.communications)
      if (each.members == Members::copies) sizes.push_back(each.size);
    return sizes;
  };
  EXPECT_THAT(sums(), ElementsAre(Bytes{4'000'000}));
  sum_by_units(work);
  EXPECT_THAT(sums(), ElementsAre(Bytes{2'000'000}, Bytes{2'000'000}));
  for (const Communication& each : work.communications)
    EXPECT_TRUE(each.members != Members::copies || each.follows.size() == 1U);
}

TEST(PartitionCommunication, PutsWgradsFirst) {
  const auto kinds = [](std::uint32_t units) {
    IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
    StageWork& work = plan.stages[DeviceId{0}];
    put_wgrads_first(work, units);
    std::string text;
    for (const OperationId id : work.order)
      if (work.operations[id].place >= 0) text += to_string(work.operations[id].work);
    return text;
  };
  EXPECT_EQ(kinds(~0U), "FFWDWD");
  EXPECT_EQ(kinds(1), "FFDWWD");
  EXPECT_EQ(kinds(2), "FFWDDW");
}

}  // namespace
}  // namespace longhaul::collective
