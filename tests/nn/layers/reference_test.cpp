#include "nn/layers/reference.hpp"

#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "chunk_suite.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::nn {

namespace {

using naive::Numbers;

Numbers wide(const std::vector<float>& numbers) { return {numbers.begin(), numbers.end()}; }

/// Two chunks with D and W apart give the reference's result, iteration for iteration.
TEST(ReferenceTest, ChunksThatStepByThemselvesStayWithIt) {
  const ModelShape shape = tiny_model(5);
  const SyntheticText text{shape, 2};
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    const OptimizerOptions options{kind, 0.01F};
    Reference reference{make_cpu_math(), shape, 9, options};
    const auto math = make_cpu_math();
    DeviceMemory memory{*math, 0};
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::vector<Optimizer> optimizers;
    for (const LayerRange layers : {LayerRange{0, 2}, LayerRange{2, 3}}) {
      chunks.push_back(std::make_unique<Chunk>(*math, memory, shape, layers, Recompute::on, 9));
      chunks.back()->set_loss_scale(1.0F / static_cast<float>(2 * shape.tokens()));
      optimizers.emplace_back(*math, memory, options, chunks.back()->all_weights().count, "chunk");
    }
    Pipeline pipeline{std::move(chunks), 1, Recompute::on};
    for (int iteration = 0; iteration < 3; ++iteration) {
      const std::vector<MicrobatchText> microbatches{
          text(iteration, ReplicaId{0}, MicrobatchId{0}),
          text(iteration, ReplicaId{0}, MicrobatchId{1})};
      const double loss = reference.run(microbatches);
      for (const int microbatch : {1, 0}) {
        const MicrobatchText& piece = microbatches[static_cast<std::size_t>(microbatch)];
        pipeline.forward(microbatch, piece.tokens, piece.targets);
        pipeline.backward(microbatch, BackwardRun::apart);
        pipeline.backward_weights(microbatch);
      }
      EXPECT_NEAR(pipeline.chunks().back()->loss(), loss, 1e-5 * loss);
      for (std::size_t i = 0; i < 2; ++i) {
        Chunk& chunk = *pipeline.chunks()[i];
        for (const Parameter& parameter : chunk.parameters()) {
          std::vector<float> numbers(parameter.count);
          math->copy_out(parameter.gradient, numbers);
          EXPECT_LE(naive::distance(wide(numbers), wide(reference.gradient(parameter.name))), 1e-5)
              << parameter.name << ", iteration " << iteration;
        }
        optimizers[i].step(iteration + 1, chunk.all_gradients(), chunk.all_masters(),
                           chunk.all_weights());
        chunk.begin_iteration();
      }
      reference.step(iteration + 1);
    }
  }
}

TEST(ReferenceTest, GradientsOfAnIterationAreItsOwn) {
  const ModelShape shape = tiny_model(3);
  const SyntheticText text{shape, 2};
  Reference reference{make_cpu_math(), shape, 9, {}};
  const std::vector<MicrobatchText> one{text(0, ReplicaId{0}, MicrobatchId{0})},
      both{text(0, ReplicaId{0}, MicrobatchId{0}), text(0, ReplicaId{0}, MicrobatchId{1})};
  const double loss = reference.run(one);
  const std::vector<float> gradient = reference.gradient("head.output");
  EXPECT_NE(reference.run(both), loss);
  EXPECT_EQ(reference.run(one), loss);
  EXPECT_EQ(reference.gradient("head.output"), gradient);
}

TEST(ReferenceTest, GoesOnFromWeightsThatItIsGiven) {
  const ModelShape shape = tiny_model(4);
  const SyntheticText text{shape, 2};
  const std::vector<MicrobatchText> microbatches{text(0, ReplicaId{0}, MicrobatchId{0})};
  Reference mine{make_cpu_math(), shape, 9, {}}, other{make_cpu_math(), shape, 10, {}};
  EXPECT_NE(mine.masters(), other.masters());
  const double loss = mine.run(microbatches);
  EXPECT_NE(other.run(microbatches), loss);
  other.set_masters(mine.masters());
  EXPECT_EQ(other.run(microbatches), loss);
  EXPECT_EQ(other.gradients(), mine.gradients());
  other.set_gradients(std::vector<float>(other.gradients().size(), 0.0F));
  other.set_gradients(mine.gradients());
  mine.step(1);
  other.step(1);
  EXPECT_EQ(other.masters(), mine.masters());
}

/// Ranks may be threads of one process: what one computes changes nothing for the others.
TEST(ReferenceTest, ThreadsComputeSideBySide) {
  const ModelShape shape = tiny_model(5);
  const SyntheticText text{shape, 2};
  const auto losses = [&](std::uint64_t seed) {
    Reference reference{make_cpu_math(), shape, seed, {}};
    std::vector<double> found;
    for (int iteration = 0; iteration < 20; ++iteration) {
      found.push_back(reference.run(std::vector{text(iteration, ReplicaId{0}, MicrobatchId{0})}));
      reference.step(iteration + 1);
    }
    return found;
  };
  std::vector<std::vector<double>> together(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < together.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = losses(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i], losses(i));
}

/// Untrained, each token is as likely as any other; trained, the model knows most of what the chain
/// has to tell.
TEST(ReferenceTest, ATinyModelLearnsTheText) {
  ModelShape shape = tiny_model(4);
  shape.batch = 4;
  shape.sequence = 32;
  shape.hidden = shape.intermediate = 32;
  shape.vocabulary = 16;
  const SyntheticText text{shape, 3};
  for (const auto& [kind, rate] :
       {std::pair{OptimizerKind::adamw, 0.01F}, {OptimizerKind::sgd, 1.0F}}) {
    Reference reference{make_cpu_math(), shape, 1, {kind, rate}};
    double first = 0, last = 0;
    for (int iteration = 0; iteration < 150; ++iteration) {
      const std::vector<MicrobatchText> microbatches{
          text(iteration, ReplicaId{0}, MicrobatchId{0}),
          text(iteration, ReplicaId{1}, MicrobatchId{0})};
      last = reference.run(microbatches);
      if (iteration == 0) first = last;
      reference.step(iteration + 1);
    }
    EXPECT_NEAR(first, std::log(16), 0.1);
    EXPECT_LT(last, text.entropy() + 0.5);
    EXPECT_GT(last, text.entropy() - 0.3);
  }
}

}  // namespace

}  // namespace longhaul::nn
