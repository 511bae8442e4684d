#include "profile/operator_times.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::profile {
namespace {

TrainingRow row_of(int tensor, int data, int pipeline) {
  TrainingRow row;
  row.row = "1";
  row.machine = "selene";
  row.gpus = tensor * data * pipeline;
  row.micro_batch = 2;
  row.global_batch = 8 * data * row.micro_batch;
  row.sequence = 2048;
  row.hidden = 4096;
  row.intermediate = 16384;
  row.heads = row.kv_heads = 32;
  row.layers = 32;
  row.vocabulary = 50257;
  row.tensor = tensor;
  row.data = data;
  row.pipeline = pipeline;
  return row;
}

Machine machine_with(double bytes_per_ns) {
  Machine machine = machine_named("selene");
  machine.node_bytes_per_ns = bytes_per_ns;
  machine.parameters[Parameter::alpha_data] = 1;
  return machine;
}

TEST(OperatorTimes, AllReduceBetweenNodesIsEquationOne) {
  const Machine machine = machine_with(100);
  EXPECT_NEAR(
      all_reduce_ns(1e9, {64, false, 1}, Parameter::alpha_data, machine, machine.parameters),
      19.6875e6, 1);
  EXPECT_NEAR(
      all_reduce_ns(1e9, {64, false, 8}, Parameter::alpha_data, machine, machine.parameters),
      8 * 19.6875e6, 1);
  EXPECT_EQ(all_reduce_ns(1e9, {1, false, 1}, Parameter::alpha_data, machine, machine.parameters),
            0);
}

TEST(OperatorTimes, GroupsFollowTheOrderOfRanks) {
  const Machine& machine = machine_named("selene");
  EXPECT_TRUE(data_group(row_of(2, 4, 2), machine).inside_node);
  const RankGroup data = data_group(row_of(4, 8, 2), machine);
  EXPECT_FALSE(data.inside_node);
  EXPECT_EQ(data.rings, 4);
  EXPECT_TRUE(tensor_group(row_of(8, 1, 1), machine).inside_node);
  EXPECT_FALSE(tensor_group(row_of(16, 1, 1), machine).inside_node);
  EXPECT_FALSE(border_leaves_node(row_of(2, 2, 2), machine, 0));
  EXPECT_TRUE(border_leaves_node(row_of(2, 2, 4), machine, 1));
  EXPECT_TRUE(border_leaves_node(row_of(8, 1, 4), machine, 0));
}

TEST(OperatorTimes, BackwardIsTwiceAForwardAndRecomputationAForward) {
  const Machine& machine = machine_named("selene");
  TrainingRow row = row_of(1, 1, 1);
  const GraphTimes plain = graph_times(row_graph(row, machine), machine.parameters);
  EXPECT_NEAR(plain.layer.backward.compute / plain.layer.forward.compute, 2, 0.2);
  EXPECT_EQ(plain.layer.forward.tensor, 0);
  row.recompute = RecomputeKind::full;
  const GraphTimes full = graph_times(row_graph(row, machine), machine.parameters);
  EXPECT_NEAR(full.layer.backward.compute,
              plain.layer.backward.compute + plain.layer.forward.compute, 1);
  row.recompute = RecomputeKind::selective;
  const GraphTimes some = graph_times(row_graph(row, machine), machine.parameters);
  EXPECT_GT(some.layer.backward.compute, plain.layer.backward.compute);
  EXPECT_LT(some.layer.backward.compute, full.layer.backward.compute);
}

// Of 4096 tokens and 2 bytes of 4096 values each; of a loss 4 bytes of each token, three times.
TEST(OperatorTimes, EndsOfTensorRanksSumWhatTheyCutTheVocabularyFor) {
  Machine machine = machine_with(100);
  machine.parameters[Parameter::alpha_tensor] = 1;
  TrainingRow row = row_of(16, 1, 1);  // two nodes: 15/8 of the bytes at 100 bytes a ns
  const double whole = 4096 * 4096 * 2 * 15 / 8 / 100.0, loss = 3 * 4096 * 4 * 15 / 8 / 100.0;
  const auto times = [&] {
    return graph_times(row_graph(row, machine, Extrapolation::allowed), machine.parameters);
  };
  GraphTimes ends = times();
  EXPECT_NEAR(ends.embedding.forward.tensor, whole, 1e-3);
  EXPECT_EQ(ends.embedding.backward.tensor, 0);
  EXPECT_NEAR(ends.head.forward.tensor, loss, 1e-3);
  EXPECT_NEAR(ends.head.backward.tensor, whole, 1e-3);
  row.sequence_parallel = true;  // scattered in one pass, gathered in the other
  ends = times();
  EXPECT_NEAR(ends.embedding.forward.tensor, whole / 2, 1e-3);
  EXPECT_NEAR(ends.embedding.backward.tensor, whole / 2, 1e-3);
  EXPECT_NEAR(ends.head.forward.tensor, loss + whole / 2, 1e-3);
  EXPECT_NEAR(ends.head.backward.tensor, whole / 2, 1e-3);
  row = row_of(1, 1, 1);
  EXPECT_EQ(times().head.forward.tensor, 0);
}

TEST(OperatorTimes, FasterOperatorsAndLinksNeverTakeLonger) {
  const Machine& machine = machine_named("selene");
  const RowGraph graph = row_graph(row_of(4, 4, 2), machine);
  for (const Parameter parameter :
       {Parameter::matmul_rate, Parameter::memory_rate, Parameter::nvlink_rate}) {
    ParameterValues faster = machine.parameters;
    faster[parameter] *= 1.2;
    EXPECT_LT(graph_times(graph, faster).layer.backward.total(),
              graph_times(graph, machine.parameters).layer.backward.total())
        << to_string(parameter);
  }
}

TEST(OperatorGraph, DoesNotGrowWithLayersOrMicrobatches) {
  const Machine& machine = machine_named("selene");
  TrainingRow row = row_of(2, 2, 2);
  const RowGraph few = row_graph(row, machine);
  row.layers *= 4;
  row.global_batch *= 4;
  const RowGraph many = row_graph(row, machine);
  EXPECT_EQ(many.layer.forward.size(), few.layer.forward.size());
  EXPECT_EQ(many.layer.backward.size(), few.layer.backward.size());
  EXPECT_EQ(shape_text(few.layer.forward[1]), "4096x6144x4096");
}

TEST(OperatorGraph, RefusesProductsFarBeyondMeasuredOnes) {
  const Machine& machine = machine_named("selene");
  TrainingRow row = row_of(1, 1, 1);
  row.vocabulary = 1'000'000;
  EXPECT_THROW((void)row_graph(row, machine), Error);
  EXPECT_EQ(row_graph(row, machine, Extrapolation::allowed).basis, TimeBasis::extrapolated);
}

}  // namespace
}  // namespace longhaul::profile
