#include "planner/predict/row_plan.hpp"

#include <cmath>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "planner/predict/rows.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;
using profile::RowGraph;
using profile::RowSchedule;
using profile::ShardingKind;
using profile::TrainingRow;
using test::selene;
using test::training_row;

RowPlan plan_of(const TrainingRow& row) { return RowPlan{profile::row_graph(row, selene())}; }

/// Messages and reductions that take no time.
ParameterValues free_links() {
  ParameterValues values = selene().parameters;
  for (const Parameter parameter :
       {Parameter::alpha_data, Parameter::alpha_tensor, Parameter::alpha_pipeline})
    values[parameter] = 1e12;
  values[Parameter::nvlink_rate] = 1e12;
  values[Parameter::message_time] = 0;
  return values;
}

double total(const SlotTime& time) { return static_cast<double>(time.total().count()); }

/// When each stage has done its blocks under 1F1B, messages taking no time: by the recurrence over
/// its order, apart from plans.
std::vector<double> one_f_one_b(const std::vector<double>& forward,
                                const std::vector<double>& backward, std::size_t microbatches) {
  struct Step {
    bool is_forward;
    std::size_t microbatch;
  };
  const std::size_t stages = forward.size();
  std::vector<std::vector<double>> f(stages, std::vector<double>(microbatches)), b = f;
  std::vector<std::size_t> next(stages);
  std::vector<double> free(stages);
  std::vector<std::vector<Step>> order(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    const std::size_t ahead = std::min(stages - s, microbatches);
    for (std::size_t m = 0; m < ahead; ++m) order[s].push_back({true, m});
    for (std::size_t m = 0; m < microbatches; ++m) {
      order[s].push_back({false, m});
      if (ahead + m < microbatches) order[s].push_back({true, ahead + m});
    }
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s)
      while (next[s] < order[s].size()) {
        const auto [is_forward, m] = order[s][next[s]];
        double ready = 0;
        if (is_forward && s > 0) ready = f[s - 1][m];
        if (!is_forward) ready = s + 1 < stages ? b[s + 1][m] : f[s][m];
        if ((!is_forward || s > 0) && ready == 0) break;
        free[s] = std::max(free[s], ready) + (is_forward ? forward[s] : backward[s]);
        (is_forward ? f : b)[s][m] = free[s];
        ++next[s];
        moved = true;
      }
  }
  return free;
}

TEST(RowPlan, OfOneStageIsTheSumOfItsParts) {
  RowPlan plan = plan_of(training_row(1, 1, 1, 3));
  const ParameterValues& values = selene().parameters;
  const RowRun run = plan.run(values);
  Duration sum{};
  for (std::size_t slot = 0; slot < plan.slots().size(); ++slot) {
    const Duration time = plan.times(values)[slot].total();
    const SlotKind kind = plan.slots()[slot].kind;
    const bool is_block = kind == SlotKind::forward || kind == SlotKind::backward;
    if (is_block || kind == SlotKind::step) sum += time * (is_block ? 3 : 1);
  }
  EXPECT_EQ(run.iteration, sum);
  EXPECT_EQ(run.parts.tensor + run.parts.pipeline + run.parts.data, 0);
}

TEST(RowPlan, OfAPipelineEqualsTheRecurrenceOver1F1B) {
  std::mt19937 random{7};
  for (int instance = 0; instance < 20; ++instance) {
    const int stages = 1 << random() % 4;
    const auto microbatches = static_cast<int>(1 + random() % 12);
    TrainingRow row = training_row(1, 1, stages, microbatches);
    row.layers = static_cast<int>(16 + random() % 5);
    RowPlan plan = plan_of(row);
    const ParameterValues values = free_links();
    const std::vector<SlotTime> times = plan.times(values);
    std::vector<double> forward, backward, step;
    for (std::size_t slot = 0; slot < times.size(); ++slot) {
      const SlotKind kind = plan.slots()[slot].kind;
      if (kind == SlotKind::forward) forward.push_back(total(times[slot]));
      if (kind == SlotKind::backward) backward.push_back(total(times[slot]));
      if (kind == SlotKind::step) step.push_back(total(times[slot]));
    }
    std::vector<double> ends = one_f_one_b(forward, backward, to_size(microbatches));
    // The first and the last stage sum the gradients of their embedding before they step.
    ends.front() = ends.back() = std::max(ends.front(), ends.back());
    for (std::size_t stage = 0; stage < ends.size(); ++stage) ends[stage] += step[stage];
    const auto iteration = static_cast<double>(plan.run(values).iteration.count());
    EXPECT_EQ(iteration, *std::ranges::max_element(ends));
  }
}

