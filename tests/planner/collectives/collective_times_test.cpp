#include "planner/collectives/collective_times.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/steps/collective_steps.hpp"
#include "schedule/ring_time.hpp"
#include "support/collectives.hpp"

namespace longhaul::planner {
namespace {

using testing::along;
using testing::flat;
using testing::Levels;
using testing::scenario_of;
using Algorithm = plan::CollectiveAlgorithm;

Duration time_of(const plan::Collective& collective, const Scenario& scenario) {
  return play_collective(collective, scenario).or_throw().duration;
}

TEST(CollectiveTimes, OfFourRanksInANode) {
  const Scenario scenario =
      scenario_of({.gpus = 4, .interfaces = "device = \"1GB/s\"\ndevice_latency = \"1ms\""});
  const auto time = [&](CollectiveKind kind, Algorithm algorithm) {
    return time_of(flat(kind, 4, Bytes{4'000'000}, algorithm), scenario);
  };
  EXPECT_EQ(time(CollectiveKind::all_gather, Algorithm::ring), 6ms);
  EXPECT_EQ(time(CollectiveKind::all_reduce, Algorithm::ring), 12ms);
  EXPECT_EQ(time(CollectiveKind::all_reduce, Algorithm::halving), 10ms);
  EXPECT_EQ(time(CollectiveKind::all_to_all, Algorithm::direct), 4ms);
  EXPECT_EQ(time(CollectiveKind::broadcast, Algorithm::tree), 10ms);
}

// Messages that wait for each other: of a ring 2(n - 1) steps, of halves 2 log n, of direct ones
// those of one member.
TEST(CollectiveTimes, KnowTheMessagesOnTheCriticalPath) {
  const Scenario scenario =
      scenario_of({.gpus = 4, .interfaces = "device = \"1GB/s\"\ndevice_latency = \"1ms\""});
  const auto messages = [&](CollectiveKind kind, Algorithm algorithm) {
    return play_collective(flat(kind, 4, Bytes{4'000'000}, algorithm), scenario)
        .or_throw()
        .critical_messages;
  };
  EXPECT_EQ(messages(CollectiveKind::all_gather, Algorithm::ring), 3);
  EXPECT_EQ(messages(CollectiveKind::all_reduce, Algorithm::ring), 6);
  EXPECT_EQ(messages(CollectiveKind::all_reduce, Algorithm::halving), 4);
  EXPECT_EQ(messages(CollectiveKind::all_to_all, Algorithm::direct), 3);
  EXPECT_EQ(messages(CollectiveKind::broadcast, Algorithm::tree), 2);
}

TEST(CollectiveTimes, OfTwoNodesOfTwo) {
  const Scenario scenario = scenario_of({.nodes = 2,
                                         .gpus = 2,
                                         .interfaces = "device = \"4GB/s\"\ninternal = \"1GB/s\"\n"
                                                       "internal_latency = \"1ms\""});
  const Bytes size{4'000'000};
  EXPECT_EQ(time_of(flat(CollectiveKind::all_gather, 4, size, Algorithm::ring), scenario), 4250us);
  EXPECT_EQ(time_of(along(CollectiveKind::all_gather, size, {2, 2}, {0, 1}), scenario), 3500us);
  EXPECT_EQ(time_of(along(CollectiveKind::all_gather, size, {2, 2}, {1, 0}), scenario), 5250us);
  EXPECT_EQ(time_of(flat(CollectiveKind::all_reduce, 4, size, Algorithm::ring), scenario), 7500us);
  EXPECT_EQ(time_of(along(CollectiveKind::all_reduce, size, {2, 2}, {1, 0}), scenario), 6ms);
}

TEST(CollectiveTimes, OfTwoSitesOfTwoNodes) {
  const Scenario scenario = scenario_of({.datacenters = 2,
                                         .nodes = 2,
                                         .interfaces = "internal = \"1GB/s\"\negress = "
                                                       "\"0.1GB/s\"\ningress = \"0.1GB/s\"",
                                         .link = "latency = \"20ms\""});
  const Bytes size{8'000'000};
  EXPECT_EQ(time_of(flat(CollectiveKind::all_reduce, 4, size, Algorithm::ring), scenario), 144ms);
  EXPECT_EQ(time_of(along(CollectiveKind::all_reduce, size, {2, 2}, {1, 0}), scenario), 88ms);
  const CollectiveTime exchanged =
      play_collective(along(CollectiveKind::all_reduce, size, {2, 2}, {1, 0},
                            {Algorithm::exchange, Algorithm::ring}),
                      scenario)
          .or_throw();
  EXPECT_EQ(exchanged.duration, 68ms);
  EXPECT_EQ(exchanged.bytes.wan, Bytes{16'000'000});
  const plan::Collective swapped = along(CollectiveKind::all_reduce, size, {2, 2}, {1, 0},
                                         {Algorithm::exchange, Algorithm::ring});
  Bytes eastwards;
  for (const plan::StepMessage& message : plan::steps_of(swapped).messages)
    if (message.from < 2 && message.to >= 2) eastwards += message.size;
  EXPECT_EQ(eastwards, Bytes{8'000'000}) << "and as much back";
}

/// 2 sites of 4 nodes: GPUs at 300 GB/s, nodes at 25 GB/s and 5 us, 5 Gbps a node and 30 ms.
Scenario three_levels(int gpus) {
  return scenario_of({.datacenters = 2,
                      .nodes = 4,
                      .gpus = gpus,
                      .interfaces = "device = \"300GB/s\"\ninternal = \"25GB/s\"\n"
                                    "internal_latency = \"5us\"\negress = \"5Gbps\"\n"
                                    "ingress = \"5Gbps\"",
                      .link = "latency = \"30ms\""});
}

TEST(CollectiveTimes, OfThreeLevels) {
  const Scenario scenario = three_levels(8);
  const Bytes size{13'500'000'000};
  const Duration ring =
      time_of(flat(CollectiveKind::all_reduce, 64, size, Algorithm::ring), scenario);
  EXPECT_NEAR(static_cast<double>(ring.count()), 42.6e9, 0.05e9);
  const plan::Collective mesh = along(CollectiveKind::all_reduce, size, {2, 4, 8}, {2, 1, 0});
  const Duration levels = time_of(mesh, scenario);
  EXPECT_GE(levels, 5845ms);  // how ties fall
  EXPECT_LE(levels, 6000ms);
  const CollectiveBound bound = bound_of_collective(mesh, scenario);
  EXPECT_EQ(bound.lower_bound, 5400ms + 30ms);
  EXPECT_EQ(bound.reason, "12.57 GiB out of datacenter dc0 at 20 Gbps");
}

// What `best` finds there (docs/collectives.md), without the search.
TEST(CollectiveTimes, InPiecesThroughThreeLevelsIsWithinTwoPercentOfTheBound) {
  const Scenario scenario = three_levels(8);
  const plan::Collective found =
      along(CollectiveKind::all_reduce, Bytes{13'500'000'000}, {2, 4, 8}, {2, 1, 0},
            {Algorithm::ring, Algorithm::direct, Algorithm::halving}, 256);
  const Duration bound = bound_of_collective(found, scenario).lower_bound;
  EXPECT_EQ(bound, 5430ms);
  const Duration time = time_of(found, scenario);
  EXPECT_GE(time, bound);
  EXPECT_LE(time, bound + bound / 50);
}

TEST(CollectiveTimes, TheBestOfThreeLevelsIsNearTheBound) {
  const Scenario scenario = three_levels(2);
  const plan::Collective asked =
      flat(CollectiveKind::all_reduce, 16, Bytes{13'500'000'000}, Algorithm::ring);
  const CollectiveTime best = best_collective(asked, scenario).or_throw();
  const Duration bound = bound_of_collective(asked, scenario).lower_bound;
  EXPECT_GE(best.duration, bound);
  EXPECT_LE(static_cast<double>(best.duration.count()), 1.02 * static_cast<double>(bound.count()));
  EXPECT_GT(best.collective.pieces, 1);
}

// A ring over equal hops takes what schedule::ring_time() says.
TEST(CollectiveTimes, OfPlainRingsAreThoseOfTheFormula) {
  for (const int members : {2, 3, 5, 8}) {
    const Scenario scenario = scenario_of(
        {.gpus = members, .interfaces = "device = \"2GB/s\"\ndevice_latency = \"70us\""});
    const Bytes size{members * 3'000'000};
    const schedule::RingHop hop{Bandwidth{16e9}, 70us};
    const Duration once = schedule::ring_time(hop, size, members);
    EXPECT_EQ(time_of(flat(CollectiveKind::all_gather, members, size, Algorithm::ring), scenario),
              once);
    EXPECT_EQ(
        time_of(flat(CollectiveKind::reduce_scatter, members, size, Algorithm::ring), scenario),
        once);
    EXPECT_EQ(time_of(flat(CollectiveKind::all_reduce, members, size, Algorithm::ring), scenario),
              2 * once);
  }
}

/// Levels and rates drawn by `random`.
Levels random_levels(std::mt19937_64& random) {
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution{least, most}(random);
  };
  Levels levels{.datacenters = draw(1, 3), .nodes = draw(1, 3), .gpus = draw(1, 4)};
  levels.interfaces = fmt::format(
      "device = \"{}Gbps\"\ndevice_latency = \"{}us\"\ninternal = \"{}Gbps\"\n"
      "internal_latency = \"{}us\"\negress = \"{}Gbps\"\ningress = \"{}Gbps\"",
      draw(100, 900), draw(0, 9), draw(20, 90), draw(0, 50), draw(1, 9), draw(1, 9));
  levels.link = fmt::format("latency = \"{}ms\"\n", draw(0, 40));
  if (draw(0, 1) == 1)
    levels.link += fmt::format("bandwidth = \"{}Gbps\"\nsharing = \"{}\"", draw(1, 20),
                               draw(0, 1) == 1 ? "pair" : "datacenter");
  return levels;
}

// Half a nanosecond of rounding a message along the chain that ends last.
TEST(CollectiveTimes, NoAlgorithmIsBelowTheBoundAndNoneAboveTheBestOne) {
  std::mt19937_64 random{5};
  for (int i = 0; i < 40; ++i) {
    const Levels levels = random_levels(random);
    const int members = levels.datacenters * levels.nodes * levels.gpus;
    if (members < 2 || members > 12) continue;
    const Scenario scenario = scenario_of(levels);
    const auto kind = static_cast<CollectiveKind>(i % kCountOf<CollectiveKind>);
    plan::Collective asked =
        flat(kind, members, Bytes{1'000'000 * (1 + i % 7) + i}, Algorithm::ring);
    const CollectiveTime best = best_collective(asked, scenario).or_throw();
    const Duration bound = bound_of_collective(asked, scenario).lower_bound;
    EXPECT_GE(best.duration, bound - Duration{static_cast<std::int64_t>(best.messages)}) << i;
    for (const int pieces : {1, 2, 8}) {
      for (plan::Collective each : every_algorithm(asked, scenario)) {
        each.pieces = pieces;
        const Duration duration = time_of(each, scenario);
        EXPECT_GE(duration, best.duration)
            << i << ' ' << to_string(each.algorithm) << ' ' << pieces;
        EXPECT_GE(duration, bound - 1us) << i << ' ' << to_string(each.algorithm);
      }
    }
  }
}

/// Meshes of two levels and of three, and none of one.
TEST(EveryAlgorithm, IsHierarchicalWhereThereAreLevels) {
  const auto meshes = [](const Levels& levels, int members) {
    std::vector<std::vector<int>> sizes;
    for (const plan::Collective& each :
         every_algorithm(flat(CollectiveKind::all_reduce, members, Bytes{1'000}, Algorithm::ring),
                         scenario_of(levels)))
      if (each.algorithm == Algorithm::hierarchical) sizes.push_back(each.mesh.sizes);
    return sizes;
  };
  using Sizes = std::vector<std::vector<int>>;
  EXPECT_EQ(meshes({.gpus = 4}, 4), Sizes{});
  EXPECT_EQ(meshes({.nodes = 2, .gpus = 3}, 6), (Sizes{{2, 3}}));
  EXPECT_EQ(meshes({.datacenters = 2, .nodes = 2, .gpus = 2}, 8), (Sizes{{2, 2, 2}}));
}

/// How many members lie in each used node, by datacenter.
using GroupShape = std::vector<std::vector<int>>;

/// So many of 0 to `most` - 1, ascending.
std::vector<int> some_of(int count, int most, std::mt19937_64& random) {
  std::vector<int> all(to_size(most)), drawn;
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sample(all, std::back_inserter(drawn), count, random);
  return drawn;
}

GroupShape random_shape(const Levels& levels, std::mt19937_64& random) {
  GroupShape shape(to_size(levels.datacenters));
  for (std::vector<int>& nodes : shape) {
    nodes.resize(to_size(std::uniform_int_distribution{1, levels.nodes}(random)));
    for (int& members : nodes) members = std::uniform_int_distribution{1, levels.gpus}(random);
  }
  return shape;
}

/// The same shape on nodes and GPUs that are drawn anew.
std::vector<Rank> placed(const GroupShape& shape, const Levels& levels, std::mt19937_64& random) {
  std::vector<Rank> members;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<int> nodes = some_of(static_cast<int>(shape[d].size()), levels.nodes, random);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const int first = (static_cast<int>(d) * levels.nodes + nodes[i]) * levels.gpus;
      for (const int gpu : some_of(shape[d][i], levels.gpus, random))
        members.push_back(Rank{first + gpu});
    }
  }
  return members;
}

// A collective knows its group by how many members lie together in nodes and datacenters, in order
// of rank. Which of the equal nodes, and of the equal GPUs of a node, these are changes no time: so
// neither does a renumbering of nodes that keeps that order, such as any where each used node has
// as many members.
TEST(CollectiveTimes, RenumberingEqualNodesChangesNone) {
  std::mt19937_64 random{15};
  int moved = 0;
  for (int i = 0; i < 60; ++i) {
    Levels levels = random_levels(random);
    levels.nodes = std::uniform_int_distribution{2, 4}(random);
    const Scenario scenario = scenario_of(levels);
    const GroupShape shape = random_shape(levels, random);
    plan::Collective asked{static_cast<CollectiveKind>(i % kCountOf<CollectiveKind>),
                           placed(shape, levels, random),
                           Bytes{3'000'000 + 7 * i},
                           Algorithm::ring,
                           {},
                           1 + i % 3};
    if (asked.members.size() < 2) continue;
    for (plan::Collective each : every_algorithm(asked, scenario)) {
      const Duration time = time_of(each, scenario);
      for (int again = 0; again < 3; ++again) {
        each.members = placed(shape, levels, random);
        moved += each.members != asked.members ? 1 : 0;
        EXPECT_EQ(time_of(each, scenario), time) << i << ' ' << to_string(each.algorithm);
      }
    }
  }
  EXPECT_GT(moved, 200);
}

// Three nodes of 2, 1 and 1 members: in another order the tree crosses nodes elsewhere. 2 MB take
// 400 us between nodes and 3 us more; the last message is of 4 MB.
TEST(CollectiveTimes, AnotherOrderOfUnequalNodesIsAnotherTree) {
  const Scenario scenario = scenario_of({.nodes = 3,
                                         .gpus = 2,
                                         .interfaces = "device = \"40GB/s\"\ninternal = \"5GB/s\"\n"
                                                       "internal_latency = \"3us\""});
  const auto time = [&](std::vector<Rank> members) {
    return time_of(
        {CollectiveKind::gather, std::move(members), Bytes{8'000'000}, Algorithm::tree, {}, 1},
        scenario);
  };
  EXPECT_EQ(time({Rank{0}, Rank{1}, Rank{2}, Rank{4}}), 1206us);
  EXPECT_EQ(time({Rank{0}, Rank{1}, Rank{3}, Rank{5}}), 1206us);
  EXPECT_EQ(time({Rank{0}, Rank{2}, Rank{4}, Rank{5}}), 1203us) << "both others share a node";
}

TEST(CollectiveTimes, AGroupOfUnequalNodesHasNoMesh) {
  const Scenario scenario =
      scenario_of({.nodes = 2, .gpus = 2, .interfaces = "internal = \"1GB/s\""});
  EXPECT_EQ(*mesh_of_levels(testing::first_ranks(4), scenario), (std::vector{2, 2}));
  EXPECT_EQ(*mesh_of_levels(testing::first_ranks(2), scenario), (std::vector{2}));
  EXPECT_FALSE(mesh_of_levels(testing::first_ranks(3), scenario));
}

}  // namespace
}  // namespace longhaul::planner
