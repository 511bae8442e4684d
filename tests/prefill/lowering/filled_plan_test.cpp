#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/rows.hpp"
#include "prefill/accounts/training_state.hpp"
#include "sim/simulate.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

using Stretch = testing::PlacedStretch;

Scenario two_stages(int replicas = 1, int stages = 1) {
  Scenario scenario = serving_scenario(2, replicas, linear_model(1ms, stages));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.parallel.gradient_sync = GradientSync::none;
  return scenario;
}

/// Training's ops that take other times than without prefills.
int moved(const Stretch& stretch, const FilledPlan& filled, const OpResults& results) {
  int count = 0;
  for (std::size_t i = 0; i < stretch.times.size(); ++i) {
    const OpTime& now = results.times[index(filled.training[i])];
    count += now.start != stretch.times[i].start || now.end != stretch.times[i].end;
  }
  return count;
}

int bound_by_prefill(const FilledPlan& filled, const OpResults& results) {
  int count = 0;
  for (const OpId op : filled.training)
    count += std::ranges::any_of(filled.stages, [&](const FilledStage& stage) {
      return results.times[index(op)].bound_by == stage.op;
    });
  return count;
}

TEST(FilledPlan, PlaysThePlacementsTimesToTheNanosecond) {
  const Stretch stretch{two_stages(), "gpipe", 2};
  EXPECT_EQ(stretch.bubbles.period, 1800ms);
  const auto decisions =
      stretch.place({{0, 250ms, 100}, {1, 450ms, 100}, {2, 450ms, 100}, {3, 450ms, 400}});
  const FilledPlan filled = stretch.fill(decisions);
  ASSERT_EQ(filled.stages.size(), 3U) << "400 ms fit into no bubble";
  const OpResults results = sim::simulate_results(filled.plan);
  const auto start = [&](std::size_t i) { return results.times[index(filled.stages[i].op)].start; };
  EXPECT_EQ(start(0), 250ms);
  EXPECT_EQ(start(1), 700ms);
  EXPECT_EQ(start(2), 800ms);
  EXPECT_EQ(moved(stretch, filled, results), 0);
}

// A stretch with prefill and one without meet the same noise.
TEST(FilledPlan, LeavesTrainingTheNoiseThatItMeetsAlone) {
  const Stretch stretch{two_stages(), "gpipe", 2};
  const FilledPlan filled = stretch.fill(stretch.place({{0, 250ms, 100}, {1, 450ms, 100}}));
  struct Run run;  // not ::testing::Test::Run
  run.noise = 0.1;
  std::set<double> drawn;
  for (std::size_t i = 0; i < filled.training.size(); ++i) {
    const double factor =
        plan::block_time_factor(stretch.plan, run, OpId{static_cast<std::uint32_t>(i)}, 1);
    EXPECT_EQ(plan::block_time_factor(filled.plan, run, filled.training[i], 1), factor);
    drawn.insert(factor);
  }
  for (const FilledStage& stage : filled.stages)
    EXPECT_TRUE(drawn.insert(plan::block_time_factor(filled.plan, run, stage.op, 1)).second);
}

TEST(FilledPlan, HasNoStageBehindItsEnd) {
  const Stretch stretch{two_stages(2, 2), "gpipe", 1};
  auto decisions = stretch.place({{0, 700ms, 200}});
  EXPECT_EQ(stretch.fill(decisions).stages.back().placed.end(), 900ms);
  decisions.front().start += 1ms;
  EXPECT_DEATH((void)stretch.fill(decisions), "ends at 901000000 ns, the plan at 900000000 ns");
}

