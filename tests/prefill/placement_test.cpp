#include "prefill/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "prefill/instances.hpp"
#include "prefill/oracle.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;

std::vector<Decision> placed(const std::vector<TimelineRow>& rows, const Scenario& scenario,
                             const std::vector<Request>& requests,
                             PlacementPolicy policy = PlacementPolicy::earliest, int cell = 1) {
  Controller controller{find_bubbles(rows, scenario.ranks()), served_models(scenario, cell),
                        policy};
  return place_open_loop(controller, requests);
}

std::vector<Duration> starts(const std::vector<Decision>& decisions) {
  std::vector<Duration> times;
  for (const Decision& decision : decisions) times.push_back(decision.start);
  return times;
}

TEST(Placement, StartsAtTheEarliestTimeThatHoldsThePrompt) {
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  const std::vector<Decision> decisions =
      placed(gpipe_rows(), scenario, {{0, 250ms, 100}, {1, 450ms, 100}, {2, 450ms, 100}});
  EXPECT_THAT(starts(decisions), ElementsAre(250ms, 700ms, 800ms));
  EXPECT_EQ(decisions[0].pipeline, 0);
  EXPECT_EQ(decisions[2].pipeline, 1);
}

TEST(Placement, ABubbleThatBeganBeforeTimeZeroIsCutThere) {
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  EXPECT_THAT(starts(placed(gpipe_rows(), scenario, {{0, 0ms, 100}, {1, 0ms, 101}})),
              ElementsAre(0ms, 200ms));
}

TEST(Placement, TheGuardStaysFreeAtTheBubblesEndAlone) {
  ServedModel model = linear_model(1ms);
  model.guard = 10ms;
  const Scenario scenario = serving_scenario(2, 1, model);
  // 290 ms of device 0 hold two of 100 ms, then one of 90 before the guard.
  EXPECT_THAT(starts(placed(gpipe_rows(), scenario,
                            {{0, 100ms, 100}, {1, 100ms, 100}, {2, 100ms, 100}, {3, 100ms, 90}})),
              ElementsAre(200ms, 300ms, 700ms, 400ms));
}

TEST(Placement, StagesFollowEachOtherAfterAHop) {
  ServedModel model = linear_model(1ms, 2);
  model.hop = 10ms;
  const Scenario scenario = serving_scenario(2, 2, model);
  const std::vector<Decision> decisions = placed(gpipe_rows(2), scenario, {{0, 200ms, 100}});
  EXPECT_EQ(decisions[0].start, 200ms);
  EXPECT_EQ(decisions[0].end, 310ms);
  EXPECT_EQ(decisions[0].hops, 10ms);
}

TEST(Placement, RefusesWithTheFirstReasonThatHolds) {
  ServedModel model = linear_model(1ms);
  model.slo_ttft = 200ms;
  const Scenario scenario = serving_scenario(2, 1, model);
  const std::vector<Decision> decisions = placed(
      gpipe_rows(), scenario, {{0, 0ms, 1001}, {1, 0ms, 350}, {2, 150ms, 160}, {3, 150ms, 150}});
  EXPECT_EQ(decisions[0].refused, RefusalReason::profile);
  EXPECT_EQ(decisions[1].refused, RefusalReason::too_long);
  EXPECT_EQ(decisions[2].refused, RefusalReason::slo);
  EXPECT_FALSE(decisions[3].refused.has_value());
  EXPECT_EQ(decisions[3].start, 200ms);
}

TEST(Placement, ABacklogNamesModelsThatAreServed) {
  const std::vector<Request> file{{0, 0ns, 100}, {1, 0ns, 100, "liner"}};
  ServedModel batches = linear_model(1ms), chunks = batches;
  batches.batch = 4;
  chunks.chunk = 50;
  for (const ServedModel& model : {linear_model(1ms), batches, chunks}) {
    const auto served = served_models(serving_scenario(2, 1, model), 1);
    EXPECT_THAT(
        [&] {
          (void)place_backlog(find_bubbles(gpipe_rows(), 2), served, file,
                              PlacementPolicy::best_fit, {.waiting = 4, .iterations = 2});
        },
        ::testing::ThrowsMessage<Error>(
            ::testing::HasSubstr("request 1: there is no served model \"liner\"")));
  }
}

TEST(Placement, BestFitTakesOfEquallyEarlyStartsTheTightestBubble) {
  const std::vector<TimelineRow> rows{block_row(0, 0, 0ms, 100ms), block_row(0, 1, 500ms, 900ms),
                                      block_row(1, 2, 0ms, 100ms), block_row(1, 3, 250ms, 900ms)};
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  EXPECT_EQ(placed(rows, scenario, {{0, 0ms, 100}}, PlacementPolicy::earliest)[0].pipeline, 0);
  EXPECT_EQ(placed(rows, scenario, {{0, 0ms, 100}}, PlacementPolicy::best_fit)[0].pipeline, 1);
}