TEST(RowPlan, PartsAndTheCriticalPathAddUpToTheIteration) {
  std::mt19937 random{11};
  for (int instance = 0; instance < 20; ++instance) {
    const int tensor = 1 << random() % 5;
    const int data = 1 << random() % 4;
    const int stages = 1 << random() % 4;
    const int microbatches = stages * static_cast<int>(1 + random() % 4);
    TrainingRow row = training_row(tensor, data, stages, microbatches);
    if (stages > 1 && random() % 2 == 0) {
      row.schedule = RowSchedule::interleaved;
      row.chunks = 2;
    }
    if (stages == 1 && random() % 2 == 0) row.sharding = ShardingKind::zero3;
    RowPlan plan = plan_of(row);
    const ParameterValues& values = selene().parameters;
    const RowRun run = plan.run(values);
    const IterationParts& parts = run.parts;
    EXPECT_NEAR(
        parts.compute + parts.tensor + parts.pipeline + parts.data + parts.bubble + parts.optimizer,
        static_cast<double>(run.iteration.count()), 1);
    Duration on_path{};
    const std::vector<SlotTime> times = plan.times(values);
    for (std::size_t slot = 0; slot < times.size(); ++slot)
      on_path += times[slot].total() * run.on_path[slot];
    EXPECT_EQ(on_path, run.iteration);
    for (const double part :
         {parts.compute, parts.tensor, parts.pipeline, parts.data, parts.bubble, parts.optimizer})
      EXPECT_GE(part, 0);
  }
}

TEST(RowPlan, MoreBandwidthOrFasterOperatorsNeverTakeLonger) {
  RowPlan pipeline = plan_of(training_row(4, 4, 4, 8));
  TrainingRow sharded = training_row(1, 16, 1, 4);
  sharded.sharding = ShardingKind::zero3;
  RowPlan gathers = plan_of(sharded);
  for (RowPlan* const plan : {&pipeline, &gathers})
    for (const Parameter parameter :
         {Parameter::matmul_rate, Parameter::memory_rate, Parameter::alpha_data,
          Parameter::alpha_pipeline, Parameter::nvlink_rate}) {
      ParameterValues faster = selene().parameters;
      faster[parameter] *= 1.3;
      EXPECT_LE(plan->run(faster).iteration, plan->run(selene().parameters).iteration)
          << to_string(parameter);
    }
}

TEST(RowPlan, TwiceTheLayersWithoutAPipelineTakeAboutTwiceAsLong) {
  TrainingRow row = training_row(2, 2, 1, 4);
  const Duration once = plan_of(row).run(selene().parameters).iteration;
  row.layers *= 2;
  const Duration twice = plan_of(row).run(selene().parameters).iteration;
  EXPECT_GE(twice, once * 16 / 10);
  EXPECT_LE(twice, once * 215 / 100);
}

TEST(RowPlan, GathersHideBesideComputationUnlessTheNetworkIsSlow) {
  TrainingRow row = training_row(1, 16, 1, 2);
  row.sharding = ShardingKind::zero3;
  RowPlan plan = plan_of(row);
  ParameterValues values = selene().parameters;
  const RowRun fast = plan.run(values);
  values[Parameter::alpha_data] = 0.05;
  const RowRun slow = plan.run(values);
  EXPECT_LT(fast.parts.data, 0.2 * fast.parts.compute);
  EXPECT_GT(slow.parts.data, slow.parts.compute);
}

// Figure 5 of vTrain: four layers of B = 100 in buckets of two, each of which takes 150: the sums
// end at 550, 150 after the block; without buckets they take 300 after it.
TEST(RowSlots, BucketsOfGradientsLeaveAsSoonAsTheirLayersHaveThem) {
  TrainingRow row = training_row(1, 16, 1, 2);
  row.layers = 4;
  row.vocabulary = 1;  // the ends count for next to nothing, but for the embedding's time
  double embedding = 0;
  const auto ends = [&](std::optional<Bytes> bucket) {
    row.bucket = bucket;
    const RowGraph graph = profile::row_graph(row, selene(), profile::Extrapolation::allowed);
    ParameterValues values = selene().parameters;
    const profile::GraphTimes times = graph_times(graph, values);
    const double layer = times.layer.backward.total();
    embedding = 100 * times.embedding.backward.total() / layer;
    const double sum = profile::all_reduce_ns(2 * 2 * row.layer_weights(), {16, false, 1},
                                              Parameter::alpha_data, selene(), values);
    values[Parameter::alpha_data] *= sum / (1.5 * layer);
    RowPlan plan{graph};
    for (std::size_t slot = 0; slot < plan.slots().size(); ++slot)
      if (plan.slots()[slot].kind == SlotKind::reduce)
        return 100 * plan.times(values)[slot].data / layer;
    return 0.0;
  };
  const Bytes of_two{std::llround(2 * 2 * row.layer_weights())};
  EXPECT_NEAR(ends(std::nullopt), 300, 0.1);
  EXPECT_NEAR(ends(of_two), 150 - embedding, 0.1);
  EXPECT_NEAR(ends(Bytes{1}), 75 - embedding, 0.1);  // each layer by itself
  EXPECT_NEAR(ends(1_GiB), 300, 0.1);                // one bucket
  EXPECT_LT(embedding, 2);
  row.sharding = ShardingKind::zero1;  // a half is the gather of the weights after the step
  EXPECT_NEAR(ends(of_two), 75 - embedding + 150, 0.1);
  row.pipeline = 2;
  row.gpus *= 2;
  row.schedule = RowSchedule::one_f_one_b;
  const double by_zero1 = ends(Bytes{1});
  row.sharding = ShardingKind::zero2;  // between stages as zero1
  EXPECT_NEAR(ends(Bytes{1}), by_zero1, 1e-6);
}

