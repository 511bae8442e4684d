// The parts of real work: layout, tensors between blocks, memory, the comparison itself.
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/training/played_ranks.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "plan/lowering/lower.hpp"
#include "training/model_layout.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::pair<int, int>> pairs(const std::vector<nn::LayerRange>& layers) {
  std::vector<std::pair<int, int>> all;
  for (const nn::LayerRange& range : layers) all.emplace_back(range.first, range.count);
  return all;
}

TEST(ModelLayout, DividesADevicesLayersOverItsChunks) {
  const Scenario scenario = tiny_scenario(2, 2, 7);  // 4 and 3
  EXPECT_THAT(pairs(training::layers_of_stages(schedule::generate("1f1b", scenario), scenario)),
              ElementsAre(std::pair{0, 4}, std::pair{4, 3}));
  // A wave: device 0 holds chunks 0 and 3.
  EXPECT_THAT(pairs(training::layers_of_stages(schedule::generate("zbv", scenario), scenario)),
              ElementsAre(std::pair{0, 2}, std::pair{2, 2}, std::pair{4, 1}, std::pair{5, 2}));
  // Two copies: the same stages in both.
  EXPECT_THAT(pairs(training::layers_of_stages(schedule::generate("cross-bd", scenario), scenario)),
              ElementsAre(std::pair{0, 4}, std::pair{4, 3}));
}

TEST(ModelLayout, RefusesAnEmptyChunkAndAModelWithoutVocabulary) {
  Scenario scenario = tiny_scenario(2, 2, 3);
  const Schedule zbv = schedule::generate("zbv", scenario);
  EXPECT_THAT([&] { (void)training::layers_of_stages(zbv, scenario); },
              ThrowsMessage<Error>(HasSubstr("chunk 2 of schedule zbv would hold no layer (device "
                                             "1 has 1 for 2 chunks). Give the model more layers "
                                             "(--set model.layers=4)")));
  scenario.model->vocabulary = 0;
  EXPECT_THAT([&] { (void)training::model_shape(scenario); },
              ThrowsMessage<Error>(HasSubstr("Write vocabulary = 256 in [model]")));
  scenario.model->vocabulary = 8;
  scenario.model->selective_recompute = true;
  EXPECT_THAT([&] { (void)training::model_shape(scenario); },
              ThrowsMessage<Error>(HasSubstr("memory.recompute = \"selective\" of scenario")));
  scenario.model.reset();
  EXPECT_THAT([&] { (void)training::model_shape(scenario); },
              ThrowsMessage<Error>(HasSubstr("no model")));
}

// What real layers cannot be is refused by its key, never left out.
TEST(ModelLayout, RefusesLayersThatAreNotSwigluRotaryAndFlash) {
  const auto refused = [](const std::function<void(Model&)>& change, const char* message) {
    Scenario scenario = tiny_scenario(2, 2, 3);
    EXPECT_NO_THROW((void)training::model_shape(scenario));
    change(*scenario.model);
    EXPECT_THAT([&] { (void)training::model_shape(scenario); },
                ThrowsMessage<Error>(HasSubstr(message)));
  };
  refused([](Model& model) { model.mlp = MlpKind::gelu; }, "model.mlp = \"gelu\" of scenario");
  refused([](Model& model) { model.positions = PositionKind::alibi; },
          "model.positions = \"alibi\"");
  refused([](Model& model) { model.attention = AttentionKind::plain; },
          "Write attention = \"flash\"");
  refused([](Model& model) { model.biases = true; }, "model.biases = true");
}

class TensorsTest : public ::testing::Test {
protected:
  nn::Buffer numbers(float first) {
    nn::Buffer buffer = memory_.take(kCount, "test");
    std::vector<float> values(kCount);
    std::iota(values.begin(), values.end(), first);
    math_.copy_in(values, buffer.view());
    return buffer;
  }
  std::vector<float> values(const nn::Buffer& buffer) {
    std::vector<float> all(kCount);
    math_.copy_out(buffer.view(), all);
    return all;
  }
  static constexpr std::size_t kCount = 10;
  nn::CpuTensorOps math_;
  nn::DeviceMemory memory_{math_, 0};
  training::Tensors tensors_{math_, memory_, kCount};
};