TEST(Placement, ARequestMayNameItsModel) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.served.push_back(linear_model(2ms));
  scenario.served.back().name = "slow";
  const std::vector<Decision> decisions = placed(gpipe_rows(), scenario, {{0, 200ms, 100, "slow"}});
  EXPECT_EQ(decisions[0].end, 400ms);
  EXPECT_THROW((void)placed(gpipe_rows(), scenario, {{0, 200ms, 100, "slwo"}}), Error);
}

// The second stage would compute from 900 to 1000 ms, in the next iteration.
TEST(Placement, NoPromptGoesOverTheEndOfAnIterationThatRunsApart) {
  const Scenario scenario = serving_scenario(2, 2, linear_model(1ms, 2));
  const auto start_of = [&](bool apart) {
    Controller controller{cut_at_ends(find_bubbles(gpipe_rows(2), 4)),
                          served_models(scenario, 1),
                          PlacementPolicy::earliest,
                          {.from_zero = false, .apart = apart}};
    return controller.decide({0, 750ms, 200}).start;
  };
  EXPECT_EQ(start_of(false), 800ms);
  EXPECT_EQ(start_of(true), 1100ms);
}

/// The GPUs of equal places, by the numbers of their pipelines.
std::vector<std::vector<std::size_t>> equal_places(const Scenario& scenario, int cell) {
  const int degree = scenario.served.front().stages, stages = scenario.parallel.stages;
  const int pipelines = scenario.parallel.replicas / cell / degree * cell * stages;
  std::vector<std::vector<std::size_t>> gpus(static_cast<std::size_t>(pipelines));
  for (int pipeline = 0; pipeline < pipelines; ++pipeline)
    for (int stage = 0; stage < degree; ++stage) {
      const int local = pipeline / stages % cell;
      const int group = pipeline / stages / cell;
      const int replica = (group * degree + stage) * cell + local;
      gpus[static_cast<std::size_t>(pipeline)].push_back(
          static_cast<std::size_t>(replica * stages + pipeline % stages));
    }
  return gpus;
}

/// 400 random instances: 4,800 requests.
void expect_what_the_oracle_finds(PlacementPolicy policy) {
  Random random{11};
  int refused = 0, of_several_stages = 0, compared = 0;
  for (int instance = 0; instance < 400; ++instance) {
    const int cells = static_cast<int>(random.between(1, 4));
    const int cell = static_cast<int>(random.between(1, 2));
    const int stages = static_cast<int>(random.between(1, 3));
    const int degree = static_cast<int>(random.between(1, std::min(3, cells)));
    ServedModel model = linear_model(1ns, degree);
    model.hop = Duration{random.between(0, 3)};
    model.guard = Duration{random.between(0, 2)};
    if (random.between(0, 1) == 1) model.slo_ttft = Duration{random.between(5, 40)};
    const Scenario scenario = serving_scenario(stages, cells * cell, model);
    const std::vector<TimelineRow> rows = random_rows(random, scenario.ranks());
    const bool apart = instance % 4 == 3;
    Oracle oracle{rows, scenario, equal_places(scenario, cell), apart};
    Controller controller{find_bubbles(rows, scenario.ranks()),
                          served_models(scenario, cell),
                          policy,
                          {.apart = apart}};
    const std::int64_t farthest = random.between(0, 1) * 60;
    Duration arrival{};
    for (std::int64_t id = 0; id < 12; ++id) {
      arrival += Duration{random.between(0, 9)};
      const Request request{id, arrival, random.between(3, 8)};  // 1 ns a stage at least
      const std::int64_t network = random.between(0, farthest);
      const auto [pipeline, start] =
          oracle.place(request, network, policy == PlacementPolicy::best_fit);
      const Decision decision = controller.decide(request, Duration{network});
      ++compared;
      of_several_stages += degree > 1 && pipeline >= 0;
      refused += pipeline < 0;
      EXPECT_EQ(decision.refused.has_value(), pipeline < 0) << "instance " << instance;
      if (decision.refused) continue;
      EXPECT_EQ(decision.pipeline, pipeline) << "instance " << instance << " request " << id;
      EXPECT_EQ(decision.start.count(), start) << "instance " << instance << " request " << id;
    }
  }
  EXPECT_EQ(compared, 4800);
  EXPECT_GT(refused, 200);
  EXPECT_GT(of_several_stages, 500);
}

TEST(Placement, EarliestIsWhatAnOracleFindsNanosecondByNanosecond) {
  expect_what_the_oracle_finds(PlacementPolicy::earliest);
}

TEST(Placement, BestFitIsWhatAnOracleFindsNanosecondByNanosecond) {
  expect_what_the_oracle_finds(PlacementPolicy::best_fit);
}

}  // namespace
}  // namespace longhaul::prefill