TEST(FilledPlan, PassesActivationsBetweenStages) {
  Scenario scenario = two_stages(2, 2);
  scenario.served.front().hop = 10ms;
  const Stretch stretch{scenario, "gpipe", 1};
  const FilledPlan filled = stretch.fill(stretch.place({{7, 200ms, 100}}));
  ASSERT_EQ(filled.stages.size(), 2U);
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(results.times[index(filled.stages[0].op)].start, 200ms);
  EXPECT_EQ(results.times[index(filled.stages[1].op)].end, 310ms);
  Timeline timeline;
  plan::append_rows(timeline, filled.plan, results, 0);
  int prefills = 0, sides = 0;
  for (const TimelineRow& row : timeline.rows) {
    prefills += row.kind == RowKind::prefill;
    sides += is_message(row.kind) && row.request == 7;
    EXPECT_EQ(row.request >= 0, row.tokens == 100);
  }
  EXPECT_EQ(prefills, 2);
  EXPECT_EQ(sides, 2);
  EXPECT_EQ(to_text(filled.plan, filled.stages[1].op),
            "rank 2 (dc0, stage 0, replica 1): prefill of request 7");
}

/// A prompt of 100 tokens, of which the first 40 are a pass of their own.
Decision in_two_passes(const Stretch& stretch, Duration second) {
  Decision decision = stretch.place({{0, 200ms, 100}}).front();
  decision.passes = {{decision.start, 40ms, 40, 40}, {second, 60ms, 60, 60}};
  decision.end = second + 60ms;
  return decision;
}

// Device 0 is idle from 200 to 500 ms.
TEST(FilledPlan, PlaysAPromptInPasses) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  const std::vector decisions{in_two_passes(stretch, 300ms)};
  ASSERT_EQ(decisions[0].start, 200ms);
  const FilledPlan filled = stretch.fill(decisions);
  ASSERT_EQ(filled.stages.size(), 2U);
  EXPECT_EQ(filled.stages[1].placed.context, 40);
  EXPECT_EQ(filled.stages[1].placed.tokens, 60);
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(results.times[index(filled.stages[0].op)].end, 240ms);
  EXPECT_EQ(results.times[index(filled.stages[1].op)].start, 300ms);
  EXPECT_EQ(results.times[index(filled.stages[1].op)].end, 360ms);
  EXPECT_EQ(moved(stretch, filled, results), 0);
}

TEST(FilledPlan, LeavesOutWhatFollowsAPassThatIsDeclined) {
  const Stretch stretch{two_stages(2, 2), "gpipe", 1};
  FilledPlan filled = stretch.fill({in_two_passes(stretch, 300ms)});
  ASSERT_EQ(filled.stages.size(), 4U) << "two passes on two GPUs";
  filled.plan.ops[index(filled.stages[0].op)].duration = 301ms;
  const OpResults results = sim::simulate_results(filled.plan);
  for (const FilledStage& stage : filled.stages)
    EXPECT_EQ(results.outcomes[index(stage.op)], longhaul::Outcome::skipped) << stage.placed.stage;
}

// Request 1 joins the second pass of request 0.
TEST(FilledPlan, PlaysAPassThatPromptsShare) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  std::vector decisions{in_two_passes(stretch, 300ms), in_two_passes(stretch, 300ms)};
  decisions[1].request = 1;
  decisions[1].tokens = 20;
  decisions[0].passes[1] = {300ms, 80ms, 60, 80};
  decisions[1].passes = {{300ms, 80ms, 20, 80}};
  decisions[1].start = 300ms;
  FilledPlan filled = stretch.fill(decisions);
  ASSERT_EQ(filled.stages.size(), 3U);
  EXPECT_EQ(filled.stages[2].op, filled.stages[1].op);
  EXPECT_EQ(filled.plan.extras.windows.size(), 2U);
  ASSERT_EQ(filled.plan.extras.served.size(), 2U);
  EXPECT_EQ(filled.plan.extras.served[1].tokens, 80);
  OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(results.times[index(filled.stages[2].op)].start, 300ms);
  EXPECT_EQ(results.times[index(filled.stages[2].op)].end, 380ms);
  EXPECT_EQ(moved(stretch, filled, results), 0);
  filled.plan.ops[index(filled.stages[0].op)].duration = 301ms;
  results = sim::simulate_results(filled.plan);
  EXPECT_EQ(results.outcomes[index(filled.stages[2].op)], longhaul::Outcome::skipped);
}

