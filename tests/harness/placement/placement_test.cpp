#include "harness/placement/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Hosts of so many slots, filled one after the other.
std::vector<AllocatedHost> hosts(const std::vector<int>& slots) {
  std::vector<AllocatedHost> all;
  int next = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    all.push_back({fmt::format("n{}", i + 1), {}});
    for (int slot = 0; slot < slots[i]; ++slot) all.back().processes.push_back(next++);
  }
  return all;
}

/// Two datacenters of two stages each.
Scenario two(int replicas) {
  Scenario scenario = uniform_scenario(4, 4, 10ms);
  scenario.parallel.replicas = replicas;
  return spread(scenario, 2, 10ms, 1ms);
}

std::vector<int> numbers(const PlacedRanks& placed) {
  std::vector<int> ranks;
  for (const Rank rank : placed.rank_of) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

TEST(Placement, LeavesWhatFits) {
  const PlacedRanks placed = place_ranks(two(1), hosts({2, 2}), {});
  EXPECT_TRUE(placed.is_as_started());
  EXPECT_THAT(placed.warnings, IsEmpty());
}

TEST(Placement, LetsOneHostStandForAll) {
  const PlacedRanks placed = place_ranks(two(2), hosts({8}), {{Rank{0}, Rank{7}}});
  EXPECT_TRUE(placed.is_as_started());
  EXPECT_THAT(placed.warnings, IsEmpty());
}

/// Replica by replica the hosts would hold both datacenters: 0 1 | 2 3 of each replica of 4.
TEST(Placement, GivesDatacentersWholeHosts) {
  const PlacedRanks placed = place_ranks(two(2), hosts({4, 4}), {});
  EXPECT_THAT(numbers(placed), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(placed.warnings, IsEmpty());
}

TEST(Placement, FindsHostsOfTheRightSizes) {
  Scenario scenario = two(1);
  scenario.placement = {DatacenterId{0}, DatacenterId{0}, DatacenterId{0}, DatacenterId{1}};
  EXPECT_THAT(numbers(place_ranks(scenario, hosts({1, 3}), {})), ElementsAre(3, 0, 1, 2));
  EXPECT_THAT(numbers(place_ranks(scenario, hosts({1, 2, 1}), {})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(numbers(place_ranks(scenario, hosts({2, 1, 1}), {})), ElementsAre(0, 1, 2, 3));
}

TEST(Placement, KeepsProcessesThatAreSpreadRoundRobin) {
  const std::vector<AllocatedHost> alternating{{"n1", {0, 2, 4, 6}}, {"n2", {1, 3, 5, 7}}};
  const PlacedRanks placed = place_ranks(two(2), alternating, {});
  EXPECT_THAT(numbers(placed), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(Placement, WarnsWhereDatacentersHaveToShareAHost) {
  const PlacedRanks placed = place_ranks(two(1), hosts({3, 1}), {});
  EXPECT_THAT(numbers(placed), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(placed.warnings,
              ElementsAre(::testing::AllOf(HasSubstr("datacenters share hosts: n1 (dc0, dc1)"),
                                           HasSubstr("--nodes=2 --ntasks-per-node=2"))));
}

TEST(Placement, KeepsThoseTogetherThatLeaseTogether) {
  const std::vector<RankGroup> groups{{Rank{0}, Rank{5}}, {Rank{1}, Rank{4}}};
  const PlacedRanks placed = place_ranks(two(2), hosts({2, 2, 2, 2}), groups);
  EXPECT_THAT(numbers(placed), ElementsAre(0, 5, 1, 4, 2, 3, 6, 7));
}

TEST(Placement, PartsALeaseWhereItMustAndSaysWhatFits) {
  Scenario scenario = two(2);
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const auto groups = ranks_that_lease_together({&plan});
  ASSERT_THAT(groups, ElementsAre(RankGroup{Rank{1}, Rank{5}}, RankGroup{Rank{2}, Rank{6}}));
  const PlacedRanks parted = place_ranks(scenario, hosts(std::vector(8, 1)), groups);
  EXPECT_TRUE(parted.is_as_started());
  EXPECT_THAT(parted.warnings,
              ElementsAre(::testing::AllOf(HasSubstr("4 ranks share links or interfaces with ranks "
                                                     "of other hosts"),
                                           HasSubstr("--nodes=2 --ntasks-per-node=4"))));
  EXPECT_THAT(place_ranks(scenario, hosts({4, 4}), groups).warnings, IsEmpty());
  EXPECT_THAT(place_ranks(scenario, hosts({2, 2, 2, 2}), groups).warnings, IsEmpty());
}

/// All of a datacenter share a link, and its two hosts have room for half of them each: they stay
/// on the datacenter's hosts.
TEST(Placement, KeepsDatacentersWholeWhereALeaseIsParted) {
  const std::vector<RankGroup> groups{{Rank{0}, Rank{1}, Rank{4}, Rank{5}}};
  const std::vector<AllocatedHost> mixed{
      {"n1", {0, 3}}, {"n2", {1, 2}}, {"n3", {4, 7}}, {"n4", {5, 6}}};
  const PlacedRanks placed = place_ranks(two(2), mixed, groups);
  EXPECT_THAT(numbers(placed), ElementsAre(0, 4, 5, 1, 2, 6, 7, 3));
  EXPECT_THAT(placed.warnings, ElementsAre(HasSubstr("4 ranks share links or interfaces")));
}

TEST(LeaseGroups, AreEmptyWherePairsHaveLinksOfTheirOwn) {
  const Scenario scenario = two(2);
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  EXPECT_THAT(ranks_that_lease_together({&plan}), IsEmpty());
}

TEST(FittingAllocation, IsTheLargestThatKeepsDatacentersApart) {
  EXPECT_THAT(fitting_allocation(two(2), {}), HasSubstr("--nodes=2 --ntasks-per-node=4"));
  EXPECT_THAT(fitting_allocation(two(2), {}, 3), HasSubstr("--nodes=4 --ntasks-per-node=2"));
  EXPECT_THAT(fitting_allocation(two(2), {{Rank{0}, Rank{7}}}),
              HasSubstr("--nodes=1 --ntasks-per-node=8"))
      << "a lease across datacenters";
}

TEST(FittingAllocation, NamesTheSlotsWhereDatacentersDiffer) {
  Scenario scenario = uniform_scenario(7, 4, 10ms);
  scenario = spread(scenario, 2, 10ms, 1ms);
  EXPECT_THAT(fitting_allocation(scenario, {}), HasSubstr("NODE1 slots=4  # dc0\n  NODE2 slots=3"));
}

/// Whatever the hosts: each rank is played once; hosts are whole or it says so; groups are kept, or
/// it says that too, which happens only where no host has room for one.
TEST(Placement, HoldsWhatItPromisesOnRandomHosts) {
  Random random{11};
  int parted = 0, placed_anew = 0;
  for (int i = 0; i < 500; ++i) {
    const Scenario scenario = two(static_cast<int>(random.between(1, 4)));
    const std::int64_t most = random.between(1, 6);
    std::vector<int> slots;
    for (int left = scenario.ranks(); left > 0; left -= slots.back())
      slots.push_back(static_cast<int>(random.between(1, std::min<std::int64_t>(left, most))));
    std::vector<RankGroup> groups;
    if (random.between(0, 1) == 1)
      groups.push_back({Rank{1}, Rank{static_cast<std::int32_t>(scenario.ranks() - 3)}});
    if (groups.size() == 1 && groups[0][0] >= groups[0][1]) groups.clear();
    const auto allocated = hosts(slots);
    PlacedRanks placed = place_ranks(scenario, allocated, groups);
    const bool says_parted =
        std::erase_if(placed.warnings, [](const std::string& warning) {
          return warning.find("share links or interfaces") != std::string::npos;
        }) > 0;
    if (says_parted) {
      ++parted;
      EXPECT_FALSE(groups.empty());
      EXPECT_EQ(*std::ranges::max_element(slots), 1) << "a pair finds a place on a host of two";
    }
    if (!placed.is_as_started()) ++placed_anew;
    std::vector<bool> seen(static_cast<std::size_t>(scenario.ranks()));
    for (const Rank rank : placed.rank_of) seen[index(rank)] = true;
    EXPECT_THAT(seen, ::testing::Each(true));
    bool whole = true;
    for (const AllocatedHost& host : allocated) {
      const auto at = [&](int process) {
        return placed.rank_of[static_cast<std::size_t>(process)];
      };
      for (const int process : host.processes)
        whole = whole && scenario.datacenter_of(at(process)) ==
                             scenario.datacenter_of(at(host.processes.front()));
      for (const RankGroup& group : groups) {
        const auto here = std::ranges::count_if(host.processes, [&](int process) {
          return std::ranges::find(group, at(process)) != group.end();
        });
        EXPECT_TRUE(says_parted || here == 0 || here == std::ssize(group)) << "number " << i;
      }
    }
    EXPECT_EQ(whole || allocated.size() == 1, placed.warnings.empty()) << "number " << i;
  }
  EXPECT_GT(parted, 0);
  EXPECT_GT(placed_anew, 50);
}

}  // namespace
}  // namespace longhaul::harness
