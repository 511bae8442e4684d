#include "harness/collectives/level_fit.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/collectives/collective_list.hpp"
#include "planner/collectives/collective_times.hpp"
#include "scenario/reader/load.hpp"
#include "support/collectives.hpp"
#include "support/levels.hpp"

namespace longhaul::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<RingPoint> points_of(double latency_ns, double ns_per_byte, double spread,
                                 unsigned seed, int count = 10) {
  std::mt19937 random{seed};
  std::normal_distribution<double> noise{1, spread};
  std::vector<RingPoint> points;
  for (int i = 0; i < count; ++i) {
    RingPoint point{Bytes{1000LL << i}, 6, 1.5 * static_cast<double>(1000LL << i), 0};
    point.duration_ns = point.hops * latency_ns + point.bytes * ns_per_byte;
    if (spread > 0) point.duration_ns *= noise(random);
    points.push_back(point);
  }
  return points;
}

TEST(LevelFit, FindsWhatTimesWereMadeOf) {
  const LevelFit fit = fit_ring(points_of(2'000, 0.25, 0, 1));
  EXPECT_NEAR(fit.latency_ns.value, 2'000, 1e-6);
  EXPECT_NEAR(fit.ns_per_byte.value, 0.25, 1e-9);
  EXPECT_NEAR(fit.error, 0, 1e-9);
  EXPECT_THAT(fit.fitted, ElementsAre(Bytes{1'000}, Bytes{4'000}, Bytes{16'000}, Bytes{64'000},
                                      Bytes{256'000}));
  EXPECT_EQ(fit.left_out.size(), 5U);
}

// 95% intervals of 200 samples with 5% of noise: 190 expected, 3 standard deviations are 9.2.
TEST(LevelFit, IntervalsCoverAsOftenAsTheySay) {
  int latencies = 0, rates = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const LevelFit fit = fit_ring(points_of(20'000, 0.25, 0.05, seed, 12));
    latencies += fit.latency_ns.low <= 20'000 && 20'000 <= fit.latency_ns.high;
    rates += fit.ns_per_byte.low <= 0.25 && 0.25 <= fit.ns_per_byte.high;
    EXPECT_LT(fit.error, 0.5);
    EXPECT_GT(fit.error, 0);
  }
  EXPECT_GE(latencies, 180);
  EXPECT_LT(latencies, 200);
  EXPECT_GE(rates, 180);
  EXPECT_LT(rates, 200);
}

TEST(LevelFit, HasNoLatencyBelowZero) {
  std::vector<RingPoint> points = points_of(0, 1, 0, 1);
  for (RingPoint& point : points) point.duration_ns -= 0.3 * point.duration_ns / point.bytes * 1000;
  const LevelFit fit = fit_ring(points);
  EXPECT_EQ(fit.latency_ns.value, 0);
  EXPECT_GT(fit.ns_per_byte.value, 0.7);
}

TEST(LevelFit, RefusesFewSizesAndTimesWithoutARate) {
  EXPECT_THROW((void)fit_ring(points_of(1, 1, 0, 1, 5)), Error);
  EXPECT_THROW((void)fit_ring(points_of(1'000, 0, 0, 1)), Error);
}

Scenario two_sites() {
  return testing::scenario_of({.datacenters = 2,
                               .nodes = 2,
                               .gpus = 3,
                               .interfaces = "device = \"4GB/s\"\ninternal = \"1GB/s\"",
                               .link = "latency = \"1ms\"\nbandwidth = \"1Gbps\""});
}

TEST(LevelRings, GoAlongOneLevelEach) {
  report::CollectiveArguments arguments;
  arguments.kind = "all-reduce,all-gather";
  arguments.bytes = "1KiB..32KiB";
  const auto rings = level_rings(arguments, two_sites());
  ASSERT_EQ(rings.size(), 3U * 2 * 6);
  EXPECT_THAT(rings[0].members, ElementsAre(Rank{0}, Rank{1}, Rank{2}));
  EXPECT_THAT(rings[12].members, ElementsAre(Rank{0}, Rank{3}));
  EXPECT_THAT(rings[24].members, ElementsAre(Rank{0}, Rank{6}));
  const auto said = [&](auto change) {
    report::CollectiveArguments other = arguments;
    change(other);
    try {
      (void)level_rings(other, two_sites());
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(said([](auto& a) { a.group = "0-3"; }), HasSubstr("--group: it has no effect here"));
  EXPECT_THAT(said([](auto& a) { a.algorithm = "tree"; }), HasSubstr("--algorithm tree: "));
  EXPECT_THAT(said([](auto& a) { a.bytes = "1KiB,2KiB"; }), HasSubstr("--bytes has 2 sizes"));
}

// Held against the messages in virtual time: sizes that every number of members divides.
TEST(LevelRings, OfEveryKindTakeTheirHopsAndBytes) {
  for (int members = 2; members <= 8; ++members) {
    const Scenario scenario = testing::scenario_of(
        {.gpus = members, .interfaces = "device = \"1GB/s\"\ndevice_latency = \"30us\""});
    for (const CollectiveKind kind : every<CollectiveKind>()) {
      const Bytes size{840'000};
      const RingPoint point = ring_point(kind, members, size, 0);
      const Duration played =
          planner::play_collective(
              testing::flat(kind, members, size, plan::CollectiveAlgorithm::ring), scenario)
              .or_throw()
              .duration;
      EXPECT_DOUBLE_EQ(point.hops * 30e3 + point.bytes, static_cast<double>(played.count()))
          << to_text(kind) << " of " << members;
    }
  }
}

TEST(LevelsText, IsReadBackByAScenario) {
  LevelFit fit = fit_ring(points_of(2'000, 0.25, 0, 1));
  fit.kind = CollectiveKind::all_reduce;
  fit.level = NetworkLevel::node;
  fit.members = 3;
  const std::string text = levels_text({fit}, two_sites(), {"a \"b\"", "now", "abc", "off"});
  const Scenario read = scenario::parse_scenario(
      "[costs]\nforward = \"1ms\"\nmessage = \"1MB\"\n[parallel]\nstages = 12\nmicrobatches = 1\n"
      "[[datacenter]]\nname = \"dc0\"\nstages = \"0-5\"\n"
      "[[datacenter]]\nname = \"dc1\"\nstages = \"6-11\"\n"
      "[[link]]\nbetween = \"all\"\n[[node]]\ndatacenter = \"dc0\"\ngpus = 3\n"
      "[network]\nfile = \"here\"\n[levels]\nhere = '''\n" +
          text + "'''\n",
      "s.toml");
  EXPECT_EQ(read.nodes[0].device, Bandwidth{32e9});
  EXPECT_EQ(read.nodes[0].device_latency, 2us);
  EXPECT_THAT(level_table({fit}), HasSubstr("all-reduce"));
}

TEST(CollectiveList, HasEveryKindGroupSizeAndAlgorithm) {
  report::CollectiveArguments arguments;
  arguments.kind = "all-reduce,broadcast";
  arguments.group = "0-3/0,6";
  arguments.bytes = "1KiB..5KiB,1000000B";
  arguments.algorithm = "ring,tree";
  const auto all = listed_collectives(arguments, two_sites());
  ASSERT_EQ(all.size(), 2U * 2 * 4 * 2);
  EXPECT_EQ(all[0].algorithm, plan::CollectiveAlgorithm::ring);
  EXPECT_EQ(all[1].algorithm, plan::CollectiveAlgorithm::tree);
  EXPECT_EQ(all[2].size, 2_KiB);
  EXPECT_EQ(all[6].size, Bytes{1'000'000});
  EXPECT_THAT(all[8].members, ElementsAre(Rank{0}, Rank{6}));
  EXPECT_EQ(all[16].kind, CollectiveKind::broadcast);
  EXPECT_THROW((void)listed_sizes("--bytes", "8KiB..4KiB"), Error);
  arguments.group = "0-3/0,1,1";
  EXPECT_THROW((void)listed_collectives(arguments, two_sites()), Error);
}

}  // namespace
}  // namespace longhaul::harness
