#include "chunk_suite.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

/// Tests that need one TensorOps alone; the rest is in chunk_suite*.cpp.
namespace longhaul::nn {

namespace {

TEST(ChunkDeathTest, BlocksOutOfTurnAreNamed) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  Chunk layers{*math, memory, shape, {1, 2}, Recompute::off, 1};
  EXPECT_DEATH(layers.backward_weight(MicrobatchId{4}, {}), "W\\(microbatch 4\\): there is none");
  EXPECT_DEATH(static_cast<void>(layers.forward(MicrobatchId{4}, {1, 2}, {})),
               "F\\(microbatch 4\\), part 1 of 2: 0 of 2 layers are done");
  EXPECT_DEATH(static_cast<void>(layers.forward(MicrobatchId{4}, {}, {})),
               "F\\(microbatch 4\\) of 0 numbers");
  Buffer input = memory.take(shape.boundary(), "input");
  math->zero(input.view());
  static_cast<void>(layers.forward(MicrobatchId{4}, {}, std::move(input)));
  EXPECT_DEATH(layers.backward_weight(MicrobatchId{4}, {}),
               "W\\(microbatch 4\\) of 2 layers, D of 0");
}

/// A matrix has its outputs as rows; what is known without a chunk is where a chunk has it.
TEST(Chunk, SaysWhereItsParametersStand) {
  const ModelShape shape = tiny_model(4);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  for (const LayerRange layers : {LayerRange{0, 4}, {1, 2}, {2, 2}}) {
    const Chunk chunk{*math, memory, shape, layers, Recompute::off, 1};
    const ParameterPlaces all = parameter_places(shape, layers);
    EXPECT_EQ(all.numbers, chunk.all_weights().count);
    ASSERT_EQ(all.places.size(), chunk.parameters().size());
    for (std::size_t i = 0; i < all.places.size(); ++i) {
      const ParameterPlace& place = all.places[i];
      const Parameter& parameter = chunk.parameters()[i];
      EXPECT_EQ(place.name, parameter.name);
      EXPECT_EQ(place.count(), parameter.count);
      EXPECT_EQ(static_cast<std::size_t>(parameter.gradient.data - chunk.all_gradients().data),
                place.first * sizeof(float));
      EXPECT_EQ(place.is_matrix(), place.name.find("norm") == std::string::npos) << place.name;
    }
  }
  const std::vector<ParameterPlace> places = parameter_places(shape, {0, 4}).places;
  EXPECT_EQ(places.front().rows, to_size(shape.vocabulary)) << "of the embedding";
  EXPECT_EQ(places.back().columns, to_size(shape.hidden)) << "of the head";
}

/// Loss and gradients of one microbatch through three layers of a model of five.
struct Passed {
  std::vector<float> gradients;
  float loss = 0;
};

Passed pass(const std::vector<BlockPart>& forward, const std::vector<BlockPart>& backward) {
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  Chunk layers{*math, memory, shape, {2, 3}, Recompute::off, 1};
  layers.set_targets(MicrobatchId{0}, std::vector<std::int32_t>(shape.tokens(), 3));
  Buffer input = memory.take(shape.boundary(), "input");
  math->fill_random(9, 1, input.view());
  for (const BlockPart& part : forward)
    static_cast<void>(
        layers.forward(MicrobatchId{0}, part, part.is_first() ? std::move(input) : Buffer{}));
  for (const BlockPart& part : backward)
    static_cast<void>(layers.backward(MicrobatchId{0}, part, {}));
  Passed passed{std::vector<float>(layers.all_gradients().count), layers.loss()};
  math->copy_out(layers.all_gradients(), passed.gradients);
  EXPECT_EQ(layers.in_flight(), 0);
  return passed;
}

TEST(ChunkTest, MirroredPartsAreOfTheSameLayersForwardAndBackward) {
  const Passed whole = pass({{}}, {{}});
  // Three layers in two parts: one and two of them.
  const Passed parts = pass({{0, 2}, {1, 2}}, {{1, 2, true}, {0, 2, true}});
  EXPECT_EQ(parts.gradients, whole.gradients);
  EXPECT_EQ(parts.loss, whole.loss);
}

TEST(ChunkTest, TellsWhichWeightsAPartHas) {
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  Chunk layers{*math, memory, shape, {2, 3}, Recompute::off, 1};
  layers.set_targets(MicrobatchId{0}, std::vector<std::int32_t>(shape.tokens(), 3));
  Buffer input = memory.take(shape.boundary(), "input");
  math->fill_random(9, 1, input.view());
  static_cast<void>(layers.forward(MicrobatchId{0}, {}, std::move(input)));
  static_cast<void>(layers.backward(MicrobatchId{0}, {1, 2, true}, {}));
  std::vector<float> gradients(layers.all_gradients().count);
  math->copy_out(layers.all_gradients(), gradients);
  const NumberRange first = layers.weights_of({0, 2}), second = layers.weights_of({1, 2, true});
  EXPECT_EQ(first.first, 0U);
  EXPECT_EQ(second.first, first.count);
  EXPECT_EQ(first.count + second.count, gradients.size());
  const auto is_zero = [&](const NumberRange& range) {
    return std::all_of(gradients.begin() + static_cast<std::ptrdiff_t>(range.first),
                       gradients.begin() + static_cast<std::ptrdiff_t>(range.first + range.count),
                       [](float number) { return number == 0; });
  };
  EXPECT_TRUE(is_zero(first)) << "its layers were not passed back";
  EXPECT_FALSE(is_zero(second));
}

TEST(ChunkTest, DropsWhatIsNotPassedBack) {
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  Chunk model{*math, memory, shape, {0, 5}, Recompute::off, 1};
  const std::size_t idle = memory.held();
  float before = 0;
  for (int i = 0; i < 3; ++i) {
    model.set_tokens(MicrobatchId{0}, std::vector<std::int32_t>(shape.tokens(), 1));
    model.set_targets(MicrobatchId{0}, std::vector<std::int32_t>(shape.tokens(), 3));
    static_cast<void>(model.forward(MicrobatchId{0}, {}, {}));
    EXPECT_GT(memory.held(), idle);
    model.drop(MicrobatchId{0});
    EXPECT_EQ(memory.held(), idle);
    EXPECT_GT(model.loss(), before) << "it counts all the same";
    before = model.loss();
  }
}

TEST(ChunkTest, ForwardOnlyKeepsWeightsAlone) {
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  Chunk whole{*math, memory, shape, {0, 5}, Recompute::off, 1};
  const std::size_t of_whole = memory.held();
  Chunk served{*math, memory, shape, {0, 5}, Recompute::forward_only, 1};
  const std::size_t idle = memory.held();
  EXPECT_EQ(idle - of_whole + whole.all_gradients().bytes(), of_whole);
  EXPECT_EQ(served.all_gradients().count, 0U);
  std::vector<float> weights(whole.all_weights().count), same(weights.size());
  math->copy_out(whole.all_weights(), weights);
  math->copy_out(served.all_masters(), same);
  EXPECT_EQ(weights, same);
  std::vector<std::int32_t> text(shape.tokens());
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i % 7);
  for (Chunk* model : {&whole, &served}) {
    model->begin_iteration();
    model->set_tokens(MicrobatchId{0}, text);
    model->set_targets(MicrobatchId{0}, text);
    static_cast<void>(model->forward(MicrobatchId{0}, {0, 2}, {}));
    static_cast<void>(model->forward(MicrobatchId{0}, {1, 2}, {}));
  }
  EXPECT_EQ(whole.loss(), served.loss());
  EXPECT_NE(served.loss(), 0);
  whole.drop(MicrobatchId{0});
  EXPECT_EQ(served.in_flight(), 0);
  EXPECT_EQ(memory.held(), idle);
}

