// The worked values of the model: 2 stages, 2 microbatches, F 100 ms, B 200 ms, no links.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prefill/accounts/idle_causes.hpp"
#include "prefill/bounds.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

struct FilledBacklog {
  Outcome outcome;
  UtilisationBounds bounds;
  IdleTimes idle;
  Duration all{};  ///< GPUs x wall time
};

FilledBacklog backlog_of(const std::vector<TimelineRow>& rows, const Scenario& scenario,
                         std::int64_t tokens, PlacementPolicy policy = PlacementPolicy::best_fit) {
  const IterationBubbles iteration = find_bubbles(rows, scenario.ranks());
  const auto served = served_models(scenario, 1);
  const std::vector<Request> file{{0, 0ns, tokens}};
  const auto decisions =
      place_backlog(iteration, served, file, policy, {.waiting = 512, .iterations = 4});
  FilledBacklog filled;
  filled.outcome = summarize_decisions(iteration, served, decisions, 4);
  filled.bounds = utilisation_bounds(iteration, served, file, 512, 4);
  filled.idle = idle_by_cause(iteration, served, decisions, 4, true);
  filled.all = 4 * iteration.gpus * iteration.period;
  return filled;
}

double total_of(const std::vector<TimelineRow>& rows, std::int64_t tokens, Duration guard = 0ms) {
  ServedModel model = linear_model(1ms);
  model.guard = guard;
  return backlog_of(rows, serving_scenario(2, 1, model), tokens).outcome.utilisation.total;
}

TEST(KnownValues, ABacklogFillsWhatItsPromptsHold) {
  EXPECT_DOUBLE_EQ(total_of(gpipe_rows(), 100), 1);
  EXPECT_DOUBLE_EQ(total_of(gpipe_rows(), 100, 10ms), 1600.0 / 1800) << "88.89%";
  EXPECT_DOUBLE_EQ(total_of(gpipe_rows(), 80), 1680.0 / 1800) << "93.33%";
  EXPECT_DOUBLE_EQ(total_of(gpipe_rows(), 150), 1);
  EXPECT_DOUBLE_EQ(total_of(one_f_one_b_rows(), 150), 1650.0 / 1800) << "91.67%";
}

TEST(KnownValues, TheBoundOfWholePromptsIsMet) {
  const FilledBacklog filled =
      backlog_of(gpipe_rows(), serving_scenario(2, 1, linear_model(1ms)), 80);
  EXPECT_DOUBLE_EQ(filled.bounds.upper(), 1680.0 / 1800);
  EXPECT_STREQ(filled.bounds.reason(), "whole_prompts");
}

TEST(KnownValues, AnEqualPeriodMayServeLess) {
  EXPECT_EQ(find_bubbles(gpipe_rows(), 2).period, find_bubbles(one_f_one_b_rows(), 2).period);
  const Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  const FilledBacklog gpipe = backlog_of(gpipe_rows(), scenario, 150);
  const FilledBacklog other = backlog_of(one_f_one_b_rows(), scenario, 150);
  EXPECT_EQ(gpipe.outcome.tokens_served, 4 * 4 * 150) << "two in each of two bubbles";
  EXPECT_EQ(other.outcome.tokens_served, 4 * 3 * 150) << "one in device 0's bubbles of 200 and 100";
  EXPECT_DOUBLE_EQ(gpipe.bounds.upper(), 1);
  EXPECT_NEAR(other.bounds.upper(), 1650.0 / 1800, 1e-4);
}

TEST(KnownValues, TwoStagesLoseTheirHop) {
  ServedModel model = linear_model(1ms, 2);
  model.hop = 10ms;
  const FilledBacklog two = backlog_of(gpipe_rows(2), serving_scenario(2, 2, model), 100);
  EXPECT_DOUBLE_EQ(two.outcome.utilisation.total, 1600.0 / 1800);
  // A bound of its own: the hop, and half a prompt, are lost at one end of each bubble.
  EXPECT_NEAR(two.bounds.upper(), 1600.0 / 1800, 1e-4);
  EXPECT_LT(two.bounds.bubbles, 1);
  EXPECT_GT(two.idle[static_cast<std::size_t>(IdleCause::skew)] +
                two.idle[static_cast<std::size_t>(IdleCause::too_small)],
            0ns);
  const FilledBacklog one =
      backlog_of(gpipe_rows(2), serving_scenario(2, 2, linear_model(1ms)), 100);
  EXPECT_DOUBLE_EQ(one.outcome.utilisation.total, 1);
}

