#include "training/parts/part_ops.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::training {
namespace {

/// `west` replicas in one site, `east` in another; parts of a chunk.
Scenario sites_of(int west, int east, SetExchange exchange) {
  const auto places = [](int first, int count) {
    return fmt::format("{}-{}", first, first + count - 1);
  };
  std::string text = fmt::format(R"([costs]
forward = "3ms"
backward = "6ms"
weights = "4MB"
[parallel]
stages = 1
replicas = {}
microbatches = 1
gradient_sync = "compressed"
[train]
parts = 3
[train.compress]
exchange = "{}"
[train.costs]
compress = "1ms"
merge = "1ms"
[[datacenter]]
name = "west"
replicas = "{}"
)",
                                 west + east, to_string(exchange), places(0, west));
  if (east > 0)
    text += fmt::format(R"([[datacenter]]
name = "east"
replicas = "{}"
[[link]]
between = ["west", "east"]
latency = "1ms"
bandwidth = "1Gbps"
)",
                        places(west, east));
  return scenario::parse_scenario(text, "test", {});
}

/// Whose set a message brings, or of which site: followed to where it began.
struct Origin {
  int member = 0;
  bool of_site = false;
};
Origin origin_of(const plan::SetExchangeSteps& steps, int message) {
  while (steps.messages[to_size(message)].brought_by >= 0)
    message = steps.messages[to_size(message)].brought_by;
  return {steps.messages[to_size(message)].from, steps.messages[to_size(message)].of_site};
}

/// Of three parts, so many exchanges one after the other.
plan::PartExchanges in_rounds(int rounds) {
  plan::PartExchanges exchanges;
  exchanges.sizes.assign(3, std::vector<Bytes>(to_size(rounds), Bytes{1000}));
  return exchanges;
}

void expect_all_sets_once(const Scenario& scenario, int west, int rounds) {
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  const plan::PartExchanges exchanges = in_rounds(rounds);
  const Plan plan = plan::lower_exchanges(schedule, scenario, exchanges);
  const int members = scenario.parallel.replicas;
  for (int self = 0; self < members; ++self) {
    const PartOps ops{plan, schedule, scenario, Rank{self}, exchanges};
    ASSERT_EQ(ops.parts().size(), 3U);
    for (const PlannedPart& part : ops.parts())
      for (int round = 0; round < rounds; ++round) {
        std::vector<int> order;
        const bool through_sites = !part.steps.choices.empty();
        for (const int message : part.rounds[to_size(round)].sum_of) {
          EXPECT_TRUE(message < 0 || part.steps.messages[to_size(message)].round == round);
          const Origin from =
              message < 0 ? Origin{self, through_sites} : origin_of(part.steps, message);
          EXPECT_EQ(from.of_site, through_sites);
          order.push_back(through_sites ? (from.member < west ? 0 : 1) : from.member);
        }
        std::vector<int> all(through_sites ? (members > west ? 2U : 1U) : to_size(members));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
        EXPECT_EQ(order, all) << "rank " << self << " sums in the order of "
                              << (through_sites ? "sites" : "replicas");
      }
  }
}

TEST(PartOps, SumEachSetOnceInTheSameOrderEverywhere) {
  for (const auto& [west, east] : {std::pair{1, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 0}, {1, 3}})
    for (const SetExchange exchange : every<SetExchange>()) {
      SCOPED_TRACE(fmt::format("{} and {}, {}", west, east, to_string(exchange)));
      for (const int rounds : {1, 2})
        expect_all_sets_once(sites_of(west, east, exchange), west, rounds);
    }
}

TEST(PartOps, KnowEveryTaskAndMessageOfTheirRank) {
  for (const SetExchange exchange : every<SetExchange>())
    for (const int rounds : {1, 2}) {
      const Scenario scenario = sites_of(3, 2, exchange);
      const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
      const plan::PartExchanges exchanges = in_rounds(rounds);
      const Plan plan = plan::lower_exchanges(schedule, scenario, exchanges);
      for (int self = 0; self < 5; ++self) {
        const PartOps ops{plan, schedule, scenario, Rank{self}, exchanges};
        std::map<PartTask, int> tasks;
        const OpRange range = ops_of_rank(plan, Rank{self});
        int blocks = 0, sends = 0;
        for (std::uint32_t i = 0; i < range.count; ++i) {
          const OpId id{range.first + i};
          const Op& op = plan.op(id);
          if (op.kind == OpKind::compute && ops.task_of(id) == nullptr) ++blocks;
          if (ops.task_of(id) != nullptr) ++tasks[ops.task_of(id)->task];
          if (op.kind != OpKind::compute) {
            ASSERT_NE(ops.message_of(id), nullptr);
            const plan::SetMessage& message =
                ops.parts()[ops.message_of(id)->part]
                    .steps.messages[to_size(ops.message_of(id)->message)];
            EXPECT_EQ(op.kind == OpKind::send ? message.from : message.to, self);
            EXPECT_EQ(Rank{op.kind == OpKind::send ? message.to : message.from}, op.peer);
            sends += op.kind == OpKind::send ? 1 : 0;
          }
        }
        EXPECT_EQ(blocks, 6) << "F and B of three parts";
        EXPECT_EQ(tasks[PartTask::answer], 3 * (rounds - 1));
        EXPECT_EQ(tasks[PartTask::compress], 3);
        int told = 0;
        for (const PlannedPart& part : ops.parts()) told += part.sends;
        EXPECT_EQ(told, sends);
      }
    }
}

