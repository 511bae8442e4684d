#include "collective/overlap/overlaps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::HasSubstr;
using testing::planned_iteration;

std::string said(std::string_view list) {
  try {
    (void)parse_overlaps(list);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Overlaps, AreNamedInAList) {
  std::string all;
  for (const Overlap& each : overlaps()) all += std::string{all.empty() ? "" : ","} + each.name;
  EXPECT_EQ(parse_overlaps(all).size(), overlaps().size());
  EXPECT_EQ(said("zero4"), "--overlap: there is no overlap \"zero4\". Did you mean \"zero1\"?");
  EXPECT_THAT(said("serial,,zero3"), HasSubstr("there is no overlap \"\""));
  EXPECT_EQ(said("serial,serial"), "--overlap: serial is named twice. Name it once.");
}

TEST(Overlaps, ImplyTheirSharding) {
  const Scenario scenario = centauri_toy({"parallel.replicas=4"});
  const auto parallel = [&](const char* overlap) {
    return planned_iteration(scenario, overlap).scenario->parallel;
  };
  EXPECT_EQ(parallel("serial").gradient_sync, GradientSync::zero3);
  EXPECT_EQ(parallel("serial").shard, 2);
  EXPECT_EQ(parallel("ddp").gradient_sync, GradientSync::all_reduce);
  EXPECT_EQ(parallel("ddp").shard, 1);
  EXPECT_EQ(parallel("ddp").sharding.bucket, 25_MiB);
  EXPECT_EQ(parallel("zero2").gradient_sync, GradientSync::zero2);
  EXPECT_EQ(parallel("fsdp2").shard, 2);
  EXPECT_EQ(parallel("fsdp2").sharding.unit_layers, 1);
  EXPECT_EQ(parallel("fsdp2").sharding.regather, Regather::all_but_last);
  const Scenario whole = centauri_toy(
      {"parallel.replicas=4", "parallel.gradient_sync=all-reduce", "parallel.shard=1"});
  EXPECT_EQ(planned_iteration(whole, "zero3").scenario->parallel.shard, 4);
}

TEST(Overlaps, RefuseWhatRanksOfAStageDoNotShare) {
  const auto refusal = [](const Scenario& scenario, const char* schedule) {
    const auto plan = overlapped(testing::overlap_named("zero3"),
                                 schedule::generate(schedule, scenario), scenario);
    return plan ? std::string{"accepted"} : plan.refusal().reason;
  };
  EXPECT_THAT(refusal(centauri_toy({"parallel.microbatches=[1, 2]"}), "gpipe"),
              HasSubstr("replicas here differ"));
  const Scenario two = centauri_toy(
      {"parallel.stages=2", "parallel.microbatches=4", "costs.message=1B", "parallel.replicas=2"});
  EXPECT_EQ(refusal(two, "1f1b"), "accepted");
}

// 2 MB of weights and of gradients of a unit, beside shards: 1 + 1 + 6 times 2 MB.
TEST(Overlaps, NeedRoomForOneUnit) {
  const auto refusal = [](const char* capacity) {
    const Scenario scenario = centauri_toy(
        {"costs.activation=1B", "costs.message=1B", std::string{"memory.capacity="} + capacity});
    const auto plan = overlapped(testing::overlap_named("zero3"),
                                 schedule::generate("gpipe", scenario), scenario);
    return plan ? std::string{"accepted"} : plan.refusal().reason;
  };
  EXPECT_EQ(refusal("20000000B"), "accepted");
  EXPECT_THAT(refusal("19999999B"),
              AllOf(HasSubstr("has no room for one gathered unit"), HasSubstr("19.07 MiB")));
}

}  // namespace
}  // namespace longhaul::collective
