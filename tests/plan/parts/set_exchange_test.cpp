#include "plan/parts/set_exchange.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

std::vector<DatacenterId> sites_of(const std::vector<int>& sizes) {
  std::vector<DatacenterId> sites;
  for (int site = 0; site < static_cast<int>(sizes.size()); ++site)
    sites.insert(sites.end(), to_size(sizes[to_size(site)]), DatacenterId{site});
  return sites;
}

/// Bytes from site 0 to others.
Bytes over_the_wan(const SetExchangeSteps& steps, const std::vector<DatacenterId>& sites) {
  Bytes sum;
  for (const SetMessage& message : steps.messages)
    if (sites[to_size(message.from)] == DatacenterId{0} &&
        sites[to_size(message.to)] != DatacenterId{0})
      sum += message.size;
  return sum;
}

TEST(SetExchange, EightReplicasInTwoSites) {
  const auto sites = sites_of({4, 4});
  const Bytes k{1000};
  const auto wan = [&](SetExchange exchange) {
    return over_the_wan(exchange_of(exchange, sites, 3, {k, k}), sites);
  };
  EXPECT_EQ(wan(SetExchange::ring), k * 7);
  EXPECT_EQ(wan(SetExchange::direct), k * 16);
  EXPECT_EQ(wan(SetExchange::sites), k) << "a set of k a site";
}

/// Follows whose sets each member has in the end.
std::vector<std::set<int>> known_in_the_end(const SetExchangeSteps& steps,
                                            const std::vector<DatacenterId>& sites) {
  std::vector<std::set<int>> known(sites.size());
  std::vector<std::set<int>> carried;
  for (std::size_t m = 0; m < known.size(); ++m) known[m].insert(static_cast<int>(m));
  for (const SetMessage& message : steps.messages) {
    std::set<int> content{message.from};
    if (message.brought_by >= 0) {
      EXPECT_LT(to_size(message.brought_by), carried.size());
      EXPECT_EQ(steps.messages[to_size(message.brought_by)].to, message.from);
      content = carried[to_size(message.brought_by)];
    } else if (message.of_site) {
      content.clear();
      for (std::size_t m = 0; m < sites.size(); ++m)
        if (sites[m] == sites[to_size(message.from)]) content.insert(static_cast<int>(m));
    }
    known[to_size(message.to)].insert(content.begin(), content.end());
    carried.push_back(std::move(content));
  }
  return known;
}

TEST(SetExchange, AllHaveAllSetsInTheEnd) {
  for (const SetExchange exchange : every<SetExchange>()) {
    for (const auto& sizes : {std::vector{2}, {1, 1}, {4, 4}, {3, 1, 2}, {1, 5}}) {
      const auto sites = sites_of(sizes);
      for (const int part : {0, 1, 5}) {
        const SetExchangeSteps steps =
            exchange_of(exchange, sites, part, {Bytes{1000}, Bytes{2000}});
        for (const std::set<int>& known : known_in_the_end(steps, sites))
          EXPECT_EQ(known.size(), sites.size()) << to_string(exchange) << " part " << part;
        std::set<std::tuple<int, int, int>> names;  // of messages: by them ranks tell them apart
        for (const SetMessage& each : steps.messages)
          EXPECT_TRUE(names.insert({each.from, each.to, each.hop}).second) << to_string(exchange);
      }
    }
  }
}

/// Each round is an exchange of its own size, and what it brings comes from it alone.
TEST(SetExchange, FollowEachOtherInRounds) {
  const auto sites = sites_of({3, 2});
  const std::vector<SetSizes> sizes{{Bytes{100}, Bytes{200}}, {Bytes{10}, Bytes{20}}};
  for (const SetExchange exchange : every<SetExchange>()) {
    SCOPED_TRACE(to_string(exchange));
    const SetExchangeSteps steps = exchanges_of(exchange, sites, 1, sizes);
    std::set<std::tuple<int, int, int>> names;
    for (std::int32_t round = 0; round < 2; ++round) {
      const SetExchangeSteps alone = exchange_of(exchange, sites, 1, sizes[to_size(round)]);
      const std::size_t before = to_size(round) * alone.messages.size();
      ASSERT_EQ(steps.messages.size(), 2 * alone.messages.size());
      for (std::size_t i = 0; i < alone.messages.size(); ++i) {
        const SetMessage &message = steps.messages[before + i], &expected = alone.messages[i];
        EXPECT_EQ(message.round, round);
        EXPECT_EQ(message.size, expected.size);
        EXPECT_EQ(message.from, expected.from);
        EXPECT_EQ(message.to, expected.to);
        EXPECT_EQ(message.brought_by,
                  expected.brought_by < 0 ? -1 : expected.brought_by + static_cast<int>(before));
        EXPECT_TRUE(names.insert({message.from, message.to, message.hop}).second);
      }
      for (std::size_t i = 0; i < alone.choices.size(); ++i) {
        const SiteChoice& choice = steps.choices[to_size(round) * alone.choices.size() + i];
        EXPECT_EQ(choice.round, round);
        for (const std::int32_t input : choice.inputs)
          EXPECT_EQ(steps.messages[to_size(input)].to, choice.at);
      }
    }
  }
}

