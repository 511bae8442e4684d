#include "planner/overlap/place_gathers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "support/pytorch_runtime.hpp"

namespace longhaul::planner {
namespace {

using collective::ChunkGather;
using collective::gathers_in_time;
using collective::gathers_of_next;

/// 16 operators of 2 MB over two ranks a stage.
Scenario sharded_pipeline(int stages, int microbatches, const std::vector<std::string>& set = {}) {
  std::string text = fmt::format(
      "[parallel]\nstages = {}\nmicrobatches = {}\nreplicas = 2\nshard = 2\nchunks = 2\n"
      "gradient_sync = \"zero3\"\n[costs]\nmessage = \"1MB\"\nactivation = \"1MB\"\n"
      "[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = {}\ndevice = \"1GB/s\"\n",
      stages, microbatches, 2 * stages);
  for (int i = 0; i < 16; ++i)
    text += fmt::format(
        "[[operator]]\nname = \"o{}\"\nkind = \"matmul\"\nweights = \"2MB\"\nforward = \"1ms\"\n"
        "dgrad = \"1ms\"\nwgrad = \"1ms\"\n",
        i);
  return scenario::parse_scenario(text, "pipeline.toml", set);
}

std::string csv_of(const Schedule& schedule, const PlacedGathers& placed) {
  return collective::pytorch_comms(schedule, placed.gathers, placed.spans);
}

TEST(PlaceGathers, WritesWhatPytorchsRuntimeTakes) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv"}) {
    for (const int stages : {2, 4}) {
      const Scenario scenario = sharded_pipeline(stages, 2 * stages);
      const Schedule schedule = schedule::generate(name, scenario);
      const PlacedGathers placed =
          place_gathers(schedule, scenario, Arrangement::decoupled, 30).or_throw();
      testing::PytorchRuntime runtime{csv_of(schedule, placed)};
      EXPECT_EQ(runtime.run(2 * stages, true), "") << name << ", " << stages << " stages";
      EXPECT_LE(placed.makespan, placed.usual) << name;
      EXPECT_GE(placed.makespan, placed.bound.lower_bound) << name;
      for (const int active : {1, 2, 3}) {
        PlacedGathers other = placed;
        other.gathers = gathers_of_next(schedule, active);
        testing::PytorchRuntime usual{csv_of(schedule, other)};
        EXPECT_EQ(usual.run(2 * stages, true), "") << name << ", " << active << " active";
      }
    }
  }
}

TEST(PlaceGathers, LeavesStagesThatHoldTheirWeightsAlone) {
  Scenario scenario = sharded_pipeline(4, 4, {"parallel.gradient_sync=zero1", "parallel.shard=1"});
  const Schedule schedule = schedule::generate("1f1b", scenario);
  const PlacedGathers placed = place_gathers(schedule, scenario, Arrangement::decoupled).or_throw();
  const std::string csv = csv_of(schedule, placed);
  EXPECT_THAT(csv, ::testing::Not(::testing::HasSubstr("SHARD")));
  testing::PytorchRuntime runtime{csv};
  EXPECT_EQ(runtime.run(4, false), "");
}

// Stage 0 of two with a chunk each: one microbatch.
TEST(PytorchComms, IsWhatIsExpectedByHand) {
  const Scenario scenario = sharded_pipeline(2, 1);
  const Schedule schedule = schedule::generate("gpipe", scenario);
  const PlacedGathers placed =
      place_gathers(schedule, scenario, Arrangement::decoupled, 1).or_throw();
  EXPECT_EQ(collective::pytorch_comms(schedule, gathers_in_time(schedule), placed.spans),
            "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
            "1RECV_F0,1UNSHARD,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
}

// Device 0 has the chunks 0 and 2: 2 is used from the third of eight blocks on, to the sixth.
TEST(ChunkGathers, KeepTheNextChunks) {
  const Schedule schedule = schedule::generate("interleaved-1f1b", sharded_pipeline(2, 2));
  const collective::ChunkGathers in_time = gathers_in_time(schedule);
  for (const ChunkGather& each : in_time[DeviceId{0}]) EXPECT_EQ(each.issue, each.first);
  const std::vector<ChunkGather> both{{ChunkId{0}, 0, 0, 7}, {ChunkId{2}, 0, 2, 5}};
  EXPECT_EQ(gathers_of_next(schedule, 2)[DeviceId{0}], both);
}

// Every gather is more than nothing, and what is kept all the time needs room for all chunks.
TEST(PlaceGathers, StaysWithinMemory) {
  const Scenario wide = sharded_pipeline(2, 4);
  const Schedule schedule = schedule::generate("interleaved-1f1b", wide);
  const PlacedGathers all = place_gathers(schedule, wide, Arrangement::decoupled, 60).or_throw();
  const std::string capacity = fmt::format("memory.capacity={}B", all.peak.count() - 1'000'000);
  const Scenario tight = sharded_pipeline(2, 4, {capacity});
  const PlacedGathers less = place_gathers(schedule, tight, Arrangement::decoupled, 60).or_throw();
  EXPECT_TRUE(less.fits);
  EXPECT_LT(less.peak, all.peak);
  EXPECT_GE(less.makespan, all.makespan);
}

}  // namespace
}  // namespace longhaul::planner
