#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/export/export.hpp"
#include "plan/export/protobuf.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "support/bidirectional.hpp"
#include "support/cells.hpp"
#include "support/chakra.hpp"

namespace longhaul::plan {
namespace {

using testing::ChakraNode;
using testing::ChakraTrace;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Written {
  testing::ChakraTrace trace;
  ChakraRounding rounding;
};

Written written(const Plan& plan, int rank) {
  std::ostringstream out;
  const ChakraRounding rounding = export_chakra(plan, Rank{rank}, out);
  return {testing::read_chakra(out.str()), rounding};
}

std::vector<testing::ChakraTrace> traces_of(const Plan& plan) {
  std::vector<testing::ChakraTrace> traces;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    traces.push_back(written(plan, static_cast<int>(rank)).trace);
  return traces;
}

constexpr std::uint64_t kCompute = 4;
constexpr std::uint64_t kSend = 5;
constexpr std::uint64_t kReceive = 6;
constexpr std::uint64_t kCollective = 7;

TEST(ProtobufMessage, IsWhatTheEncodingGuideShows) {
  // The guide's examples: field 1 = 150; field 2 = "testing"; a message in field 3.
  EXPECT_EQ(ProtobufMessage{}.number(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage{}.text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtobufMessage{}.message(3, ProtobufMessage{}.number(1, 150)).bytes(),
            "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage{}.number(1, 150).delimited(), "\x03\x08\x96\x01");
  EXPECT_EQ(ProtobufMessage{}.number(27, 1).bytes(), "\xd8\x01\x01");  // a key of two bytes
}

TEST(ExportChakra, HoldsBlocksAndMessages) {
  const Scenario scenario = uniform_scenario(2, 1, Duration{40'000});
  const Written first = written(lower(schedule::generate("1f1b", scenario), scenario), 0);
  EXPECT_EQ(first.trace.version, "0.0.4");
  ASSERT_EQ(first.trace.nodes.size(), 4u);
  const auto& [forward, backward, send, receive] = std::tie(
      first.trace.nodes[0], first.trace.nodes[1], first.trace.nodes[2], first.trace.nodes[3]);
  EXPECT_EQ(forward.name, "0F0");
  EXPECT_EQ(forward.type, kCompute);
  EXPECT_EQ(forward.duration_micros, 40u);
  EXPECT_EQ(forward.number.at("is_cpu_op"), 0u);
  EXPECT_THAT(forward.data, IsEmpty());
  EXPECT_THAT(backward.data, ElementsAre(3, 0));  // its gradient, and the block before
  EXPECT_THAT(backward.control, ElementsAre(0));
  EXPECT_EQ(send.type, kSend);
  EXPECT_THAT(send.data, ElementsAre(0));
  EXPECT_EQ(send.number.at("comm_src"), 0u);
  EXPECT_EQ(send.number.at("comm_dst"), 1u);
  EXPECT_EQ(send.number.at("comm_size"), 1u << 20U);
  EXPECT_EQ(send.value_field.at("comm_size"), 9);
  EXPECT_EQ(send.value_field.at("comm_tag"), 7);
  EXPECT_EQ(send.value_field.at("is_cpu_op"), 27);
  EXPECT_EQ(receive.type, kReceive);
  EXPECT_EQ(receive.number.at("comm_src"), 1u);
  EXPECT_THAT(receive.data, IsEmpty());  // posted from the start
  EXPECT_EQ(first.rounding.blocks, 2);
  EXPECT_EQ(first.rounding.error, Duration{0});
}

TEST(ExportChakra, NamesTheGroupOfACollective) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::ring_rate;
  scenario = spread(scenario, 2, Duration{100}, Duration{50});
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  std::vector<std::uint64_t> kinds;
  std::vector<std::uint64_t> sizes;
  for (const testing::ChakraNode& node : written(plan, 3).trace.nodes) {
    if (node.type != kCollective) continue;
    kinds.push_back(node.number.at("comm_type"));
    sizes.push_back(node.number.at("comm_size"));
    EXPECT_EQ(node.text.at("pg_name"), "2");
    EXPECT_EQ(node.value_field.at("pg_name"), 29);
  }
  EXPECT_THAT(kinds, ElementsAre(0));  // all-reduce
  EXPECT_THAT(sizes, ElementsAre(8U << 20U));
  EXPECT_EQ(chakra_groups(plan), "{\n  \"1\": [0, 2],\n  \"2\": [1, 3]\n}\n");
  scenario.parallel.gradient_sync = GradientSync::none;
  EXPECT_EQ(chakra_groups(lower(schedule::generate("1f1b", scenario), scenario)), "");
}

// A step waits for what has come, and not for the arrival of the step before it.
TEST(ExportChakra, HoldsTheStepsOfCollectives) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.costs.weights = {Bytes{10}};
  const Plan plan =
      lower(schedule::generate("1f1b", scenario), spread(scenario, 1, Duration{}, Duration{}));
  const testing::ChakraTrace trace = written(plan, 0).trace;
  std::vector<std::uint64_t> sent;
  for (const testing::ChakraNode& node : trace.nodes) {
    if (node.type != kSend) continue;
    sent.push_back(node.number.at("comm_size"));
    EXPECT_EQ(node.name, fmt::format("send step {} of all-reduce 0 to 1", sent.size() - 1));
    EXPECT_EQ(node.data.size(), 1U);  // the last B, then what came from rank 2
  }
  // Of shards of 4, 3 and 3 bytes the ring sends 2, 1 as sums, then 0, 2.
  EXPECT_THAT(sent, ElementsAre(3, 3, 4, 3));
}

TEST(ExportChakra, RoundsWithoutDrift) {
  // 100 ns blocks: none lasts a microsecond, but ten of them do.
  const Scenario scenario = uniform_scenario(2, 15);
  const Written first = written(lower(schedule::generate("zb-h1", scenario), scenario), 0);
  std::uint64_t whole = 0;
  std::int64_t exact = 0;
  for (const testing::ChakraNode& node : first.trace.nodes) {
    if (node.type != kCompute) continue;
    whole += node.duration_micros;
    exact += 100;
    EXPECT_LE(std::abs(static_cast<std::int64_t>(whole) * 1000 - exact), 500);
  }
  EXPECT_EQ(exact, 4500);
  EXPECT_EQ(first.rounding.blocks, 45);
  // 5 of 45 blocks became a microsecond (the rest nothing): 5 * 900 + 40 * 100 ns.
  EXPECT_EQ(first.rounding.error, Duration{5 * 900 + 40 * 100});
}

/// All nodes of all ranks can run, where each waits for its data dependencies, and a receive for
/// its send, as in ASTRA-sim. Gives the number that ran.
std::size_t dry_run(const std::vector<testing::ChakraTrace>& traces) {
  std::set<std::pair<std::size_t, std::uint64_t>> done;  // rank, id
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> sent;
  const auto ready = [&](std::size_t rank, const testing::ChakraNode& node) {
    return std::ranges::all_of(node.data, [&](std::uint64_t id) {
      return done.contains({rank, id});
    });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      for (const testing::ChakraNode& node : traces[rank].nodes) {
        if (done.contains({rank, node.id}) || !ready(rank, node)) continue;
        if (node.type == kSend || node.type == kReceive) {
          const std::tuple message{node.number.at("comm_src"), node.number.at("comm_dst"),
                                   node.number.at("comm_tag")};
          if (node.type == kSend) {
            EXPECT_TRUE(sent.insert(message).second) << "a tag twice: " << node.name;
          } else if (!sent.contains(message)) {
            continue;
          }
        }
        done.insert({rank, node.id});
        progress = true;
      }
    }
  }
  return done.size();
}

TEST(ExportChakra, EveryPlanRunsToItsEnd) {
  for (const schedule::Generator& generator : schedule::generators()) {
    for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
      SCOPED_TRACE(generator.name);
      Scenario scenario = uniform_scenario(4, 8);
      scenario.parallel.replicas = 2;
      scenario = spread(scenario, 2, Duration{100}, Duration{50});
      const Plan plan = lower(schedule::generate(generator.name, scenario), scenario, arrangement);
      const std::vector<testing::ChakraTrace> traces = traces_of(plan);
      std::size_t nodes = 0;
      for (const testing::ChakraTrace& trace : traces) nodes += trace.nodes.size();
      EXPECT_EQ(nodes, plan.ops.size());
      EXPECT_EQ(dry_run(traces), nodes);
    }
  }
}

// Ranks 0, 1 and 2, 3. Rank 2 gets a piece of rank 0's activation and sends it on to rank 3, which
// hands it to rank 1: a receive, and a send that waits for it alone.
TEST(ExportChakra, HasTheRelaysOfACell) {
  const Scenario scenario = testing::cell_of(2, Bytes{61});
  const Plan plan =
      lower(testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario);
  const std::vector<testing::ChakraTrace> traces = traces_of(plan);
  const auto node = [&](std::size_t rank, std::uint64_t type, std::uint64_t from,
                        std::uint64_t to) {
    const auto found =
        std::ranges::find_if(traces[rank].nodes, [&](const testing::ChakraNode& each) {
          return each.type == type && each.number.at("comm_src") == from &&
                 each.number.at("comm_dst") == to && each.name.find("F0") != std::string::npos &&
                 each.number.at("comm_size") == 30;  // piece 1 of 61 bytes
        });
    EXPECT_NE(found, traces[rank].nodes.end()) << rank << ": " << from << " to " << to;
    return found == traces[rank].nodes.end() ? testing::ChakraNode{} : *found;
  };
  EXPECT_THAT(node(2, kSend, 2, 3).data, ElementsAre(node(2, kReceive, 0, 2).id));
  EXPECT_THAT(node(3, kSend, 3, 1).data, ElementsAre(node(3, kReceive, 2, 3).id));
  EXPECT_THAT(traces[1].nodes.front().data, Contains(node(1, kReceive, 3, 1).id));
  std::size_t nodes = 0;
  for (const testing::ChakraTrace& trace : traces) nodes += trace.nodes.size();
  EXPECT_EQ(nodes, plan.ops.size());
  EXPECT_EQ(dry_run(traces), nodes);
}

TEST(ExportChakra, KeepsEveryDependencyAndTheOrderOfBlocks) {
  Scenario scenario = uniform_scenario(3, 6);
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 3, Duration{100}, Duration{50});
  const Plan plan = lower(testing::bidirectional_gpipe(3, 6, 2), scenario, Arrangement::grouped);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    for (const testing::ChakraNode& node : written(plan, static_cast<int>(rank)).trace.nodes) {
      const OpId id{static_cast<std::uint32_t>(node.id)};
      EXPECT_EQ(plan.rank_of(id), Rank{static_cast<int>(rank)});
      const bool is_message = node.type == kSend || node.type == kReceive;
      std::size_t needs = 0;
      for (const OpId before : plan.after_of(id)) {
        if (is_message && plan.op(before).kind == OpKind::send)
          continue;  // it would be its arrival
        EXPECT_THAT(node.data, Contains(index(before)));
        ++needs;
      }
      if (id != plan.lane_of(id).first &&
          (plan.op(id).kind == OpKind::compute || plan.op(id).kind == OpKind::collective)) {
        EXPECT_THAT(node.data, Contains(node.id - 1));
      }
      // A message waits for its input, not until the one before has arrived.
      if (node.type == kSend) {
        EXPECT_THAT(node.data, ::testing::SizeIs(needs));
        EXPECT_THAT(node.control, IsEmpty());
      }
    }
  }
}

}  // namespace
}  // namespace longhaul::plan