/// At each choosing rank, the sets of its site in the order of replicas, its own in its place.
TEST(PartOps, SitesChooseFromTheirOwnInOrder) {
  const Scenario scenario = sites_of(3, 2, SetExchange::sites);
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  const Plan plan = plan::lower(schedule, scenario);
  std::map<int, int> choosers;
  for (int self = 0; self < 5; ++self) {
    const PartOps ops{plan, schedule, scenario, Rank{self}};
    for (const PlannedPart& part : ops.parts()) {
      const std::vector<int>& choice_of = part.rounds.front().choice_of;
      if (choice_of.empty()) continue;
      ++choosers[part.trained.number];
      std::vector<int> from;
      for (const int message : choice_of)
        from.push_back(message < 0 ? self : part.steps.messages[to_size(message)].from);
      EXPECT_EQ(from, self < 3 ? (std::vector{0, 1, 2}) : (std::vector{3, 4}));
    }
  }
  EXPECT_EQ(choosers, (std::map<int, int>{{0, 2}, {1, 2}, {2, 2}}));
}

/// Replicas 0 and 1, 2, and 3 and 4 are nodes: each node's set is summed once, by those that lead.
TEST(PartOps, SumTheSetOfEachNodeOnce) {
  for (const SetExchange exchange : every<SetExchange>()) {
    Scenario scenario = sites_of(3, 2, exchange);
    scenario.train.gather = GradientGather::node;
    for (const DatacenterId site : {DatacenterId{0}, DatacenterId{1}}) {
      scenario.nodes.push_back({.datacenter = site, .gpus = 2, .egress = {}, .ingress = {}});
    }
    const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
    const Plan plan = plan::lower(schedule, scenario);
    for (int self = 0; self < 5; ++self) {
      SCOPED_TRACE(fmt::format("{}, rank {}", to_string(exchange), self));
      const PartOps ops{plan, schedule, scenario, Rank{self}};
      EXPECT_EQ(ops.sets(), 3);
      const bool leads = self == 0 || self == 2 || self == 3;
      for (const PlannedPart& part : ops.parts()) {
        EXPECT_EQ(part.leads, leads);
        EXPECT_EQ(part.is_gathered(), self != 2);
        EXPECT_EQ(part.gradients.size(), self == 0 || self == 3 ? 1U : 0U);
        EXPECT_EQ(part.has_compress, leads);
        EXPECT_TRUE(leads || part.has_copy_in);
        if (!leads) {
          EXPECT_EQ(part.sends, 1) << "its gradient";
          continue;
        }
        std::vector<int> order;
        const bool through_sites = !part.steps.choices.empty();
        for (const int message : part.rounds[0].sum_of) {
          const Origin from =
              message < 0 ? Origin{self, through_sites} : origin_of(part.steps, message);
          order.push_back(through_sites ? (from.member < 3 ? 0 : 1) : from.member);
        }
        EXPECT_EQ(order, through_sites ? (std::vector{0, 1}) : (std::vector{0, 2, 3}));
      }
    }
  }
}

/// Four microbatches and two fragments of three parts, mixed in a microbatch later.
TEST(PartOps, ExchangeFragmentsInTheMiddleOfAnIteration) {
  Scenario scenario = sites_of(1, 1, SetExchange::direct);
  scenario.parallel.microbatches = 4;
  const Schedule schedule = planner::make_schedule("stella", scenario).schedule;
  plan::PartExchanges exchanges;
  exchanges.fragments = 2;
  exchanges.overlap = 1;
  const Plan plan = plan::lower_exchanges(schedule, scenario, exchanges);
  const PartOps ops{plan, schedule, scenario, Rank{0}, exchanges};
  for (const PlannedPart& part : ops.parts()) {
    const bool first = part.trained.number != 1;  // parts 0 and 2
    const Op &gives = plan.op(part.last_gradient), &takes = plan.op(part.first_forward);
    EXPECT_EQ(gives.block_kind, BlockKind::B);
    EXPECT_EQ(number(gives.microbatch), first ? 1 : 3);
    EXPECT_EQ(takes.block_kind, BlockKind::F);
    EXPECT_EQ(number(takes.microbatch), first ? 3 : 1);
    EXPECT_EQ(part.trained.iterations_back, first ? 0 : 1);
    EXPECT_EQ(gives.part, part.trained.part);
    EXPECT_EQ(takes.part, part.trained.part);
  }
  for (const auto& [fragments, overlap] : {std::pair{4, 0}, {3, 0}, {2, 2}, {0, 0}, {2, -1}}) {
    exchanges.fragments = fragments;
    exchanges.overlap = overlap;
    EXPECT_THROW((void)plan::lower_exchanges(schedule, scenario, exchanges), Error)
        << fragments << ", " << overlap;
  }
}

}  // namespace
}  // namespace longhaul::training
