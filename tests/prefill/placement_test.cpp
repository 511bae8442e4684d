#include "prefill/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "prefill/instances.hpp"

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

/// An oracle: every start from the arrival on, one nanosecond after the other, over all pipelines;
/// a stage fits where none of its nanoseconds is a block's, a guard's or another prefill's.
class Oracle {
public:
  Oracle(const std::vector<TimelineRow>& rows, const Scenario& scenario, int cell, bool apart)
      : model_{scenario.served.front()}, cell_{cell}, apart_{apart}, scenario_{scenario} {
    for (const TimelineRow& row : rows) period_ = std::max(period_, row.end_ns);
    const auto gpus = static_cast<std::size_t>(scenario.ranks());
    computes_.assign(gpus, std::vector<bool>(static_cast<std::size_t>(period_), false));
    taken_.assign(gpus, std::vector<bool>(kHorizon, false));
    for (const TimelineRow& row : rows)
      for (std::int64_t time = row.start_ns; time < row.end_ns; ++time)
        computes_[static_cast<std::size_t>(row.rank)][static_cast<std::size_t>(time)] = true;
  }

  /// Pipeline and start; {-1, -1}: refused. `tightest`: of the pipelines that start it then the one
  /// whose gap it leaves least of, not the lowest.
  std::pair<int, std::int64_t> place(const Request& request, std::int64_t network, bool tightest) {
    const std::int64_t whole = model_.time(request.tokens)->count();
    const int groups = scenario_.parallel.replicas / cell_ / model_.stages;
    const int pipelines = groups * cell_ * scenario_.parallel.stages;
    for (std::int64_t start = request.arrival.count() + network / 2; start < kLast; ++start) {
      int best = -1;
      for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
        if (!fits(pipeline, start, whole, false)) continue;
        if (best < 0 || (tightest && left(pipeline, start) < left(best, start))) best = pipeline;
      }
      if (best < 0) continue;
      const std::int64_t end = start + whole + (model_.stages - 1) * model_.hop.count();
      const std::int64_t ttft = end + network / 2 - request.arrival.count();
      if (model_.slo_ttft && ttft > model_.slo_ttft->count()) return {-1, -1};
      (void)fits(best, start, whole, true);
      return {best, start};
    }
    return {-1, -1};
  }

private:
  static constexpr std::size_t kHorizon = 4000;
  static constexpr std::int64_t kLast = 3000;

  std::size_t gpu_of(int pipeline, int stage) const {
    const int stages = scenario_.parallel.stages;
    const int local = pipeline / stages % cell_;
    const int group = pipeline / stages / cell_;
    const int replica = (group * model_.stages + stage) * cell_ + local;
    return static_cast<std::size_t>(replica * stages + pipeline % stages);
  }

  /// How long the first stage's GPU may compute from then on.
  std::int64_t left(int pipeline, std::int64_t start) const {
    const std::size_t gpu = gpu_of(pipeline, 0);
    for (std::int64_t time = start;; ++time) {
      if (computes_[gpu][static_cast<std::size_t>(time % period_)])
        return time - model_.guard.count() - start;
      if (taken_[gpu][static_cast<std::size_t>(time)]) return time - start;
    }
  }

  bool fits(int pipeline, std::int64_t start, std::int64_t whole, bool take) {
    const std::int64_t end = start + whole + (model_.stages - 1) * model_.hop.count();
    if (apart_ && start / period_ != (end - 1) / period_) return false;
    for (int stage = 0; stage < model_.stages; ++stage) {
      const std::size_t gpu = gpu_of(pipeline, stage);
      const std::int64_t length = whole / model_.stages + (stage == 0 ? whole % model_.stages : 0);
      for (std::int64_t time = start; time < start + length + model_.guard.count(); ++time) {
        if (computes_[gpu][static_cast<std::size_t>(time % period_)]) return false;
        if (time >= start + length) continue;
        if (taken_[gpu][static_cast<std::size_t>(time)]) return false;
        if (take) taken_[gpu][static_cast<std::size_t>(time)] = true;
      }
      start += length + model_.hop.count();
    }
    return true;
  }

  ServedModel model_;
  int cell_;
  bool apart_;
  const Scenario& scenario_;
  std::int64_t period_ = 0;
  std::vector<std::vector<bool>> computes_, taken_;
};

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
    Oracle oracle{rows, scenario, cell, apart};
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