// 350 ms where 100 were estimated: until 550, on a device whose next block is due at 500.
TEST(FilledPlan, LetsABlockWaitForAPrefillThatTakesLonger) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  FilledPlan filled = stretch.fill(stretch.place({{0, 200ms, 100}}));
  filled.plan.ops[index(filled.stages.front().op)].duration = 350ms;
  for (plan::OpWindow& window : filled.plan.extras.windows) window.deadline = plan::kNoDeadline;
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_EQ(moved(stretch, filled, results), 2);
  EXPECT_EQ(bound_by_prefill(filled, results), 1);
  Duration end{};
  for (const OpId op : filled.training) end = std::max(end, results.times[index(op)].end);
  EXPECT_EQ(end, stretch.bubbles.period + 50ms);
}

// The rank has the last word.
TEST(FilledPlan, DeclinesAPrefillThatWouldEndBehindTheNextBlock) {
  const Stretch stretch{two_stages(2, 2), "gpipe", 1};
  FilledPlan filled = stretch.fill(stretch.place({{0, 200ms, 100}}));
  filled.plan.ops[index(filled.stages[0].op)].duration = 301ms;
  const OpResults results = sim::simulate_results(filled.plan);
  for (const FilledStage& stage : filled.stages)
    EXPECT_EQ(results.outcomes[index(stage.op)], longhaul::Outcome::skipped) << stage.placed.stage;
  EXPECT_EQ(moved(stretch, filled, results), 0);
}

TEST(FilledPlan, CarelessPrefillsDelayTraining) {
  const Stretch stretch{two_stages(), "gpipe", 1};
  const auto decisions = stretch.place({{0, 0ms, 290}, {1, 20ms, 200}});
  const FilledPlan filled = stretch.fill(decisions, {.manners = Manners::careless});
  const OpResults results = sim::simulate_results(filled.plan);
  EXPECT_GT(moved(stretch, filled, results), 0);
  EXPECT_GT(bound_by_prefill(filled, results), 0);
}

// Device 0 is idle from 200 to 500 ms: the second prompt fits there, and arrives later.
TEST(FilledPlan, StartsNoCarelessPrefillBeforeItsRequestArrives) {
  const Stretch stretch{two_stages(), "gpipe", 2};
  auto decisions = stretch.place({{0, 200ms, 100}, {1, 1100ms, 100}});
  ASSERT_EQ(decisions[0].pipeline, decisions[1].pipeline);
  const FilledPlan filled = stretch.fill(decisions, {.manners = Manners::careless});
  const OpResults results = sim::simulate_results(filled.plan);
  for (const FilledStage& stage : filled.stages)
    EXPECT_GE(results.times[index(stage.op)].start, decisions[stage.placed.decision].arrival);
}

