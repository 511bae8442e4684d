#include <algorithm>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/export/export.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "sim/simulate.hpp"
#include "support/astra.hpp"
#include "support/shipped.hpp"

namespace longhaul {
namespace {

using testing::AstraNetwork;
using testing::AstraSimulator;
using testing::AstraSlots;
using testing::ChakraNode;
using testing::ChakraTrace;

struct ComparedNodes {
  int blocks = 0;
  int collectives = 0;
};

/// How many ranks each group of the file has: lines `"1": [0, 2]`.
std::map<std::string, int> members_of(const std::string& groups) {
  std::map<std::string, int> members;
  std::istringstream in{groups};
  for (std::string line; std::getline(in, line);) {
    const std::size_t name = line.find('"');
    if (name == std::string::npos) continue;
    const std::size_t list = line.find('[');
    members[line.substr(name + 1, line.find('"', name + 1) - name - 1)] =
        1 + static_cast<int>(std::count(line.begin() + static_cast<std::ptrdiff_t>(list),
                                        std::find(line.begin(), line.end(), ']'), ','));
  }
  return members;
}

/// Every block, collective and step's arrival as ASTRA-sim's rules give it is ours, to the
/// nanosecond.
void expect_our_times(const Plan& plan, AstraNetwork network, AstraSlots slots,
                      ComparedNodes& compared) {
  const OpTimes times = sim::simulate(plan);
  std::vector<testing::ChakraTrace> traces;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    std::ostringstream out;
    const auto rounding = plan::export_chakra(plan, Rank{static_cast<int>(rank)}, out);
    if (rounding.error != Duration{}) return;  // parts of blocks are no whole microseconds
    traces.push_back(testing::read_chakra(out.str()));
  }
  const std::map<std::string, int> members = members_of(plan::chakra_groups(plan));
  const auto played = AstraSimulator::play(traces, members, network, slots);
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    for (std::size_t i = 0; i < traces[rank].nodes.size(); ++i) {
      const ChakraNode& node = traces[rank].nodes[i];
      const OpKind kind = plan.ops[node.id].kind;
      const bool comes = kind == OpKind::recv && is_step(plan.ops[node.id]);
      if (kind == OpKind::send || (kind == OpKind::recv && !comes)) continue;
      ASSERT_EQ(played[rank][i].end, times[node.id].end.count()) << rank << ": " << node.name;
      ++(kind == OpKind::compute ? compared.blocks : compared.collectives);
    }
  }
}

/// Does a rank have two messages on their way at once, or one beside a collective?
bool sends_two_at_once(const Plan& plan) {
  const OpTimes times = sim::simulate(plan);
  std::vector<std::vector<std::pair<Duration, Duration>>> busy(plan.ranks.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const std::size_t rank = index(plan.rank_of(OpId{static_cast<std::uint32_t>(i)}));
    if (op.kind == OpKind::send) busy[rank].emplace_back(times[i].ready, times[op.match].end);
    if (op.kind == OpKind::collective) busy[rank].emplace_back(times[i].ready, times[i].end);
  }
  for (auto& spans : busy) {
    std::ranges::sort(spans);
    for (std::size_t i = 1; i < spans.size(); ++i)
      if (spans[i].first < spans[i - 1].second) return true;
  }
  return false;
}

/// A stage in each datacenter, blocks of whole microseconds, a nanosecond for each byte.
Scenario random_scenario(std::uint64_t seed, AstraNetwork& network) {
  Random random{seed};
  const auto draw = [&](int low, int high) { return static_cast<int>(random.between(low, high)); };
  const int stages = draw(2, 6);
  Scenario scenario = uniform_scenario(stages, stages * draw(1, 2));
  for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad,
                      &scenario.costs.backward, &scenario.costs.recompute}) {
    for (Duration& time : *times) time = Duration{24'000 * draw(1, 8)};
  }
  network = {draw(0, 3) == 0 ? draw(100'000, 900'000) : draw(0, 9'000), 1};
  std::ranges::fill(scenario.costs.message, Bytes{draw(0, 3) == 0 ? 100'000 : draw(0, 9'000)});
  scenario = spread(scenario, stages, Duration{network.latency}, Duration{});
  for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
  return scenario;
}

TEST(ExportChakra, TakesOurTimesWhereMessagesMayOverlap) {
  ComparedNodes compared;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    AstraNetwork network;
    const Scenario scenario = random_scenario(seed, network);
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      Scenario without = scenario;
      without.parallel.gradient_sync = GradientSync::none;
      const Plan plan = plan::lower(schedule::generate(generator.name, without), without);
      expect_our_times(plan, network, AstraSlots::any, compared);
    }
  }
  EXPECT_GT(compared.blocks, 10'000);
}

