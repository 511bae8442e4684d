// Times of operators from a profile; blocks that add up to them are in needed_command_test.
#include "scenario/files/profiled_operators.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "scenario/files/profile_table.hpp"
#include "scenario/needed_operators.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;

/// GPT of one decoder layer between embedding and head, scores in memory, two tensor ranks.
std::string gpt_text(const std::string& recompute) {
  return "[model]\nlayers = 3\nhidden = 64\nintermediate = 80\nheads = 4\nvocabulary = 10\n"
         "sequence_length = 3\nachieved_flops = \"1GFLOP/s\"\nmlp = \"gelu\"\npositions = "
         "\"learned\"\nattention = \"plain\"\n"
         "[parallel]\nstages = 3\ntensor = 2\nmicrobatches = 4\n[memory]\nrecompute = " +
         recompute + "\n";
}

/// Every call of the scenario's model takes 100 ns, a softmax 7 ns.
std::string profile_of(const std::string& scenario) {
  std::string csv = "part,block,operator,shape,type,calls,median_ns\n";
  for (const NeededOperator& each : needed_operators(parse_scenario(scenario, "s.toml")))
    csv += fmt::format("{},{},{},{},{},{},{}\n", each.part, each.block, each.operation, each.shape,
                       each.type, each.calls, each.operation == "softmax" ? 7 : 100);
  return csv;
}

std::string with_profile(const std::string& scenario, const std::string& csv) {
  return scenario + "[costs]\nprofile = \"p.csv\"\n[profiles]\n\"p.csv\" = '''\n" + csv + "'''\n";
}

TEST(ProfiledOperators, SelectiveRecomputationAddsTheScoresToD) {
  const std::string none = gpt_text("false"), selective = gpt_text("\"selective\"");
  const Scenario kept = parse_scenario(with_profile(none, profile_of(none)), "s.toml");
  const Scenario again = parse_scenario(with_profile(selective, profile_of(selective)), "s.toml");
  ASSERT_TRUE(again.operators.are_costs);
  // Two products of 100 ns and a softmax; embedding and head have no scores.
  EXPECT_EQ(again.costs.dgrad[1] - kept.costs.dgrad[1], 207ns);
  EXPECT_EQ(again.costs.backward[1] - kept.costs.backward[1], 207ns);
  EXPECT_EQ(again.costs.dgrad[0], kept.costs.dgrad[0]);
  EXPECT_EQ(again.costs.forward, kept.costs.forward);
  EXPECT_EQ(again.costs.wgrad, kept.costs.wgrad);
  for (std::size_t i = 0; i < kept.operators.all->size(); ++i) {
    const Operator& with = again.operators.all->at(i);
    const Operator& without = kept.operators.all->at(i);
    EXPECT_EQ(with.dgrad - without.dgrad, with.kind == OperatorKind::attention ? 207ns : 0ns)
        << with.name;
  }
}

TEST(ProfiledOperators, AProfileWithoutThemIsRefused) {
  const std::string none = gpt_text("false"), selective = gpt_text("\"selective\"");
  EXPECT_THAT(complaint(with_profile(selective, profile_of(none))),
              HasSubstr("there is no softmax of rows=6 width=3 in bf16 (block D of part layer"));
  EXPECT_EQ(complaint(with_profile(none, profile_of(selective))), "accepted");
}

// Between two sizes on the line through them; a quarter of the first and four times the last are as
// far as their rates are believed.
TEST(CollectiveTable, ReachesFourTimesBeyondItsEnds) {
  const CollectiveTable table = read_collective_table(
      "operation,ranks,nodes,size_bytes,median_ns\n"
      "all_reduce,8,1,1000,100\nall_reduce,8,1,2000,160\nall_reduce,16,2,1000,1\n",
      "c.csv");
  const auto time = [&](std::int64_t size) { return table.time("all_reduce", 8, 1, size); };
  EXPECT_EQ(time(1000), 100ns);
  EXPECT_EQ(time(1500), 130ns);
  EXPECT_EQ(time(8000), 640ns);
  EXPECT_EQ(time(8001), std::nullopt);
  EXPECT_EQ(time(250), 25ns);
  EXPECT_EQ(time(249), std::nullopt);
  EXPECT_EQ(table.time("all_reduce", 8, 2, 1000), std::nullopt);
}

}  // namespace
}  // namespace longhaul::scenario
