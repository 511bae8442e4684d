#include "schedule/network_routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/levels.hpp"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;

std::vector<ResourceKind> kinds_of(const NetworkRoute& route) {
  std::vector<ResourceKind> kinds;
  for (const RouteSegment& segment : route.segments) kinds.push_back(segment.resource.kind);
  return kinds;
}

// Ranks 0 to 3 are two nodes of the first datacenter, 4 to 7 of the second.
TEST(NetworkRoutes, HoldWhatLiesOnEachOfThreeLevels) {
  const Scenario scenario = testing::scenario_of(
      {.datacenters = 2,
       .nodes = 2,
       .gpus = 2,
       .interfaces = "device = \"4GB/s\"\ndevice_latency = \"1us\"\ninternal = \"2GB/s\"\n"
                     "internal_latency = \"5us\"\negress = \"1GB/s\"\ningress = \"1GB/s\"",
       .link = "latency = \"3ms\""});
  const NetworkRoutes routes{scenario};
  const NetworkRoute inside = routes.between(Rank{2}, Rank{3});
  EXPECT_EQ(routes.level(Rank{2}, Rank{3}), NetworkLevel::node);
  EXPECT_THAT(kinds_of(inside),
              ElementsAre(ResourceKind::link, ResourceKind::port_out, ResourceKind::port_in));
  EXPECT_EQ(inside.segments[1].resource.first, 2);
  EXPECT_EQ(inside.segments[2].resource.first, 3);
  EXPECT_EQ(inside.rate.bits_per_second(), 32e9);
  EXPECT_EQ(inside.latency, 1us);

  const NetworkRoute between = routes.between(Rank{1}, Rank{2});
  EXPECT_EQ(routes.level(Rank{1}, Rank{2}), NetworkLevel::datacenter);
  EXPECT_THAT(kinds_of(between), ElementsAre(ResourceKind::link, ResourceKind::internal_out,
                                             ResourceKind::internal_in));
  EXPECT_EQ(between.latency, 5us);

  const NetworkRoute far = routes.between(Rank{1}, Rank{4});
  EXPECT_EQ(routes.level(Rank{1}, Rank{4}), NetworkLevel::wan);
  EXPECT_THAT(kinds_of(far),
              ElementsAre(ResourceKind::link, ResourceKind::egress, ResourceKind::ingress));
  EXPECT_EQ(far.latency, 3ms);
}

TEST(NetworkRoutes, WhatIsNotGivenTakesNoTime) {
  const Scenario scenario = testing::scenario_of({.nodes = 2, .gpus = 2});
  const NetworkRoutes routes{scenario};
  for (const Rank to : {Rank{1}, Rank{2}}) {
    EXPECT_TRUE(routes.between(Rank{0}, to).rate.is_unlimited());
    EXPECT_EQ(routes.between(Rank{0}, to).latency, Duration::zero());
  }
}

}  // namespace
}  // namespace longhaul::schedule
