#include "collective/overlap/pieces.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/partition/partition.hpp"
#include "collective/partition/workload_chain.hpp"
#include "support/overlaps.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::planned_iteration;

TEST(Pieces, OfAnOperationWaitForTheirsAndAddUp) {
  IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  const CommunicationId gather = work.issue.front();
  const OperationId first = work.order.front();
  cut_with_operation(work, gather, 3, 7us);
  std::vector<Duration> times;
  for (int i = 0; i < 3; ++i) times.push_back(work.operations[work.order[to_size(i)]].duration);
  EXPECT_THAT(times, ElementsAre(Duration{666'668}, Duration{673'666}, Duration{673'666}));
  std::vector<Bytes> sizes;
  for (int i = 0; i < 3; ++i) {
    const Communication& piece = work.communications[work.issue[to_size(i)]];
    sizes.push_back(piece.size);
    EXPECT_THAT(piece.needed_by, ElementsAre(work.order[to_size(i)]));
  }
  EXPECT_THAT(sizes, ElementsAre(Bytes{666'667}, Bytes{666'667}, Bytes{666'666}));
  EXPECT_EQ(work.order.front(), first);
  EXPECT_THAT(work.operations[work.order[3]].needs, ElementsAre(work.order[2]));
  EXPECT_EQ(work.operations[work.order[2]].piece, 2);
  EXPECT_EQ(work.operations[work.order[2]].pieces, 3);
}

/// Two layers whose times are those of a profile, sharded over two ranks.
Scenario of_profile(const std::string& more_rows) {
  const testing::ScratchDirectory scratch;
  const std::filesystem::path table = scratch.path() / "profile.csv";
  std::ofstream{table}
      << std::ifstream{testing::in_checkout("benchmarks/profiles/tiny-f32.csv")}.rdbuf()
      << "embedding,update,adamw,count=2048,f32,1,2000\n"
         "head,update,adamw,count=2080,f32,1,2000\n"
         "layer,update,adamw,count=17472,f32,1,5000\n"
      << more_rows;
  const std::string tiny = testing::in_checkout("benchmarks/profiles/tiny.toml");
  return scenario::load_scenario(
      tiny, std::vector<std::string>{"costs.profile=" + table.string(), "parallel.stages=1",
                                     "parallel.microbatches=1", "parallel.replicas=2",
                                     "parallel.gradient_sync=zero3", "parallel.shard=2",
                                     "parallel.unit=operator", "overlap.split_overhead=7us"});
}

/// The first operation of that work on the product of that name.
const Operation& product(const IterationPlan& plan, const char* name, BlockKind work) {
  const StageWork& stage = plan.stages[DeviceId{0}];
  for (const OperationId id : stage.order) {
    const Operation& each = stage.operations[id];
    const bool is_own = each.place >= 0 && each.work == work &&
                        (*plan.scenario->operators.all)[at(each.place)].name == name;
    if (is_own) return each;
  }
  throw std::out_of_range{name};
}

// qkv of tiny-f32.csv: [32, 192] = [32, 64] [64, 192] takes 41,321 ns.
TEST(Pieces, TakeWhatTheProfileHasOfTheirSize) {
  const std::string rows =
      "layer,F,gemm,m=32 n=96 k=64 nt,f32,1,25000\n"
      "layer,D,gemm,m=32 n=32 k=192 nn,f32,1,26000\n"
      "layer,W,gemm,m=96 n=64 k=32 tn add,f32,1,27000\n"
      "layer,F,gemm,m=8 n=192 k=64 nt,f32,1,12000\n";
  const IterationPlan plan = planned_iteration(of_profile(rows), "zero3");
  const auto pieces = [&](BlockKind work, Traffic traffic, int count) {
    return piece_durations(plan, product(plan, "qkv", work), traffic, count);
  };
  EXPECT_EQ(product(plan, "qkv", BlockKind::F).duration, Duration{41'321});
  EXPECT_THAT(pieces(BlockKind::F, Traffic::fsdp, 2), Each(Duration{25'000}));
  EXPECT_THAT(pieces(BlockKind::D, Traffic::fsdp, 2), Each(Duration{26'000}));
  EXPECT_THAT(pieces(BlockKind::W, Traffic::dp, 2), Each(Duration{27'000}));
  EXPECT_THAT(pieces(BlockKind::F, Traffic::tp, 4), Each(Duration{12'000}));
  // Not measured, or not divided: equal parts, and 7 us more for each but the first.
  EXPECT_THAT(pieces(BlockKind::F, Traffic::fsdp, 4),
              ElementsAre(Duration{10'331}, Duration{17'330}, Duration{17'330}, Duration{17'330}));
  EXPECT_THAT(pieces(BlockKind::F, Traffic::tp, 2),
              ElementsAre(Duration{20'661}, Duration{27'660}));
}

/// A gather that is cut with its product in the plan itself.
TEST(Pieces, OfAPartitionTakeWhatTheProfileHas) {
  const IterationPlan plan =
      planned_iteration(of_profile("layer,F,gemm,m=32 n=96 k=64 nt,f32,1,25000\n"), "zero3");
  StageWork work = plan.stages[DeviceId{0}];
  for (const CommunicationId id : work.issue) {
    const Communication& each = work.communications[id];
    const std::optional<OperationId> user = partner_of(plan, work, each);
    if (each.kind != CollectiveKind::all_gather || !user) continue;
    if (work.operations[*user].work != BlockKind::F ||
        work.operations[*user].duration != Duration{41'321})
      continue;
    partition_communication(plan, work, id, {.pieces = 2}, std::nullopt);
    EXPECT_EQ(work.operations[*user].pieces, 2);
    EXPECT_EQ(work.operations[*user].duration, Duration{25'000});
    return;
  }
  FAIL() << "no gather of qkv";
}

TEST(Pieces, HaveAByteAtLeast) {
  IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  const std::size_t operations = work.order.size();
  work.communications[work.issue.front()].size = Bytes{1};
  cut_with_operation(work, work.issue.front(), 4, {});
  EXPECT_EQ(work.order.size(), operations);
}

}  // namespace
}  // namespace longhaul::collective
