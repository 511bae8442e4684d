#include "prefill/prompt/passes.hpp"

#include <set>

#include <gtest/gtest.h>

#include "prefill/accounts/idle_causes.hpp"
#include "prefill/instances.hpp"
#include "prefill/outcome.hpp"

namespace longhaul::prefill {
namespace {

ServedModel small_model() {
  ServedModel model;
  model.name = "small";
  model.dimensions = ServedDimensions{2, 64, 128, 4, 4, 16, 1000, false};
  model.achieved_flops = 1e9;
  return model;
}

Duration time_of(const ServedModel& model, std::vector<PassPart> parts) {
  return *pass_time(model, parts);
}

TEST(PassTime, AnUnbrokenPromptTakesItsTime) {
  for (const ServedModel& model : {linear_model(1ms), small_model()})
    EXPECT_EQ(time_of(model, {{0, 100}}), *model.time(100));
}

TEST(PassTime, ChunksPayForTheAttentionToWhatCameBefore) {
  const ServedModel model = small_model();
  // Attention of 50 tokens to 50 before them: 4 c n heads x head size a layer, at 1 FLOP a ns.
  EXPECT_EQ(time_of(model, {{50, 50}}) - *model.time(50), Duration{2 * 4 * 50 * 50 * 64});
  ServedModel bent = linear_model(1ms);
  bent.profile = {{1, 1ms}, {100, 100ms}, {200, 300ms}};
  EXPECT_EQ(time_of(bent, {{0, 100}}), 100ms);
  EXPECT_EQ(time_of(bent, {{100, 100}}), 200ms) << "what the profile rises";
}

TEST(PassTime, ASharedPassIsNoLongerThanOnePromptOfAllItsTokens) {
  const ServedModel model = small_model();
  EXPECT_LT(time_of(model, {{0, 60}, {0, 40}}), *model.time(100));
  EXPECT_GE(time_of(model, {{0, 60}, {0, 40}}), *model.time(60));
}

TEST(MostTokens, AreTheLargestThatFit) {
  const ServedModel model = small_model();
  for (const std::int64_t tokens : {1, 7, 63, 200}) {
    const PassPart part{30, tokens};
    const Duration room = *pass_time(model, {&part, 1});
    EXPECT_EQ(most_tokens(model, 30, 1000, room), tokens);
    EXPECT_EQ(most_tokens(model, 30, 1000, room - 1ns), tokens - 1);
  }
}

TEST(PassFilling, FillsBubblesWithoutPassingAnyoneOver) {
  Random random{13};
  for (int instance = 0; instance < 100; ++instance) {
    ServedModel model = linear_model(1ns);
    model.chunk = random.between(1, 5);
    model.batch = static_cast<int>(random.between(1, 3));
    model.guard = Duration{random.between(0, 1)};
    const Scenario scenario = serving_scenario(3, 1, model);
    const IterationBubbles iteration = find_bubbles(random_rows(random, 3), 3);
    const auto served = served_models(scenario, 1);
    std::vector<Request> file;
    for (std::int64_t id = 0; id < 5; ++id) file.push_back({id, 0ns, random.between(1, 20)});
    const BacklogOptions options{.waiting = 8, .iterations = 4};
    const auto decisions =
        place_backlog(iteration, served, file, PlacementPolicy::best_fit, options);
    const Outcome outcome = summarize_decisions(iteration, served, decisions, 4);
    // Tokens take 1 ns each: every bubble is full.
    Duration usable{};
    for (const Bubble& bubble : iteration.bubbles)
      usable += std::max(0ns, bubble.length() - model.guard);
    const double all = 3.0 * static_cast<double>(iteration.period.count());
    EXPECT_NEAR(outcome.utilisation.prefill * all, static_cast<double>(usable.count()), 1e-6);
    EXPECT_NEAR(outcome.utilisation.total,
                utilisation_bounds(iteration, served, file, 8, 4).upper(), 1e-9);
    Duration idle{};
    for (const Duration time : idle_by_cause(iteration, served, decisions, 4, true)) idle += time;
    EXPECT_EQ(idle, 4 * (3 * iteration.period - iteration.busy - usable));
    std::set<std::int64_t> begun;
    for (const Decision& decision : decisions) {
      std::int64_t tokens = 0;
      for (const PlacedPass& pass : decision.passes) tokens += pass.tokens;
      EXPECT_TRUE(tokens == decision.tokens || decision.unfinished);
      begun.insert(decision.request);
      EXPECT_EQ(ttft_parts(decision).sum(), decision.ttft());
    }
    EXPECT_EQ(std::ssize(begun), *begun.rbegin() + 1) << "no one that came before still waits";
  }
}

TEST(Chunks, StayInBubblesAndInOrderOnEveryStage) {
  Random random{17};
  int split = 0;
  for (int instance = 0; instance < 200; ++instance) {
    const int stages = static_cast<int>(random.between(1, 3));
    ServedModel model = linear_model(1ns, stages);
    model.chunk = random.between(3, 6);
    model.hop = Duration{random.between(0, 2)};
    const Scenario scenario = serving_scenario(2, stages, model);
    const auto rows = random_rows(random, scenario.ranks());
    const IterationBubbles iteration = find_bubbles(rows, scenario.ranks());
    const auto served = served_models(scenario, 1);
    Controller controller{iteration, served, PlacementPolicy::best_fit};
    std::vector<Decision> decisions;
    Duration arrival{};
    for (std::int64_t id = 0; id < 10; ++id) {
      arrival += Duration{random.between(0, 9)};
      decisions.push_back(controller.decide({id, arrival, random.between(3, 20)}));
    }
    Duration idle{}, filled{};
    const Outcome outcome = summarize_decisions(iteration, served, decisions, std::nullopt);
    for (const Decision& decision : decisions) {
      if (decision.refused) continue;
      filled += decision.compute;
      split += decision.passes.size() > 1;
      EXPECT_EQ(ttft_parts(decision).sum(), decision.ttft());
    }
    // Controllers assert that what they take is free; that all adds up says that nothing overlaps.
    for (const Duration time :
         idle_by_cause(iteration, served, decisions, outcome.iterations, false))
      idle += time;
    EXPECT_EQ(idle + filled,
              outcome.iterations * (iteration.gpus * iteration.period - iteration.busy));
  }
  EXPECT_GT(split, 200);
}

}  // namespace
}  // namespace longhaul::prefill
