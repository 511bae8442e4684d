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
