// Collectives as messages over three levels of network take on the engine what the simulator says.
#include "support/collectives.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "plan/rewrite/beside.hpp"
#include "played_plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using plan::CollectiveAlgorithm;
using testing::along;
using testing::difference;
using testing::flat;

/// Ports, nodes and sites that eight ranks share by two and four; messages of a few bytes take some
/// nanoseconds, so that many events fall into one instant.
Scenario eight_ranks() {
  return testing::scenario_of({.datacenters = 2,
                               .nodes = 2,
                               .gpus = 2,
                               .interfaces = "device = \"4GB/s\"\ndevice_latency = \"3ns\"\n"
                                             "internal = \"2GB/s\"\ninternal_latency = \"5ns\"\n"
                                             "egress = \"1GB/s\"\ningress = \"1GB/s\"",
                               .link = "latency = \"20ns\"\nbandwidth = \"2GB/s\"\n"
                                       "sharing = \"datacenter\""});
}

void expect_equal(const plan::Collective& collective, const Scenario& scenario) {
  const Plan made = plan::lower_collective(collective, scenario).or_throw();
  EXPECT_EQ(difference(made, testing::play(made).front().times, sim::simulate(made)), "")
      << to_text(collective.kind) << ' ' << to_string(collective.algorithm) << " in "
      << collective.pieces;
}

TEST(VirtualCollectives, TakeWhatTheSimulatorSays) {
  const Scenario scenario = eight_ranks();
  int played = 0;
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    for (const CollectiveAlgorithm algorithm : every<CollectiveAlgorithm>()) {
      for (const int pieces : {1, 3}) {
        plan::Collective each = flat(kind, 8, Bytes{257}, algorithm, pieces);
        if (algorithm == CollectiveAlgorithm::hierarchical)
          each = along(kind, Bytes{257}, {2, 2, 2}, {2, 0, 1}, {}, pieces);
        if (plan::why_no_steps(each)) continue;
        expect_equal(each, scenario);
        ++played;
      }
    }
  }
  EXPECT_GT(played, 70);
}

// Some ranks of the scenario alone, and an exchange between the sites.
TEST(VirtualCollectives, OfAGroupTakeWhatTheSimulatorSays) {
  const Scenario scenario = eight_ranks();
  plan::Collective some =
      flat(CollectiveKind::all_reduce, 3, Bytes{100}, CollectiveAlgorithm::ring);
  some.members = {Rank{1}, Rank{2}, Rank{7}};
  expect_equal(some, scenario);
  expect_equal(along(CollectiveKind::all_reduce, Bytes{640}, {2, 4}, {1, 0},
                     {CollectiveAlgorithm::exchange, CollectiveAlgorithm::halving}, 4),
               scenario);
}

// Two collectives of all ranks at once, beside a pipeline: lanes of their own, links in turn.
TEST(VirtualCollectives, TakeItBesideAPipelineAndEachOther) {
  const Scenario scenario = eight_ranks();
  const auto made = [&](CollectiveKind kind, int pieces) {
    return plan::lower_collective(along(kind, Bytes{900}, {2, 2, 2}, {2, 1, 0}, {}, pieces),
                                  scenario)
        .or_throw();
  };
  for (const char* const name : {"gpipe", "1f1b", "zb-h1"}) {
    const Plan pipeline = plan::lower(schedule::generate(name, scenario), scenario);
    const Plan both = plan::beside(plan::beside(pipeline, made(CollectiveKind::all_reduce, 2)),
                                   made(CollectiveKind::all_gather, 1));
    EXPECT_EQ(difference(both, testing::play(both).front().times, sim::simulate(both)), "") << name;
  }
}

}  // namespace
}  // namespace longhaul
