// A backlog beside memory that is short.
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prefill/accounts/idle_causes.hpp"
#include "prefill/instances.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// 1 ms and 128 bytes of keys and values a token, beside what a pass needs.
ServedModel model_with_memory(int stages = 1) {
  ServedModel model = linear_model(1ms, stages);
  model.dimensions = ServedDimensions{4, 8, 16, 2, 2, 4, 100, false};
  return model;
}

/// One bubble, from 100 to 900 ms of each second.
IterationBubbles one_bubble() {
  return find_bubbles({{block_row(0, 0, 0ms, 100ms), block_row(0, 1, 900ms, 1s)}}, 1);
}

std::vector<Decision> placed_beside(std::vector<FreeMemoryStep> steps,
                                    const std::vector<std::int64_t>& lengths,
                                    Duration held_after = {}, int iterations = 1) {
  const IterationBubbles iteration = one_bubble();
  ControllerMeans means{.held_after = held_after};
  means.memory.emplace(iteration.period,
                       std::vector<std::vector<FreeMemoryStep>>{std::move(steps)});
  std::vector<Request> file;
  for (const std::int64_t tokens : lengths) file.push_back({std::ssize(file), 0ns, tokens});
  return place_backlog(iteration, served_models(serving_scenario(1, 1, model_with_memory()), 1),
                       file, PlacementPolicy::best_fit, {.waiting = 4, .iterations = iterations},
                       means);
}

std::vector<Duration> starts_of(const std::vector<Decision>& decisions) {
  std::vector<Duration> starts;
  for (const Decision& each : decisions)
    if (!each.refused) starts.push_back(each.start);
  return starts;
}

TEST(Backlog, LeavesATimeWithoutMemoryFree) {
  const Bytes one = held_memory(model_with_memory(), 100, 0);
  const std::vector<FreeMemoryStep> gap{{0ns, one}, {400ms, one - Bytes{1}}, {600ms, one}};
  const auto decisions = placed_beside(gap, {100});
  EXPECT_THAT(starts_of(decisions), ElementsAre(100ms, 200ms, 300ms, 600ms, 700ms, 800ms));
  EXPECT_EQ(decisions.size(), 6U) << "what waits at the end is refused for nothing";
  const auto served = served_models(serving_scenario(1, 1, model_with_memory()), 1);
  const IdleTimes idle = idle_by_cause(one_bubble(), served, decisions, 1, true);
  EXPECT_EQ(idle[static_cast<std::size_t>(IdleCause::memory)], 200ms);
  EXPECT_THAT(starts_of(placed_beside(gap, {100}, 1ms)), ElementsAre(100ms, 201ms, 600ms, 701ms))
      << "each is held a millisecond longer";
}

TEST(Backlog, RefusesWhatNoMemoryEverHolds) {
  const Bytes one = held_memory(model_with_memory(), 100, 0);
  const auto decisions = placed_beside({{0ns, one}}, {100, 200});
  int refused = 0;
  for (const Decision& each : decisions) {
    EXPECT_EQ(each.refused.has_value(), each.tokens == 200);
    if (!each.refused) continue;
    ++refused;
    EXPECT_EQ(each.refused, RefusalReason::memory);
    EXPECT_EQ(each.lacks, held_memory(model_with_memory(), 200, 0) - one);
  }
  EXPECT_EQ(starts_of(decisions).size(), 8U);
  EXPECT_GT(refused, 4);
  EXPECT_THAT(starts_of(placed_beside({{0ns, Bytes{}}}, {100})), IsEmpty());
}

/// What is held beside training at a time, of one GPU.
Bytes held_at(const std::vector<Decision>& decisions, const Served& served, std::int32_t rank,
              Duration time, Duration held_after) {
  Bytes held;
  for (const Decision& each : decisions) {
    if (each.refused || time < each.start || time >= each.end + held_after) continue;
    for (const Pipeline& pipeline : served.serving.pipelines)
      for (int stage = 0; pipeline.number == each.pipeline && stage < served.model.stages; ++stage)
        if (pipeline.ranks[static_cast<std::size_t>(stage)] == rank)
          held += held_memory(served.model, each.tokens, stage);
  }
  return held;
}

class BacklogOfRandom : public ::testing::TestWithParam<int> {};

/// Chunks, batches, two stages, and whole prompts alone, each with memory that is short at times.
TEST_P(BacklogOfRandom, NeverHoldsMoreThanThereIs) {
  Random random{31};
  int short_of = 0, filled = 0;
  for (int instance = 0; instance < 120; ++instance) {
    ServedModel model = model_with_memory(GetParam() == 2 ? 2 : 1);
    for (PrefillPoint& point : model.profile) point.time = Duration{point.tokens};
    model.chunk = GetParam() == 1 ? 2 : 0;
    model.batch = GetParam() == 1 ? 2 : 1;
    const Scenario scenario = serving_scenario(2, 2, model);
    const IterationBubbles iteration = find_bubbles(random_rows(random, 4), 4);
    const auto served = served_models(scenario, 1);
    std::vector<Request> file;
    for (std::int64_t id = 0; id < 5; ++id) file.push_back({id, 0ns, random.between(1, 6)});
    const std::int64_t most = held_memory(model, 6, 0).count();
    std::vector<std::vector<FreeMemoryStep>> steps(4);
    for (auto& each : steps) {
      each.push_back({0ns, Bytes{random.between(most / 3, 3 * most)}});
      if (iteration.period > 2ns)
        each.push_back({iteration.period / 2, Bytes{random.between(most / 3, 3 * most)}});
    }
    ControllerMeans means{.held_after = Duration{random.between(0, 1)}};
    means.memory.emplace(iteration.period, steps);
    const auto decisions =
        place_backlog(iteration, served, file, PlacementPolicy::best_fit,
                      {.waiting = random.between(1, 5), .iterations = 3, .patience = 3}, means);
    for (const Decision& each : decisions) {
      short_of += each.waited_for_memory || each.refused == RefusalReason::memory;
      filled += !each.refused;
    }
    for (std::int32_t rank = 0; rank < 4; ++rank)
      for (Duration time{}; time < 3 * iteration.period; ++time) {
        const auto& own = steps[static_cast<std::size_t>(rank)];
        const Duration in = time % iteration.period;
        const Bytes free = own.size() > 1 && in >= own[1].at ? own[1].bytes : own[0].bytes;
        ASSERT_LE(held_at(decisions, served[0], rank, time, means.held_after), free)
            << "instance " << instance << ", rank " << rank << " at " << time.count() << " ns";
      }
  }
  EXPECT_GT(short_of, 50);
  EXPECT_GT(filled, 300);
}
INSTANTIATE_TEST_SUITE_P(Of, BacklogOfRandom, ::testing::Values(0, 1, 2));

TEST(Backlog, IsFilledByLengthWhereMemoryIsAlwaysEnough) {
  const Bytes one = held_memory(model_with_memory(), 500, 0);
  const std::vector<std::int64_t> lengths{500, 200, 400, 300, 100};
  const auto without = placed_beside({}, lengths, {}, 3);
  const auto enough = placed_beside({{0ns, one}}, lengths, {}, 3);
  ASSERT_EQ(without.size(), enough.size());
  for (std::size_t i = 0; i < enough.size(); ++i) {
    EXPECT_EQ(enough[i].request, without[i].request);
    EXPECT_EQ(enough[i].start, without[i].start);
  }
  const auto in_order = placed_beside({{0ns, one - Bytes{1}}}, lengths, {}, 3);
  EXPECT_NE(starts_of(in_order), starts_of(without));
}

}  // namespace
}  // namespace longhaul::prefill