TEST(RowPlan, BucketsNeverTakeLongerBetweenNodes) {
  std::mt19937 random{5};
  for (int instance = 0; instance < 40; ++instance) {
    const int stages = 1 << random() % 3;
    TrainingRow row =
        training_row(1 << random() % 3, 16, stages, stages * static_cast<int>(1 + random() % 3));
    row.layers = static_cast<int>(8 + random() % 9);
    if (stages > 1 && random() % 2 == 0) {
      row.schedule = RowSchedule::interleaved;
      row.chunks = 2;
    }
    if (random() % 2 == 0) row.recompute = RecomputeKind::full;
    const Duration whole = plan_of(row).run(selene().parameters).iteration;
    row.bucket = Bytes{std::int64_t{1} << (20 + random() % 10)};
    const Duration parted = plan_of(row).run(selene().parameters).iteration;
    EXPECT_LE(parted, whole + Duration{16}) << "instance " << instance;  // rounding
  }
}

// NCCL's blocks take a share of the GPU from what computes meanwhile: by hand, 0.2 of it.
TEST(RowSlots, CollectivesSlowTheBlockBesideThemWhileTheyLast) {
  profile::Machine machine = selene();
  machine.gpu.collective_share = 0.2;
  TrainingRow row = training_row(1, 16, 1, 2);
  row.sharding = ShardingKind::zero3;
  const profile::RowGraph graph = profile::row_graph(row, machine);
  const auto times = [&](double gathered, double scattered) {
    return slot_times(
        {Slot{.layers = 1}, Slot{.layers = 1, .gathered = gathered, .scattered = scattered},
         Slot{.kind = SlotKind::gather, .weights = gathered},
         Slot{.kind = SlotKind::scatter, .weights = scattered}},
        graph, machine.parameters);
  };
  const auto shorter = times(1e6, 2e6);
  EXPECT_LT(shorter[2].data + shorter[3].data, shorter[0].compute);
  EXPECT_NEAR(shorter[1].compute, shorter[0].compute + 0.2 * (shorter[2].data + shorter[3].data),
              1e-3);
  EXPECT_EQ(times(0, 0)[1].compute, shorter[0].compute);
  const auto longer = times(1e10, 0);
  EXPECT_NEAR(longer[1].compute, longer[0].compute / 0.8, 1e-3);
}

// 16 ranks on two nodes: one border of 14 us and 14 steps of 3.4 us. bf16 sums gradients in fp32.
TEST(RowSlots, GathersAndScattersHaveTheLatencyOfTheirRing) {
  TrainingRow row = training_row(1, 16, 1, 2);
  row.sharding = ShardingKind::zero3;
  const auto times = [&](const char* precision) {
    row.precision = precision;
    return slot_times({Slot{.kind = SlotKind::gather, .weights = 1e9},
                       Slot{.kind = SlotKind::scatter, .weights = 1e9},
                       Slot{.kind = SlotKind::reduce, .weights = 1e9}},
                      profile::row_graph(row, selene()), selene().parameters);
  };
  constexpr double kLatency = 14'000 + 14 * 3'400;
  const auto pure = times("bf16-pure"), mixed = times("bf16");
  EXPECT_NEAR(pure[0].data, pure[2].data / 2 + kLatency, 1e-3);
  EXPECT_NEAR(pure[1].data, pure[0].data, 1e-3);
  EXPECT_NEAR(mixed[0].data, pure[0].data, 1e-3);
  EXPECT_NEAR(mixed[1].data, pure[2].data + kLatency, 1e-3);
  EXPECT_EQ(mixed[2].data, pure[2].data);  // equation 1, as it is printed
}

}  // namespace
}  // namespace longhaul::planner