TEST(SetExchange, MembersOfASiteChooseInTurn) {
  const auto sites = sites_of({2, 3});
  std::set<int> choosers;
  for (int part = 0; part < 6; ++part)
    for (const SiteChoice& choice :
         exchange_of(SetExchange::sites, sites, part, {Bytes{1000}, Bytes{1000}}).choices)
      choosers.insert(choice.at);
  EXPECT_EQ(choosers.size(), 5U);
}

/// Four members in two nodes: 1 sends 0 its gradient, 3 sends 2 its own; 0 and 2 exchange sets and
/// hand their weights on.
TEST(SetExchange, OfNodesIsBetweenThoseThatLeadThem) {
  const std::vector<SetSizes> sizes{{Bytes{100}, Bytes{100}}};
  const SetExchangeSteps steps =
      exchanges_of_nodes(SetExchange::ring, sites_of({2, 2}), {0, 0, 2, 2}, 5, sizes, Bytes{4000});
  std::vector<std::tuple<int, int, NodeLeg, std::int64_t>> found;
  for (const SetMessage& each : steps.messages) {
    EXPECT_EQ(each.hop, 0);
    found.emplace_back(each.from, each.to, each.leg, each.size.count());
  }
  const std::vector<std::tuple<int, int, NodeLeg, std::int64_t>> expected{
      {0, 2, NodeLeg::none, 100},      {2, 0, NodeLeg::none, 100},
      {1, 0, NodeLeg::gradient, 4000}, {0, 1, NodeLeg::weights, 4000},
      {3, 2, NodeLeg::gradient, 4000}, {2, 3, NodeLeg::weights, 4000}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(count_leaders(steps.leaders, 4), 2);
  EXPECT_TRUE(steps.leads(0) && !steps.leads(1) && steps.leads(2) && !steps.leads(3));
}

/// Whatever the exchange, it is that of the leaders alone, under their own names.
TEST(SetExchange, OfNodesIsThatOfTheirLeaders) {
  const auto sites = sites_of({4, 1, 2});
  const std::vector<std::int32_t> leaders{0, 0, 2, 2, 4, 5, 6}, members{0, 2, 4, 5, 6};
  const std::vector<SetSizes> sizes{{Bytes{10}, Bytes{20}}};
  for (const SetExchange exchange : every<SetExchange>())
    for (const int part : {0, 1, 3}) {
      const SetExchangeSteps steps =
          exchanges_of_nodes(exchange, sites, leaders, part, sizes, Bytes{1000});
      const SetExchangeSteps alone = exchanges_of(exchange, sites_of({2, 1, 2}), part, sizes);
      ASSERT_EQ(steps.messages.size(), alone.messages.size() + 4);
      for (std::size_t i = 0; i < alone.messages.size(); ++i) {
        EXPECT_EQ(steps.messages[i].from, members[to_size(alone.messages[i].from)]);
        EXPECT_EQ(steps.messages[i].to, members[to_size(alone.messages[i].to)]);
        EXPECT_EQ(steps.messages[i].brought_by, alone.messages[i].brought_by);
      }
      ASSERT_EQ(steps.choices.size(), alone.choices.size());
      for (std::size_t i = 0; i < alone.choices.size(); ++i)
        EXPECT_EQ(steps.choices[i].at, members[to_size(alone.choices[i].at)]);
      std::set<std::tuple<int, int, int>> names;
      for (const SetMessage& each : steps.messages)
        EXPECT_TRUE(names.insert({each.from, each.to, each.hop}).second) << to_string(exchange);
    }
}

TEST(SetExchange, OneMemberSendsNothing) {
  for (const SetExchange exchange : every<SetExchange>())
    EXPECT_TRUE(
        exchange_of(exchange, sites_of({1}), 0, {Bytes{1000}, Bytes{1000}}).messages.empty());
}

}  // namespace
}  // namespace longhaul::plan