/// Of the scenario's prompts: 25,600 bytes a layer of 100 tokens, in slices of 5 ms.
Scenario with_decode(Scenario scenario) {
  ServedModel& model = scenario.served.front();
  model.dimensions = ServedDimensions{.layers = 2,
                                      .hidden = 64,
                                      .intermediate = 128,
                                      .heads = 4,
                                      .kv_heads = 4,
                                      .head_size = 16,
                                      .vocabulary = 100};
  model.decode = DecodeLink{
      .rate = Bandwidth{20.48e6}, .latency = 1ms, .slice = Bytes{12'800}, .first_token = 20ms};
  scenario.add_services({RankRole::decode, DatacenterId{0}, 1});
  return scenario;
}

TEST(FilledPlan, SendsKeysAndValuesLayerByLayerOrWhole) {
  const Stretch stretch{with_decode(two_stages()), "gpipe", 1};
  const auto decisions = stretch.place({{0, 250ms, 100}});
  const auto token_of = [&](KvSending sending) {
    const FilledPlan filled = stretch.fill(decisions, {.kv = sending});
    EXPECT_EQ(filled.plan.extras.slices.size(), 8U) << "both sides of four slices";
    const OpResults results = sim::simulate_results(filled.plan);
    EXPECT_EQ(moved(stretch, filled, results), 0);
    EXPECT_EQ(results.times[index(filled.stages[0].first)].start, 250ms);
    EXPECT_EQ(results.times[index(filled.stages[0].op)].end, 350ms);
    return results.times[index(filled.tokens.at(0).op)];
  };
  // The layers are ready at 300 and at 350 ms.
  EXPECT_EQ(token_of(KvSending::layerwise).start, 350ms + 10ms + 1ms);
  EXPECT_EQ(token_of(KvSending::whole).start, 350ms + 20ms + 1ms);
  EXPECT_EQ(token_of(KvSending::whole).end, 391ms);
  EXPECT_TRUE(stretch.fill(decisions).tokens.empty()) << "they stay";
}

TEST(FilledPlan, SendsTheKeysAndValuesOfEachPass) {
  const Stretch stretch{with_decode(two_stages()), "gpipe", 1};
  const std::vector decisions{in_two_passes(stretch, 300ms)};
  for (const KvSending sending : {KvSending::layerwise, KvSending::whole}) {
    const FilledPlan filled = stretch.fill(decisions, {.kv = sending});
    std::map<std::size_t, std::int64_t> bytes;
    for (const FilledMessage& each : filled.messages) {
      EXPECT_TRUE(each.is_slice);
      EXPECT_EQ(each.first, bytes[each.stage]) << "one after the other";
      EXPECT_EQ(filled.plan.op(each.send).size, Bytes{each.bytes});
      bytes[each.stage] += each.bytes;
    }
    const ServedDimensions& model = *stretch.served[0].model.dimensions;
    EXPECT_EQ(bytes[0], model.kv(40).count());
    EXPECT_EQ(bytes[1], model.kv(60).count());
    for (const plan::OpSlice& slice : filled.plan.extras.slices) {
      EXPECT_EQ(slice.slices, static_cast<int>(filled.messages.size()));
      EXPECT_LT(slice.slice, slice.slices);
    }
    const OpResults results = sim::simulate_results(filled.plan);
    ASSERT_EQ(filled.tokens.size(), 1U);
    for (const FilledMessage& each : filled.messages)
      EXPECT_LE(results.times[index(each.recv)].end,
                results.times[index(filled.tokens[0].op)].start);
    const auto first_leaves = [&] {
      Duration first = Duration::max();
      for (const FilledMessage& each : filled.messages)
        first = std::min(first, results.times[index(each.send)].start);
      return first;
    };
    EXPECT_EQ(first_leaves(), sending == KvSending::layerwise ? 220ms : 360ms);
    EXPECT_EQ(moved(stretch, filled, results), 0);
  }
}

TEST(FilledPlan, NeedsADecodeRankWhereKeysAndValuesLeave) {
  Scenario scenario = with_decode(two_stages());
  scenario.services.clear();
  scenario.placement.pop_back();
  const Stretch stretch{scenario, "gpipe", 1};
  const auto decisions = stretch.place({{0, 250ms, 100}});
  EXPECT_THROW((void)stretch.fill(decisions, {.kv = KvSending::whole}), Error);
}

// A prompt that is declined sends nothing, and its decode rank computes no token.
TEST(FilledPlan, SendsNothingOfADeclinedPrompt) {
  const Stretch stretch{with_decode(two_stages()), "gpipe", 1};
  FilledPlan filled = stretch.fill(stretch.place({{0, 250ms, 100}}), {.kv = KvSending::layerwise});
  filled.plan.ops[index(filled.stages[0].first)].duration = 251ms;
  const OpResults results = sim::simulate_results(filled.plan);
  for (const plan::OpServed& each : filled.plan.extras.served)
    EXPECT_EQ(results.outcomes[index(each.op)], longhaul::Outcome::skipped);
}

/// Nodes of one GPU each, whose interface a message of training holds for 30 ms.
Scenario with_interfaces(Scenario scenario) {
  scenario.nodes.push_back({.datacenter = DatacenterId{0},
                            .gpus = 1,
                            .egress = Bandwidth::unlimited(),
                            .ingress = Bandwidth::unlimited(),
                            .internal = Bandwidth{1024 * 1024 * 8 / 0.03}});
  return scenario;
}

/// What messages of training waited for slices, each.
std::vector<Duration> waits_for_slices(const Stretch& stretch, const FilledPlan& filled,
                                       const OpResults& results) {
  std::vector<Duration> waits;
  for (std::size_t i = 0; i < filled.training.size(); ++i) {
    const OpTime& time = results.times[index(filled.training[i])];
    const auto& slices = filled.plan.extras.slices;
    if (stretch.plan.ops[i].kind != OpKind::send ||
        std::ranges::find(slices, time.bound_by, &plan::OpSlice::op) == slices.end())
      continue;
    waits.push_back(time.start - time.ready);
  }
  return waits;
}

// Device 1 sends its B at 530 and at 730 ms.
TEST(FilledPlan, LetsAMessageOfTrainingWaitForOneSlice) {
  const Stretch stretch{with_interfaces(with_decode(two_stages())), "gpipe", 2};
  const auto decisions = stretch.place({{0, 0ms, 100}});  // on device 1
  ASSERT_EQ(decisions[0].start, 0ms);
  Stretch slow = stretch;
  slow.served.front().model.decode->rate = Bandwidth{20.48e6 / 50};  // 250 ms a slice
  const FilledPlan filled = slow.fill(decisions, {.kv = KvSending::whole});
  const OpResults results = sim::simulate_results(filled.plan);
  // Slices from 100, 350 and, after the first B, from 630 ms on, and after the second the last.
  EXPECT_EQ(waits_for_slices(slow, filled, results), (std::vector<Duration>{70ms, 150ms}));
  EXPECT_EQ(results.times[index(filled.tokens.at(0).op)].start, 910ms + 250ms + 1ms);
}

TEST(FilledPlan, SendsKeysAndValuesAsThePlacementSays) {
  std::size_t sent = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = with_decode(testing::random_serving_scenario(random));
    ServedModel& model = scenario.served.front();
    model.dimensions->layers = static_cast<int>(random.between(4, 9));
    // Faster than prompts are computed: those of one GPU do not meet on its interface.
    model.profile = linear_model(Duration{random.between(300, 900)}).profile;
    model.decode->rate = Bandwidth{8e9 * static_cast<double>(random.between(100, 400))};
    model.decode->slice = Bytes{random.between(1, 40) * 1000};
    model.decode->latency = Duration{random.between(0, 500)};
    const Stretch stretch{scenario, "1f1b", 2};
    const KvSending sending = seed % 2 == 0 ? KvSending::whole : KvSending::layerwise;
    ControllerMeans means{
        .link = KvLink{stretch.bubbles.period,
                       interface_holds(stretch.plan, stretch.times, scenario.training_ranks())},
        .sending = sending,
        .decode_ranks = 1};
    Controller controller{
        stretch.bubbles, stretch.served, PlacementPolicy::earliest, {false, 1}, means};
    const auto decisions = place_open_loop(controller, testing::random_requests(random));
    const FilledPlan filled = stretch.fill(decisions, {.kv = sending});
    const OpResults results = sim::simulate_results(filled.plan);
    EXPECT_EQ(moved(stretch, filled, results), 0) << "messages inside the datacenter take no time";
    for (const FilledToken& token : filled.tokens) {
      const Decision& own = decisions[token.decision];
      const auto slices = kv_slices(model, own.tokens, 0, sending).size();
      const Duration late = results.times[index(token.op)].start - (own.end + own.kv);
      EXPECT_LE(late.count(), static_cast<std::int64_t>(slices)) << "rounded once, or each time";
      EXPECT_GE(results.times[index(token.op)].start, own.end);
      ++sent;
    }
  }
  EXPECT_GT(sent, 400U);
}

TEST(FilledPlan, ChangesNoTimeOfTrainingAndKeepsThoseOfThePlacement) {
  std::size_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Stretch stretch = testing::random_stretch(random);
    const auto decisions = stretch.place(testing::random_requests(random));
    const FilledPlan filled = stretch.fill(decisions);
    const OpResults results = sim::simulate_results(filled.plan);
    EXPECT_EQ(moved(stretch, filled, results), 0);
    for (const FilledStage& stage : filled.stages) {
      EXPECT_EQ(results.times[index(stage.op)].start, stage.placed.start);
      EXPECT_EQ(results.times[index(stage.op)].end, stage.placed.end());
    }
    placed += filled.stages.size();
  }
  EXPECT_GT(placed, 400U);
}

}  // namespace
}  // namespace longhaul::prefill