TEST_F(TensorsTest, CutsATensorIntoPiecesAndPutsThemTogether) {
  training::Tensors other{math_, memory_, kCount};
  const training::TensorKey key{false, ChunkId{1}, MicrobatchId{2}};
  tensors_.put(key, numbers(5));
  std::size_t bytes = 0;
  for (const int piece : {2, 0, 1}) {
    const engine::Payload sent = tensors_.piece_of(key, piece, 3);
    const engine::Payload room = other.room_in(key, piece, 3, "room");
    ASSERT_EQ(sent.bytes.size(), room.bytes.size());
    bytes += sent.bytes.size();
    std::ranges::copy(sent.bytes, room.bytes.begin());
    other.arrived(key);
  }
  EXPECT_EQ(bytes, kCount * sizeof(float));
  EXPECT_EQ(tensors_.open(), 0U) << "the last piece took the tensor along";
  const nn::Buffer taken = other.take(key, OpId{3}, "input");
  EXPECT_EQ(values(taken).front(), 5);
  EXPECT_EQ(values(taken).back(), 14);
  EXPECT_EQ(other.open(), 1U) << "its room is still read";
  other.settle(OpId{3});
  EXPECT_EQ(other.open(), 0U);
}

TEST_F(TensorsTest, PassesATensorOnWithoutAMessageAndWithoutACopy) {
  const training::TensorKey key{true, ChunkId{4}, MicrobatchId{0}};
  nn::Buffer made = numbers(1);
  const std::byte* place = made.view().data;
  tensors_.put(key, std::move(made));
  EXPECT_EQ(tensors_.bytes_elsewhere(), 0) << "a tensor between blocks is no activation";
  const nn::Buffer taken = tensors_.take(key, OpId{0}, "gradient");
  EXPECT_EQ(taken.view().data, place);
  EXPECT_EQ(tensors_.bytes_elsewhere(), static_cast<std::int64_t>(kCount * sizeof(float)));
}

TEST_F(TensorsTest, UsesRoomsAgain) {
  const std::byte* place = tensors_.room_apart(0, 2, "relay").bytes.data();
  EXPECT_EQ(tensors_.room_apart(0, 2, "relay").bytes.data(), place);
  EXPECT_EQ(memory_.held(), kCount / 2 * sizeof(float));
  EXPECT_EQ(tensors_.bytes_elsewhere(), 0);
}

