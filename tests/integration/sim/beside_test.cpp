// A pipeline and collectives on the same ranks at once: what they share they take in turn, and
// nothing else changes.
#include "plan/rewrite/beside.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/collectives.hpp"
#include "support/event_by_event.hpp"

namespace longhaul {
namespace {

using plan::CollectiveAlgorithm;
using testing::along;
using testing::flat;

/// Eight ranks, two of a node, two nodes of a datacenter; a message takes a nanosecond a byte
/// between datacenters, half of it between nodes, a quarter inside a node.
Scenario eight_ranks() {
  return testing::scenario_of({.datacenters = 2,
                               .nodes = 2,
                               .gpus = 2,
                               .interfaces = "device = \"4GB/s\"\ninternal = \"2GB/s\"\n"
                                             "egress = \"1GB/s\"\ningress = \"1GB/s\"",
                               .link = "latency = \"20ns\""});
}

Plan collective_plan(const plan::Collective& collective, const Scenario& scenario) {
  return plan::lower_collective(collective, scenario).or_throw();
}

/// The begin and the end of the steps of a collective.
OpTime span_of(const Plan& plan, std::size_t collective, const OpTimes& times) {
  OpTime span{.start = Duration::max()};
  for (const OpId id : plan.stepped[collective].sends)
    span.start = std::min(span.start, times[index(id)].start);
  for (const OpId id : plan.stepped[collective].receives)
    span.end = std::max(span.end, times[index(id)].end);
  return span;
}

// Both send 1,000 bytes from west to east at 0; the first plan's message has the lower id.
TEST(BesideInTime, TwoCollectivesTakeALinkInTurn) {
  const Scenario scenario =
      testing::scenario_of({.datacenters = 2, .link = "latency = \"20ns\"\nbandwidth = \"1GB/s\""});
  const auto send = [&](std::int64_t bytes) {
    return collective_plan(
        flat(CollectiveKind::broadcast, 2, Bytes{bytes}, CollectiveAlgorithm::tree), scenario);
  };
  const Plan both = plan::beside(send(1000), send(500));
  const OpTimes times = sim::simulate(both);
  EXPECT_EQ(span_of(both, 0, times).end, Duration{1020});
  EXPECT_EQ(span_of(both, 1, times).start, Duration{1000});
  EXPECT_EQ(span_of(both, 1, times).end, Duration{1520});
}

// One collective inside the nodes of the west, one between the sites.
TEST(BesideInTime, WhatSharesNothingIsAsItIsAlone) {
  const Scenario scenario = eight_ranks();
  plan::Collective inside =
      flat(CollectiveKind::all_reduce, 2, Bytes{800}, CollectiveAlgorithm::ring);
  plan::Collective across = inside;
  across.members = {Rank{2}, Rank{6}};
  const Plan both =
      plan::beside(collective_plan(inside, scenario), collective_plan(across, scenario));
  const OpTimes times = sim::simulate(both);
  for (const std::size_t c : {std::size_t{0}, std::size_t{1}}) {
    const Plan alone = collective_plan(c == 0 ? inside : across, scenario);
    EXPECT_EQ(span_of(both, c, times).end, span_of(alone, 0, sim::simulate(alone)).end);
  }
}

TEST(BesideInTime, EqualsTheSimulatorFromEventToEvent) {
  Scenario scenario = eight_ranks();
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random{seed};
    scenario.costs.forward.assign(8, Duration{random.between(20, 400)});
    scenario.parallel.microbatches = static_cast<int>(random.between(1, 3));
    const char* const name = random.between(0, 1) == 0 ? "1f1b" : "zb-h1";
    Plan both = plan::lower(schedule::generate(name, scenario), scenario);
    const auto collectives = random.between(1, 2);
    for (int i = 0; i < collectives; ++i) {
      const auto kind = static_cast<CollectiveKind>(random.between(0, 3));
      const int pieces = static_cast<int>(random.between(1, 2));
      const Bytes size{random.between(16, 900)};
      const plan::Collective collective = along(kind, size, {2, 2, 2}, {2, 1, 0}, {}, pieces);
      if (plan::why_no_steps(collective)) continue;
      both = plan::beside(both, collective_plan(collective, scenario));
    }
    const OpTimes times = sim::simulate(both);
    const auto expected = testing::EventByEvent{both, {}}.run();
    ASSERT_TRUE(expected.has_value()) << seed;
    for (std::size_t i = 0; i < times.size(); ++i) {
      ASSERT_EQ(times[i].start, expected->front().times[i].start) << seed << ' ' << i;
      ASSERT_EQ(times[i].end, expected->front().times[i].end) << seed << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace longhaul
