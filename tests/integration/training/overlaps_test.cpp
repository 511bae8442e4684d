// Tensor and sequence parallelism, FSDP and ZeRO compute what one rank computes, whatever overlap
// orders them; what is wrong in one message shows in a gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/training/played_operators.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "support/shipped.hpp"

namespace longhaul::testing {
namespace {

/// Four heads of four numbers, two of keys and values; a layer for each end and two between.
constexpr const char* kSmall = R"(
[scenario]
name = "small"
[model]
name = "small"
layers = 4
hidden = 16
intermediate = 24
heads = 4
kv_heads = 2
vocabulary = 16
sequence_length = 6
microbatch_size = 2
achieved_flops = 1e9
memory_bandwidth = "1GB/s"
[parallel]
stages = 1
microbatches = 2
[[datacenter]]
name = "local"
[[node]]
datacenter = "local"
gpus = 32
device = "1GB/s"
)";

using Words = std::vector<std::string>;

Scenario small(const Words& set) { return scenario::parse_scenario(kSmall, "small.toml", set); }

std::string words_of(const std::vector<training::WrongTensor>& wrong) {
  std::string text;
  for (const training::WrongTensor& each : wrong)
    text += fmt::format("rank {} {} {} {}\n", each.rank ? std::to_string(*each.rank) : "-",
                        each.tensor, each.what, each.by);
  return text;
}

/// Three iterations: the later ones begin with stepped weights.
std::string wrong_of(const std::string& overlap, const char* schedule, const Words& set,
                     std::uint64_t seed = 1) {
  const Scenario scenario = small(set);
  PlayedOperators ranks{overlap, schedule::generate(schedule, scenario), scenario, seed};
  std::string wrong;
  for (int iteration = 0; iteration < 3 && wrong.empty(); ++iteration) {
    ranks.iterate(iteration);
    wrong += words_of(ranks.step_and_check(iteration));
  }
  return wrong;
}

TEST(RealOverlaps, OperatorsOfOneRankComputeTheSame) {
  EXPECT_EQ(wrong_of("serial", "gpipe", {}), "");
}

// Heads, grouped keys and values, and the MLP are cut; with sequence parallelism tokens, too.
TEST(RealOverlaps, TensorRanksComputeTheSame) {
  for (const char* sequence : {"false", "true"}) {
    const std::string set = std::string{"parallel.sequence_parallel="} + sequence;
    EXPECT_EQ(wrong_of("serial", "gpipe", {"parallel.tensor=2", set}), "") << set;
    EXPECT_EQ(wrong_of("megatron", "gpipe", {"parallel.tensor=2", set}, 5), "") << set;
    EXPECT_EQ(wrong_of("serial", "gpipe",
                       {"parallel.tensor=4", "model.kv_heads=4", set, "parallel.microbatches=1"}),
              "")
        << set;
  }
}

/// What the overlaps rely on beside the plan's own sharding.
class RealSharding : public ::testing::TestWithParam<std::string> {};

TEST_P(RealSharding, ComputesWhatOneRankComputes) {
  const Words four{"parallel.replicas=4", "parallel.shard=2", "parallel.gradient_sync=zero3"};
  Words small_buckets = four;
  small_buckets.push_back("parallel.bucket=2kB");
  Words layers = four;
  layers.insert(layers.end(), {"parallel.unit=layer", "parallel.regather=once"});
  for (const Words& set : {four, small_buckets, layers})
    EXPECT_EQ(wrong_of(GetParam(), "gpipe", set, 3), "") << fmt::format("{}", fmt::join(set, " "));
}

TEST_P(RealSharding, ComputesItWithTensorRanksAndStages) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    for (const char* sequence : {"false", "true"}) {
      const std::string set = std::string{"parallel.sequence_parallel="} + sequence;
      // Its order of gathers on one lane waits in a circle there; the simulator refuses it, too.
      if (GetParam() == "breadth-first" && std::string_view{sequence} == "true") continue;
      EXPECT_EQ(wrong_of(GetParam(), schedule,
                         {"parallel.tensor=2", "parallel.replicas=2", "parallel.stages=2",
                          "parallel.microbatches=3", "parallel.gradient_sync=zero1", set}),
                "")
          << schedule << ' ' << set;
    }
  }
}