/// Gradients of a chunk whose batch changes are those of one that was made with that batch.
TEST(ChunkTest, TakesAnotherBatchBetweenIterations) {
  ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  const auto gradients = [&](Chunk& model, int batch) {
    const auto tokens = to_size(batch * shape.sequence);
    std::vector<std::int32_t> text(tokens);
    for (std::size_t i = 0; i < tokens; ++i) text[i] = static_cast<std::int32_t>(i % 7);
    model.begin_iteration();
    model.set_tokens(MicrobatchId{0}, text);
    model.set_targets(MicrobatchId{0}, text);
    static_cast<void>(model.forward(MicrobatchId{0}, {}, {}));
    static_cast<void>(model.backward(MicrobatchId{0}, {}, {}));
    std::vector<float> all(model.all_gradients().count);
    math->copy_out(model.all_gradients(), all);
    all.push_back(model.loss());
    return all;
  };
  shape.batch = 2;
  Chunk changing{*math, memory, shape, {0, 5}, Recompute::off, 1};
  for (const int batch : {2, 5, 1}) {
    shape.batch = batch;
    Chunk made{*math, memory, shape, {0, 5}, Recompute::off, 1};
    changing.set_batch(batch);
    EXPECT_EQ(gradients(changing, batch), gradients(made, batch)) << batch;
  }
}

TEST(ChunkTest, ABlockThatFailsLeavesNothingBehind) {
  const ModelShape shape = tiny_model(5);
  const auto math = make_cpu_math();
  std::size_t idle = 0, peak = 0;
  {
    DeviceMemory memory{*math, 0};
    const Chunk layer{*math, memory, shape, {1, 1}, Recompute::off, 1};
    idle = memory.held();
    peak = idle + 20 * shape.boundary() * 4;
  }
  for (std::size_t budget = idle + shape.boundary() * 4; budget < peak; budget += 500) {
    DeviceMemory memory{*math, budget};
    {
      Chunk layer{*math, memory, shape, {1, 1}, Recompute::off, 1};
      try {
        Buffer out = layer.forward(MicrobatchId{0}, {}, memory.take(shape.boundary(), "input"));
        out = layer.backward(MicrobatchId{0}, {}, std::move(out));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::run_failed);
      }
    }
    EXPECT_EQ(memory.held(), 0U) << budget;
  }
}

}  // namespace

}  // namespace longhaul::nn