TEST(KnownValues, APromptInChunksGoesOnInTheNextBubble) {
  ServedModel model = linear_model(1ms);
  model.chunk = 100;
  const Scenario scenario = serving_scenario(2, 1, model);
  for (const PlacementPolicy policy : {PlacementPolicy::earliest, PlacementPolicy::best_fit}) {
    Controller controller{find_bubbles(gpipe_rows(), 2), served_models(scenario, 1), policy};
    const Decision decision = controller.decide({0, 200ms, 400});
    EXPECT_EQ(decision.pipeline, 0);
    EXPECT_EQ(decision.start, 200ms);
    EXPECT_EQ(decision.end, 1200ms);
    ASSERT_EQ(decision.passes.size(), 4U);
    EXPECT_EQ(decision.passes[3].start, 1100ms);
  }
}

// 187.8 s of 803,130 tokens: a double does not hold their product.
TEST(KnownValues, SharesOfALongPassAddUpToIt) {
  const Duration time{187'784'156'899};
  ServedModel model = linear_model(1ns);
  model.profile = {{1, 1ms}, {803'130, time}};
  model.chunk = 803'130;
  model.batch = 2;
  const IterationBubbles iteration{200s, 1, {}, {{0, 10s, 10s + time}}};
  const std::vector<Request> file{{0, 0ns, 803'130 / 2}};
  const auto decisions =
      place_backlog(iteration, served_models(serving_scenario(1, 1, model), 1), file,
                    PlacementPolicy::best_fit, {.waiting = 4, .iterations = 1});
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(decisions[0].compute + decisions[1].compute, time);
}

TEST(KnownValues, AnotherOrderInAnotherCellOpensAnotherBubble) {
  std::vector<TimelineRow> rows = gpipe_rows();
  for (TimelineRow row : one_f_one_b_rows()) {
    row.rank += 2;
    row.op += 8;
    rows.push_back(row);
  }
  const auto start_of = [](const std::vector<TimelineRow>& of) {
    const Scenario scenario = serving_scenario(2, 2, linear_model(1ms));
    Controller controller{find_bubbles(of, 4), served_models(scenario, 1),
                          PlacementPolicy::earliest};
    return controller.decide({0, 600ms, 100}).start;
  };
  EXPECT_EQ(start_of(rows), 600ms);
  EXPECT_EQ(start_of(gpipe_rows(2)), 700ms);
}

TEST(KnownValues, BytesOfKeysTakeTheirTimeOnTheInterface) {
  const ServedDimensions llama = served_presets()[1].dimensions;
  EXPECT_EQ(llama.kv(8192), Bytes{1 << 30});
  DecodeLink link;
  link.rate = Bandwidth{100e9};
  KvLink interface { 900ms, std::vector<std::vector<InterfaceHold>>(1) };
  EXPECT_EQ(interface.send(0, {{0ns, llama.kv(8192)}}, link), 85'899'346ns);
}

TEST(KnownValues, WeightsOfPresetsAreShared) {
  const ServedDimensions llama = served_presets()[1].dimensions;
  EXPECT_EQ(llama.weights(), Bytes{16'060'522'496}) << "16.06 GB";
  EXPECT_EQ(llama.weights() / 8, Bytes{2'007'565'312}) << "2 GB a GPU";
}

// As their authors publish them (docs/prefill.md has 2 bytes x these / k).
TEST(KnownValues, PresetsHaveTheirModelsParameters) {
  std::map<std::string, std::int64_t> parameters;
  for (const ServedPreset& preset : served_presets())
    parameters[preset.name] = preset.dimensions.parameters();
  EXPECT_EQ(parameters, (std::map<std::string, std::int64_t>{{"llama3-1b", 1'235'814'400},
                                                             {"llama3-8b", 8'030'261'248},
                                                             {"mistral-7b", 7'241'732'096},
                                                             {"phi3-mini", 3'821'079'552},
                                                             {"gemma-2b", 2'506'172'416}}));
}

}  // namespace
}  // namespace longhaul::prefill