/// All that do not cut operators into pieces.
std::vector<std::string> whole_operators() {
  std::vector<std::string> names;
  for (const collective::Overlap& each : collective::overlaps())
    if (std::string_view{each.name} != "coconet" && std::string_view{each.name} != "dist-einsum")
      names.emplace_back(each.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, RealSharding, ::testing::ValuesIn(whole_operators()),
                         [](const auto& it) {
                           std::string name = it.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(RealOverlaps, RecomputationAndSeveralChunksComputeTheSame) {
  EXPECT_EQ(wrong_of("fsdp2", "gpipe", {"parallel.replicas=2", "memory.recompute=true"}), "");
  EXPECT_EQ(wrong_of("megatron", "interleaved-1f1b",
                     {"parallel.tensor=2", "parallel.stages=2", "parallel.chunks=2",
                      "parallel.microbatches=4"}),
            "");
  EXPECT_EQ(wrong_of("megatron", "zbv",
                     {"parallel.replicas=2", "parallel.stages=2", "parallel.chunks=2",
                      "parallel.microbatches=4", "parallel.gradient_sync=zero2"}),
            "");
}

/// Second copies in nodes of two GPUs, for the backward.
TEST(RealOverlaps, ASecondCopyInTheNodeComputesTheSame) {
  EXPECT_EQ(
      wrong_of("zeropp", "gpipe", {"parallel.replicas=4", "node.gpus=2", "node.internal=2GB/s"}),
      "");
}

TEST(RealOverlaps, RefuseWhatTheyDoNotCompute) {
  const auto said = [](const std::string& overlap, const Words& set) -> std::string {
    try {
      (void)wrong_of(overlap, "gpipe", set);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(said("coconet", {"parallel.tensor=2"}), ::testing::HasSubstr("into pieces"));
  EXPECT_THAT(said("serial", {"model.memory_bandwidth=900TB/s"}),
              ::testing::HasSubstr("takes no time backward"));
  EXPECT_THAT(said("serial", {"parallel.tensor=4"}),
              ::testing::HasSubstr("does not divide 2 key and value heads"));
  const std::string profile = testing::in_checkout("benchmarks/profiles/tiny-f32.csv");
  EXPECT_THAT(said("serial",
                   {"costs.profile=" + profile, "costs.optimizer=0ns", "model.precision=fp32",
                    "model.hidden=64", "model.intermediate=96", "model.heads=4", "model.kv_heads=4",
                    "model.vocabulary=64", "model.sequence_length=32", "model.microbatch_size=1"}),
              ::testing::HasSubstr("attention_residual is of costs.profile"));
}

// What is wrong with one message of one iteration.
class WrongMessages : public ::testing::Test {
protected:
  static constexpr int kFaulty = 1;

  /// Two tensor ranks, two copies of sharded weights, two stages.
  WrongMessages()
      : scenario_{small({"parallel.tensor=2", "parallel.replicas=4", "parallel.shard=2",
                         "parallel.stages=2", "parallel.gradient_sync=zero3"})},
        ranks_{"zero3", schedule::generate("1f1b", scenario_), scenario_} {}

  /// Tensors that are wrong in the iteration with a fault; those before it are right.
  [[nodiscard]] std::vector<training::WrongTensor> wrong(PlayedOperators::Change change) {
    ranks_.change([](const auto&, OpId, std::span<float>, std::span<const float>) {});
    play(0);  // what it sent is kept
    ranks_.change(std::move(change));
    play(kFaulty);
    return wrong_;
  }
  /// Changes the first message of the iteration that fits.
  template <typename Fits, typename How>
  [[nodiscard]] std::vector<training::WrongTensor> change_first(Fits fits, How how) {
    int changed = 0;
    auto found = wrong([&](const plan::StepMessage& message, OpId send, std::span<float> numbers,
                           std::span<const float> before) {
      if (changed > 0 || !fits(message, ranks_.communication(send))) return;
      ++changed;
      how(numbers, before);
    });
    EXPECT_EQ(changed, 1);
    return found;
  }
  static bool is_scatter(const collective::Communication& of) {
    return of.kind == CollectiveKind::reduce_scatter && of.traffic == collective::Traffic::fsdp;
  }

  Scenario scenario_;
  PlayedOperators ranks_;
  std::vector<training::WrongTensor> wrong_;

private:
  void play(int iteration) {
    ranks_.iterate(iteration);
    wrong_ = ranks_.step_and_check(iteration);
    EXPECT_TRUE(iteration == kFaulty || wrong_.empty()) << iteration << words_of(wrong_);
  }
};

TEST_F(WrongMessages, AContributionThatIsLostIsSeen) {
  const auto wrong = change_first(
      [](const auto& message, const auto& of) { return message.adds && is_scatter(of); },
      [](std::span<float> numbers, std::span<const float>) { std::ranges::fill(numbers, 0.0F); });
  ASSERT_FALSE(wrong.empty());
  for (const training::WrongTensor& each : wrong)
    EXPECT_GT(each.by, 10 * each.allowed) << each.tensor;
}

/// Of two members what one sends is its own contribution alone.
TEST_F(WrongMessages, AContributionThatIsAddedTwiceIsSeen) {
  const auto wrong = change_first(
      [](const auto& message, const auto& of) { return message.adds && is_scatter(of); },
      [](std::span<float> numbers, std::span<const float>) {
        for (float& each : numbers) each *= 2;
      });
  ASSERT_FALSE(wrong.empty());
  for (const training::WrongTensor& each : wrong)
    EXPECT_GT(each.by, 10 * each.allowed) << each.tensor;
}

/// The learning rate moves each weight by a thousandth.
TEST_F(WrongMessages, AGatherOfTheLastIterationsWeightsIsSeen) {
  const auto wrong = change_first(
      [](const auto& message, const auto& of) {
        return !message.adds && of.kind == CollectiveKind::all_gather &&
               of.traffic == collective::Traffic::fsdp;
      },
      [](std::span<float> numbers, std::span<const float> before) {
        ASSERT_EQ(numbers.size(), before.size());
        std::ranges::copy(before, numbers.begin());
      });
  ASSERT_FALSE(wrong.empty());
}

TEST_F(WrongMessages, ATensorRanksPartOfASumThatIsLostIsSeen) {
  const auto wrong = change_first(
      [](const auto& message, const auto& of) {
        return message.adds && of.traffic == collective::Traffic::tp;
      },
      [](std::span<float> numbers, std::span<const float>) { std::ranges::fill(numbers, 0.0F); });
  ASSERT_FALSE(wrong.empty());
}

/// Of one collective the payloads of two members change places.
TEST_F(WrongMessages, TwoPiecesThatChangePlacesAreSeen) {
  std::vector<float> first;
  int changed = 0;
  const collective::Communication* of = nullptr;
  const auto found = wrong([&](const plan::StepMessage& message, OpId send,
                               std::span<float> numbers, std::span<const float>) {
    const collective::Communication& own = ranks_.communication(send);
    if (message.adds || own.kind != CollectiveKind::all_gather) return;
    if (of != nullptr && of != &own) return;
    if (changed == 0) {
      of = &own;
      first.assign(numbers.begin(), numbers.end());
      std::ranges::reverse(numbers);  // what the other one would bring
    }
    ++changed;
  });
  EXPECT_GT(changed, 1);
  EXPECT_FALSE(found.empty());
}

}  // namespace
}  // namespace longhaul::testing