TEST(Difference, IsRelativeAndNeverPassesWhatIsNoNumber) {
  const std::vector<float> expected{3, 4};
  EXPECT_EQ(training::difference(std::vector<float>{3, 4}, expected, 5), 0);
  EXPECT_DOUBLE_EQ(training::difference(std::vector<float>{3, 5}, expected, 5), 0.2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto passes = [](double by) { return by <= 1e-5; };
  EXPECT_FALSE(passes(training::difference(std::vector<float>{3, nan}, expected, 5)));
  EXPECT_FALSE(
      passes(training::difference(std::vector<float>{3, 4}, std::vector<float>{3, nan}, nan)));
  EXPECT_FALSE(passes(training::difference(std::vector<float>{1e-30F}, std::vector<float>{0}, 0)))
      << "something where nothing should be";
  EXPECT_EQ(training::difference(std::vector<float>{0}, std::vector<float>{0}, 0), 0);
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(passes(
      training::difference(std::vector<float>{infinite}, std::vector<float>{infinite}, infinite)));
}

/// Two ranks hold a tensor, the second few and small numbers of it: what is twice the allowed
/// difference there is little beside the whole.
TEST(GradientCheck, HoldsAShardAgainstItsOwnNorm) {
  training::TrainingModel model;
  model.shape = training::model_shape(tiny_scenario(1, 2, 2));
  model.seed = 7;
  model.text = nn::SyntheticText{model.shape, 3};
  const auto whole = [&] {
    return std::make_unique<training::WholeModel>(nn::make_cpu_math(), model, 2, 1);
  };
  const std::vector<float> weights = whole()->masters();
  const auto expected = whole()->compute(0, weights);
  const std::vector<float>& gradients = expected.gradients;
  constexpr std::size_t kHeld = 8;
  training::ParameterMap map;
  map.count = gradients.size();
  const std::size_t split = map.count - kHeld;
  map.tensors = {{"tensor", 0, map.count}};
  map.of_rank.push_back({{StageId{0}, 0, split}});
  map.of_rank.push_back({{StageId{0}, split, kHeld}});
  const double small = training::norm(std::span{gradients}.subspan(split));
  ASSERT_GT(small, 0);
  ASSERT_LT(small, training::norm(gradients) / 4);
  const auto wrong_gradients = [&](double by) {
    training::GradientCheck check{whole(), nullptr};
    const auto cut = gradients.begin() + static_cast<std::ptrdiff_t>(split);
    training::IterationNumbers found{
        0, expected.loss, {{gradients.begin(), cut}, {cut, gradients.end()}}, {}};
    float& changed = found.gradients[1].back();
    changed = static_cast<float>(changed + by * small);
    const std::vector<float> stepped = whole()->step(weights, gradients, 1);
    const auto end = stepped.begin() + static_cast<std::ptrdiff_t>(split);
    found.masters = {{stepped.begin(), end}, {end, stepped.end()}};
    std::vector<std::size_t> ranks;
    for (const training::WrongTensor& wrong : check.check(map, found, 1))
      if (wrong.what == "gradient") ranks.push_back(wrong.rank.value());
    return ranks;
  };
  EXPECT_THAT(wrong_gradients(0), ::testing::IsEmpty());
  EXPECT_THAT(wrong_gradients(5e-6), ::testing::IsEmpty());
  EXPECT_THAT(wrong_gradients(2e-5), ElementsAre(1));
}

TEST(RealMemory, BlocksGiveBackWhatTheyTook) {
  for (const bool recompute : {false, true}) {
    Scenario scenario = tiny_scenario(2, 3, 6);
    scenario.memory.recompute = recompute;
    PlayedRanks ranks{schedule::generate("zb-h1", scenario), scenario};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::size_t held = ranks.memory(rank).held();
      ranks.iterate(0);
      const training::LayerWork& work = ranks.work(rank);
      std::int64_t sum = 0, forward = 0, again = 0;
      for (std::uint32_t i = 0; i < work.ops().count; ++i) {
        const Op& op = ranks.plan().ops[work.ops().first + i];
        const std::int64_t bytes = work.block_bytes()[i];
        sum += bytes;
        if (op.kind != OpKind::compute) {
          EXPECT_EQ(bytes, 0);
        } else if (op.block_kind == BlockKind::F) {
          EXPECT_GT(bytes, 0);
          forward += bytes;
        } else if (op.block_kind == BlockKind::R) {
          EXPECT_GT(bytes, 0);
          again += bytes;
        } else if (op.block_kind == BlockKind::W) {
          EXPECT_LT(bytes, 0) << "D may keep the gradient that it got for W";
        }
      }
      EXPECT_EQ(sum, 0) << "rank " << rank;
      EXPECT_GE(ranks.memory(rank).held(), held) << "rooms of messages are kept";
      EXPECT_EQ(again > forward, recompute) << "F leaves its input alone";
    }
  }
}

TEST(RealMemory, OutOfMemoryNamesBlockBytesAndBudget) {
  const Scenario scenario = tiny_scenario(1, 2, 3);
  const Schedule schedule = schedule::generate("gpipe", scenario);
  const Plan plan = plan::lower(schedule, scenario, Arrangement::decoupled);
  training::TrainingModel model;
  model.shape = training::model_shape(scenario);
  model.text = nn::SyntheticText{model.shape, 1};
  nn::CpuTensorOps math;
  std::size_t weights = 0;
  {
    nn::DeviceMemory memory{math, 0};
    const training::LayerWork work{plan, schedule, scenario, Rank{0}, math, memory, model};
    weights = memory.held();
  }
  nn::DeviceMemory memory{math, weights + 2000};
  training::LayerWork work{plan, schedule, scenario, Rank{0}, math, memory, model};
  work.begin_iteration(0);
  EXPECT_THAT([&] { work.run(OpId{0}); },
              ThrowsMessage<Error>(
                  ::testing::AllOf(HasSubstr("F(microbatch 0)"), HasSubstr("layer"),
                                   HasSubstr(fmt::format("budget {} B", weights + 2000)))));
}

}  // namespace
}  // namespace longhaul::testing
