#include "planner/overlap/microbatch_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/overlap/overlap_search.hpp"
#include "support/overlaps.hpp"

namespace longhaul::planner {
namespace {

/// Interleaved 1F1B of two devices with two chunks each, whose weights take as long to sum as
/// eight blocks.
Scenario interleaved(int microbatches, const std::vector<std::string>& set = {}) {
  std::string text = fmt::format(
      "[parallel]\nstages = 2\nmicrobatches = {}\nreplicas = 2\nchunks = 2\n"
      "gradient_sync = \"zero1\"\n[costs]\nmessage = \"100kB\"\nactivation = \"1MB\"\n"
      "[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 4\ndevice = \"1GB/s\"\n",
      microbatches);
  for (int i = 0; i < 4; ++i)
    text += fmt::format(
        "[[operator]]\nname = \"o{}\"\nkind = \"matmul\"\nweights = \"16MB\"\nforward = \"1ms\"\n"
        "dgrad = \"1ms\"\nwgrad = \"1ms\"\n",
        i);
  return scenario::parse_scenario(text, "interleaved.toml", set);
}

std::vector<std::pair<int, int>> groups_of(const Scenario& scenario, const char* name) {
  std::vector<std::pair<int, int>> pairs;
  for (const MicrobatchGroup& each :
       microbatch_groups(schedule::generate(name, scenario), scenario))
    pairs.emplace_back(each.forward, each.backward);
  return pairs;
}

// 3 of 4 would leave one for the last group, which is less than two stages.
TEST(MicrobatchGroups, AreThoseThatTheScheduleHas) {
  using ::testing::ElementsAre, ::testing::Pair;
  EXPECT_THAT(groups_of(interleaved(4), "interleaved-1f1b"),
              ElementsAre(Pair(2, 2), Pair(2, 4), Pair(4, 2), Pair(4, 4)));
  EXPECT_EQ(groups_of(interleaved(40), "interleaved-1f1b").size(), 25U);
  EXPECT_TRUE(groups_of(interleaved(4), "gpipe").empty());
  EXPECT_TRUE(groups_of(interleaved(4), "zbv").empty());
}

TEST(MicrobatchGroups, TakeEquation2AsFarAsTheScheduleCan) {
  const std::vector<MicrobatchGroup> known{{3, 3}, {3, 6}, {6, 3}, {6, 6}};
  const auto nearest = [&](int forward, int backward) {
    const MicrobatchGroup found = nearest_group({Duration{}, forward, backward}, known);
    return std::pair{found.forward, found.backward};
  };
  EXPECT_EQ(nearest(1, 4), std::pair(3, 6));
  EXPECT_EQ(nearest(3, 6), std::pair(3, 6));
  EXPECT_EQ(nearest(8, 5), std::pair(6, 6));
}

TEST(MicrobatchGroups, AreSearchedWithTheRest) {
  const Scenario scenario = interleaved(8);
  const Schedule schedule = schedule::generate("interleaved-1f1b", scenario);
  const FoundOverlap best = best_overlap(schedule, scenario, Arrangement::decoupled).or_throw();
  const FoundOverlap centauri =
      centauri_overlap(schedule, scenario, Arrangement::decoupled).or_throw();
  EXPECT_LE(best.makespan, centauri.makespan);
  for (const char* group : {"2", "4", "8", "[8, 2]", "[2, 8]"}) {
    const Scenario own = interleaved(8, {fmt::format("parallel.microbatch_group={}", group)});
    const collective::IterationPlan plan =
        testing::planned_iteration(own, "megatron", "interleaved-1f1b");
    const SimulatedIteration ran = simulate_iteration(plan).or_throw();
    EXPECT_LE(best.makespan, (collective::IterationTimes{ran.lowered, ran.times}.makespan()))
        << group;
  }
  EXPECT_GE(best.makespan, best.bound.lower_bound);
}

// The rules' groups are run, too.
TEST(MicrobatchGroups, AreTakenByTheRules) {
  const Scenario scenario = interleaved(8);
  const FoundOverlap found =
      searched_overlap("centauri-rules", schedule::generate("interleaved-1f1b", scenario), scenario,
                       Arrangement::decoupled)
          .or_throw();
  EXPECT_THAT(found.decided, ::testing::HasSubstr("microbatches together"));
}

}  // namespace
}  // namespace longhaul::planner