TEST(ExportChakra, TakesOurTimesInOneSlotWhileNoRankSendsTwoAtOnce) {
  ComparedNodes compared;
  int plans = 0;
  int left_out = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    AstraNetwork network;
    Scenario scenario = random_scenario(seed, network);
    scenario.parallel.gradient_sync = GradientSync::none;
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const Plan plan = plan::lower(schedule::generate(generator.name, scenario), scenario);
      if (sends_two_at_once(plan)) {
        ++left_out;
        continue;
      }
      expect_our_times(plan, network, AstraSlots::one, compared);
      ++plans;
    }
  }
  EXPECT_GT(plans, 50);
  EXPECT_GT(left_out, 50);
}

// Latency of 76 ms, blocks of 38 ms: several messages of a boundary are on their way at once.
TEST(ExportChakra, TakesOurTimesOnPresets) {
  ComparedNodes compared;
  for (const std::string name : {"m70-2dc", "m70-4dc"}) {
    Scenario scenario = scenario::load_scenario(
        testing::in_checkout("benchmarks/scenarios/") + name + ".toml", std::vector<std::string>{});
    // ASTRA-sim's network is equal for all pairs.
    scenario = spread(scenario, scenario.parallel.stages, Duration{76'000'000}, Duration{});
    scenario.parallel.gradient_sync = GradientSync::none;
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << name << ", " << generator.name);
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      const Plan plan = plan::lower(*schedule, scenario);
      expect_our_times(plan, {76'000'000, 0}, AstraSlots::any, compared);
    }
  }
  EXPECT_GT(compared.blocks, 5'000);
}

TEST(ExportChakra, RingsTakeOurTimes) {
  for (const int replicas : {2, 3}) {
    for (const GradientSync sync : {GradientSync::all_reduce, GradientSync::zero1}) {
      ComparedNodes compared;
      Scenario scenario = uniform_scenario(2, 4, Duration{40'000});
      scenario.parallel.replicas = replicas;
      scenario.parallel.gradient_sync = sync;
      std::ranges::fill(scenario.costs.weights, Bytes{6'000'000});
      scenario.costs.message.assign(2, Bytes{2'000});
      scenario = spread(scenario, 2, Duration{70'000}, Duration{});
      // Each rank in a datacenter of its own, equally far from all others.
      scenario.datacenters.clear();
      scenario.placement.clear();
      scenario.links.clear();
      for (int rank = 0; rank < scenario.ranks(); ++rank) {
        scenario.datacenters.emplace_back().name = "site" + std::to_string(rank);
        scenario.placement.push_back(DatacenterId{rank});
        for (int other = 0; other < scenario.ranks(); ++other) {
          if (other == rank) continue;
          Link link;
          link.from = DatacenterId{rank};
          link.to = DatacenterId{other};
          link.latency = Duration{70'000};
          link.bandwidth = 8_Gbps;
          scenario.links.push_back(link);
        }
      }
      for (const std::string name : {"1f1b", "zb-h1", "gpipe"}) {
        SCOPED_TRACE(::testing::Message() << name << ", " << replicas << " replicas");
        const Plan plan = plan::lower(schedule::generate(name, scenario), scenario);
        expect_our_times(plan, {70'000, 1}, AstraSlots::any, compared);
      }
      EXPECT_GT(compared.collectives, 0);
    }
  }
}

}  // namespace
}  // namespace longhaul
