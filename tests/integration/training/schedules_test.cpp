// Every schedule computes what one rank computes: loss, gradients, stepped weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/training/played_ranks.hpp"
#include "planner/random_schedules.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/registry.hpp"
#include "support/cells.hpp"

namespace longhaul::testing {
namespace {

using ::testing::IsEmpty;

std::string text_of(const std::vector<training::WrongTensor>& wrong) {
  std::string text;
  for (const training::WrongTensor& each : wrong)
    text += fmt::format("rank {} {} {} {}\n", each.rank ? std::to_string(*each.rank) : "-",
                        each.tensor, each.what, each.by);
  return text;
}

/// Two iterations: the second begins with stepped weights.
std::string wrong_of(const Schedule& schedule, const Scenario& scenario,
                     const nn::OptimizerOptions& optimizer = {}, std::uint64_t seed = 1) {
  PlayedRanks ranks{schedule, scenario, optimizer, seed};
  std::string wrong;
  for (int iteration = 0; iteration < 2; ++iteration) {
    ranks.iterate(iteration);
    wrong += text_of(ranks.step_and_check(iteration));
  }
  return wrong;
}

class RealSchedules : public ::testing::TestWithParam<std::string> {};

TEST_P(RealSchedules, ComputeWhatOneRankComputes) {
  for (const int replicas : {1, 2}) {
    for (const bool recompute : {false, true}) {
      for (const GradientSync sync : {GradientSync::zero1, GradientSync::all_reduce}) {
        Scenario scenario = tiny_scenario(4, 8, 9);  // a device has 3 layers for its two chunks
        scenario.parallel.replicas = replicas;
        scenario.parallel.gradient_sync = sync;
        scenario.memory.recompute = recompute;
        scenario.placement.clear();
        for (int rank = 0; rank < scenario.ranks(); ++rank)
          scenario.placement.push_back(DatacenterId{rank % 4 / 2});
        EXPECT_EQ(wrong_of(schedule::generate(GetParam(), scenario), scenario), "")
            << replicas << " replicas, recompute " << recompute << ", sync "
            << static_cast<int>(sync);
      }
    }
  }
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const schedule::Generator& generator : schedule::generators())
    names.emplace_back(generator.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, RealSchedules, ::testing::ValuesIn(all_names()), [](const auto& it) {
  std::string name = it.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(RealOrders, RelaysPassPiecesOn) {
  Scenario scenario = tiny_scenario(4, 3, 8);
  scenario.parallel.replicas = 3;
  scenario.placement.clear();
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{rank % 4 / 2});
  const Schedule schedule = in_cells(schedule::generate("1f1b", scenario), scenario, 3);
  EXPECT_EQ(wrong_of(schedule, scenario), "");
}

TEST(RealOrders, CopiesThatMeetOnADeviceAreSummedThere) {
  Scenario scenario = tiny_scenario(3, 5, 6);  // the middle device holds one stage of both copies
  EXPECT_EQ(wrong_of(schedule::generate("cross-bd", scenario), scenario), "");
  scenario.parallel.microbatches = 1;  // the second copy has none
  for (const GradientSync sync : {GradientSync::zero1, GradientSync::all_reduce}) {
    scenario.parallel.gradient_sync = sync;
    EXPECT_EQ(wrong_of(schedule::generate("cross-bd", scenario), scenario), "");
  }
}

/// A loss of 0 and gradients of 0 are right; one token has only itself to attend to.
TEST(RealOrders, TheSmallestModelsComputeTheSame) {
  Scenario scenario = tiny_scenario(2, 2, 2);
  scenario.model->vocabulary = 1;
  EXPECT_EQ(wrong_of(schedule::generate("1f1b", scenario), scenario), "");
  scenario.model->vocabulary = 5;
  scenario.model->sequence_length = scenario.model->microbatch_size = 1;
  EXPECT_EQ(wrong_of(schedule::generate("1f1b", scenario), scenario), "");
}

TEST(RealOrders, OneRankAloneAndSgd) {
  const Scenario scenario = tiny_scenario(1, 3, 3);
  nn::OptimizerOptions sgd;
  sgd.kind = nn::OptimizerKind::sgd;
  EXPECT_EQ(wrong_of(schedule::generate("1f1b", scenario), scenario, sgd), "");
}

/// Any order: B beside D and W, in parts, recomputed early or late, from a file.
TEST(RealOrders, AnyValidOrderComputesTheSame) {
  int drawn = 0;
  for (std::uint64_t seed = 1; drawn < 24; ++seed) {
    Random random{seed};
    const char* like[] = {"gpipe", "zbv", "interleaved-1f1b", "cross-bd"};
    Scenario scenario = tiny_scenario(3, 6, 7);
    scenario.memory.budget = 3;
    scenario.memory.recompute = random.between(0, 1) == 0;
    const Schedule base = schedule::generate(like[seed % 4], scenario);
    const auto schedule = test::RandomOrder{base, scenario, random}.draw();
    if (!schedule) continue;
    ++drawn;
    const Schedule read =
        schedule::read_csv(schedule::write_csv(*schedule), "random.csv", "random");
    EXPECT_EQ(wrong_of(read, scenario, {}, seed), "") << "seed " << seed;
  }
}

TEST(RealOrders, SwappedPayloadsAreFoundAndNamed) {
  const Scenario scenario = tiny_scenario(3, 4, 6);
  PlayedRanks ranks{schedule::generate("gpipe", scenario), scenario};
  const std::vector<OpId> sends = ranks.sends(Rank{0}, Rank{1});
  ASSERT_GE(sends.size(), 3U);
  ranks.swap(sends[1], sends[2]);
  ranks.iterate(0);
  const std::vector<training::WrongTensor> wrong = ranks.step_and_check(0);
  std::set<std::string> named;
  for (const training::WrongTensor& each : wrong)
    named.insert(each.tensor + (each.rank ? fmt::format(" of rank {}", *each.rank) : ""));
  EXPECT_TRUE(named.contains("loss")) << "targets belong to other tokens now";
  EXPECT_TRUE(named.contains("layer 1 attention.qkv of rank 0")) << text_of(wrong);
  EXPECT_TRUE(named.contains("layer 3 attention.qkv of rank 1"));
  EXPECT_TRUE(named.contains("head.output of rank 2"));
  for (const training::WrongTensor& each : wrong) EXPECT_GT(each.by, 1e-4) << each.tensor;
}

TEST(RealOrders, AGradientsPayloadsSwappedSpareTheRanksBehind) {
  const Scenario scenario = tiny_scenario(3, 4, 6);
  PlayedRanks ranks{schedule::generate("gpipe", scenario), scenario};
  const std::vector<OpId> sends = ranks.sends(Rank{1}, Rank{0});
  ranks.swap(sends[0], sends[1]);
  ranks.iterate(0);
  const std::vector<training::WrongTensor> wrong = ranks.step_and_check(0);
  EXPECT_FALSE(wrong.empty());
  for (const training::WrongTensor& each : wrong) EXPECT_EQ(each.rank, 0U) << each.tensor;
}

/// One of two replicas goes on with its own gradients.
TEST(RealOrders, ASumThatMissesAMemberIsFoundAndItsRankNamed) {
  Scenario scenario = tiny_scenario(2, 2, 4);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.placement.clear();
  for (int rank = 0; rank < 4; ++rank) scenario.placement.push_back(DatacenterId{rank % 2});
  PlayedRanks ranks{schedule::generate("1f1b", scenario), scenario};
  ranks.iterate(0);
  training::StageShard& stage = ranks.work(3).stages().front();
  ranks.work(3).math().copy(stage.chunk().all_gradients(), stage.gradient());
  std::set<std::string> tensors;
  for (const training::WrongTensor& each : ranks.step_and_check(0)) {
    EXPECT_EQ(each.rank, 3U) << each.tensor;
    if (each.what == "gradient") tensors.insert(each.tensor);
  }
  EXPECT_EQ(tensors.size(), stage.chunk().parameters().size()) << "all of its tensors";
}

TEST(RealOrders, AChangedWeightIsFoundAndItsRankNamed) {
  Scenario scenario = tiny_scenario(2, 2, 4);
  PlayedRanks ranks{schedule::generate("1f1b", scenario), scenario};
  ranks.iterate(0);
  EXPECT_THAT(ranks.step_and_check(0), IsEmpty());
  ranks.work(1).stages().front().perturb();
  ranks.iterate(1);
  const std::vector<training::WrongTensor> wrong = ranks.step_and_check(1);
  bool weight = false;
  for (const training::WrongTensor& each : wrong) {
    if (each.what != "weight") continue;
    weight = true;
    EXPECT_EQ(each.rank, 1U);
  }
  EXPECT_TRUE(weight) << text_of(wrong);
  ranks.iterate(2);
  EXPECT_THAT(ranks.step_and_check(2), IsEmpty()) << "the next iteration begins with what is";
}

}  // namespace
}  // namespace longhaul::testing
