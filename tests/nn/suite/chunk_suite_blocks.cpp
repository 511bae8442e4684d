#include "chunk_suite.hpp"

/// However blocks are cut and ordered, the same comes out.
namespace longhaul::nn {

namespace {

using naive::Numbers;

void expect_same(const Outcome& got, const Outcome& expected) {
  EXPECT_EQ(got.loss, expected.loss);
  EXPECT_EQ(got.gradients.size(), expected.gradients.size());
  for (const auto& [name, numbers] : expected.gradients) {
    EXPECT_EQ(got.gradients.at(name), numbers) << name;
  }
}

TEST_P(ChunkSuite, InputAndWeightGradientsApartAreBoth) {
  const ModelShape shape = tiny_model(5);
  expect_same(run(shape, {5}, 1, Recompute::off, BackwardRun::apart),
              run(shape, {5}, 1, Recompute::off, BackwardRun::both));
}

TEST_P(ChunkSuite, RecomputingChangesNoBit) {
  const ModelShape shape = tiny_model(5);
  const Outcome kept = run(shape, {2, 3}, 1, Recompute::off, BackwardRun::both);
  expect_same(run(shape, {2, 3}, 1, Recompute::on, BackwardRun::both), kept);
  expect_same(run(shape, {2, 3}, 1, Recompute::on, BackwardRun::apart), kept);
  expect_same(run(shape, {2, 3}, 3, Recompute::on, BackwardRun::apart), kept);
}

TEST_P(ChunkSuite, PartsChangeNoBit) {
  const ModelShape shape = tiny_model(5);
  const Outcome undivided = run(shape, {4, 1}, 1, Recompute::off, BackwardRun::both);
  for (const int parts : {2, 3, 7}) {
    SCOPED_TRACE(parts);
    for (const BackwardRun how : {BackwardRun::both, BackwardRun::apart}) {
      expect_same(run(shape, {4, 1}, parts, Recompute::off, how), undivided);
    }
  }
}

TEST_P(ChunkSuite, EveryWayToCutTheModelGivesTheSame) {
  const ModelShape shape = tiny_model(5);
  const Outcome expected = run(shape, {5}, 1, Recompute::off, BackwardRun::apart);
  for (unsigned int boundaries = 1; boundaries < 16; ++boundaries) {
    std::vector<int> cuts{1};
    for (unsigned int layer = 0; layer < 4; ++layer) {
      if ((boundaries >> layer & 1U) != 0) {
        cuts.push_back(1);
      } else {
        ++cuts.back();
      }
    }
    SCOPED_TRACE(::testing::PrintToString(cuts));
    const Outcome got = run(shape, cuts, 1, Recompute::off, BackwardRun::apart);
    EXPECT_NEAR(got.loss, expected.loss, 1e-6 * expected.loss);
    ASSERT_EQ(got.gradients.size(), expected.gradients.size());
    for (const auto& [name, numbers] : expected.gradients) {
      EXPECT_LE(naive::distance(got.gradients.at(name), numbers), 1e-6) << name;
    }
  }
}

/// As a schedule without bubbles would: all forwards, D in another order, W last.
TEST_P(ChunkSuite, MicrobatchesInterleave) {
  const ModelShape shape = tiny_model(5);
  const Outcome expected = run(shape, {2, 3}, 1, Recompute::off, BackwardRun::apart);
  for (const Recompute recompute : {Recompute::off, Recompute::on}) {
    Pipeline made = pipeline(shape, {2, 3}, 2, recompute);
    for (const int microbatch : {1, 0, 2}) {
      made.forward(microbatch, tokens(shape, microbatch), targets(shape, microbatch));
    }
    EXPECT_EQ(made.chunks().front()->in_flight(), 3);
    for (const int microbatch : {2, 0}) made.backward(microbatch, BackwardRun::apart);
    made.backward_weights(0);
    made.backward(MicrobatchId{1}, BackwardRun::apart);
    for (const int microbatch : {1, 2}) made.backward_weights(microbatch);
    const Outcome got = outcome(made);
    EXPECT_NEAR(got.loss, expected.loss, 1e-6 * expected.loss);
    for (const auto& [name, numbers] : expected.gradients) {
      EXPECT_LE(naive::distance(got.gradients.at(name), numbers), 1e-6) << name;
    }
  }
}

TEST_P(ChunkSuite, AnIterationBeginsWithoutGradients) {
  const ModelShape shape = tiny_model(3);
  const auto model = whole(shape);
  model->set_tokens(MicrobatchId{0}, tokens(shape, 0));
  model->set_targets(MicrobatchId{0}, targets(shape, 0));
  static_cast<void>(model->forward(MicrobatchId{0}, {}, {}));
  static_cast<void>(model->backward(MicrobatchId{0}, {}, {}));
  EXPECT_GT(model->loss(), 0);
  const auto length = [&] {
    const Numbers all = read(model->all_gradients());
    return naive::dot(all, all);
  };
  EXPECT_GT(length(), 0);
  model->begin_iteration();
  EXPECT_EQ(model->loss(), 0);
  EXPECT_EQ(length(), 0);
}

}  // namespace

}  // namespace longhaul::nn
