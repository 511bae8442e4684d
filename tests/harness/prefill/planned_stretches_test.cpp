#include "harness/prefill/planned_stretches.hpp"

#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/prefill/prefill_record.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "harness/prefill/stretch_outcome.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "prefill/accounts/training_state.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/memory.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

/// Of --check: 2 stages of training, 2 replicas, prompts on pipelines of 2 GPUs.
PlannedStretches tiny(const std::vector<std::string>& overrides, const PrefillSettings& settings,
                      std::string requests = tiny_input().at("requests")) {
  return plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny", overrides),
                        "gpipe", requests, "requests", settings);
}

std::string refusal(const std::vector<std::string>& overrides,
                    std::string requests = tiny_input().at("requests"),
                    const PrefillSettings& settings = {}) {
  try {
    (void)tiny(overrides, settings, std::move(requests));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(PlannedStretches, PlaceEveryRankTheServicesToo) {
  const PlannedStretches planned = tiny({}, {});
  EXPECT_EQ(planned.scenario.placement.size(), to_size(planned.scenario.ranks()));
}

// In chunks of an open loop, on two GPUs each; and of a backlog, which several prompts share.
TEST(PlannedStretches, HaveAllPassesOfAPromptInOneStretch) {
  std::string requests;
  for (int i = 0; i < 40; ++i)
    requests += fmt::format("{{\"timestamp\": {}, \"input_length\": {}}}\n", 3 * i, 20 + i);
  PrefillSettings open, backlog;
  open.pairs = backlog.pairs = 4;
  backlog.backlog = prefill::BacklogOptions{.waiting = 6, .iterations = 4};
  for (const auto& [settings, overrides] :
       {std::pair{open, std::vector<std::string>{"prefill.chunk=8"}},
        {backlog, {"prefill.chunk=12", "prefill.batch=3", "prefill.stages=1"}}}) {
    const PlannedStretches planned = tiny(overrides, settings, requests);
    std::size_t passes = 0, prompts = 0, in_later_stretches = 0;
    for (int pair = 0; pair < settings.pairs; ++pair)
      for (const prefill::Decision& each : planned.fill(pair, settings).decisions) {
        ++prompts;
        in_later_stretches += pair > 0;
        std::int64_t tokens = 0;
        for (const prefill::PlacedPass& pass : each.passes) {
          ++passes;
          tokens += pass.tokens;
          EXPECT_GE(pass.start, 0ns);
          EXPECT_LE(pass.start + pass.time, planned.stretch_time());
        }
        EXPECT_EQ(tokens, each.tokens) << "of request " << each.request;
      }
    EXPECT_GT(passes, prompts);
    EXPECT_GT(in_later_stretches, 0U);
  }
}

// The first capacity at which prompts of both stretches wait for memory.
TEST(PlannedStretches, TellWhatStaysIdleForMemoryInEach) {
  PrefillSettings settings;
  settings.pairs = 2;
  settings.backlog = prefill::BacklogOptions{.waiting = 4, .iterations = 2};
  const auto waits_in = [](const FilledStretch& stretch) {
    return std::ranges::any_of(stretch.decisions, &prefill::Decision::waited_for_memory);
  };
  for (double capacity = 1e5; capacity < 1e9; capacity *= 1.02) {
    const PlannedStretches planned =
        tiny({"costs.activation=100KiB", "prefill.stages=1",
              "prefill.model={layers = 6, hidden = 64, intermediate = 128, heads = 4, kv_heads = "
              "4, head_size = 16, vocabulary = 100}",
              fmt::format("memory.capacity={:.0f}B", capacity)},
             settings);
    const FilledStretch first = planned.fill(0, settings), second = planned.fill(1, settings);
    if (!waits_in(first) || !waits_in(second)) continue;
    for (const FilledStretch* each : {&first, &second}) {
      const StretchOutcome outcome = outcome_of_filled(planned, *each, each->predicted);
      EXPECT_GT(outcome.idle[static_cast<std::size_t>(prefill::IdleCause::memory)], 0ns);
    }
    return;
  }
  FAIL() << "none waited in both";
}

TEST(PlannedStretches, RefuseWhatRanksDoNotKeepTo) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({"prefill.chunk=16"}), "");
  EXPECT_THAT(refusal({"prefill.prefix_cache=1MiB"}), HasSubstr("Leave prefill.prefix_cache out"));
  PrefillSettings live;
  live.controller = PrefillController::live;
  EXPECT_THAT(refusal({"prefill.chunk=16"}, tiny_input().at("requests"), live),
              HasSubstr("a live controller places whole prompts alone"));
  EXPECT_EQ(refusal({"prefill.decode={rate = \"1Gbps\"}"}, tiny_input().at("requests"), live), "");
  EXPECT_THAT(refusal({"prefill.noise=0.1"}), HasSubstr("Leave prefill.noise out"));
  EXPECT_EQ(refusal({"memory.capacity=1GiB"}), "");
  EXPECT_EQ(refusal({"memory.capacity=1GiB"}, tiny_input().at("requests"), live), "");
  PrefillSettings backlog;
  backlog.backlog = prefill::BacklogOptions{.waiting = 4, .iterations = 1};
  EXPECT_EQ(refusal({"memory.capacity=1GiB"}, tiny_input().at("requests"), backlog), "");
  const std::vector<std::string> with_keys{"memory.capacity=1GiB", "prefill.model=llama3-8b",
                                           "prefill.decode={rate = \"1Gbps\"}"};
  EXPECT_THAT(refusal(with_keys, tiny_input().at("requests"), backlog),
              HasSubstr("Leave memory.capacity or prefill.decode out"));
  backlog.controller = PrefillController::live;
  EXPECT_THAT(refusal({"memory.capacity=1GiB"}, tiny_input().at("requests"), backlog),
              HasSubstr("a live backlog keeps no account of memory"));
  EXPECT_THAT(refusal({}, "{\"timestamp\": 0, \"input_length\": 60, \"takes_ns\": 5}\n"),
              HasSubstr("request 0: ranks play prefills as long as they are estimated"));
}

TEST(PlannedStretches, OfferCopiesOfAWindow) {
  PrefillOptions options;
  options.scenario = "tiny.toml";
  options.requests = "requests";
  options.copies = "3";
  options.window = "5ms,40ms";
  const PlannedStretches planned = tiny({}, settings_of(options));
  EXPECT_EQ(planned.requests.size(), 6U) << "of those at 5 and at 20 ms";
  for (const auto& [copies, window, backlog, why] :
       {std::tuple{"3", "", "8", "Leave --rate, --poisson and --copies out"},
        {"0", "", "", "--copies: \"0\""},
        {"", "5s,1s", "", "ends before it begins"},
        {"", "5s", "8", "is no window"}}) {
    options.copies = copies;
    options.window = window;
    options.backlog = backlog;
    EXPECT_THAT([&] { (void)settings_of(options); },
                ::testing::ThrowsMessage<Error>(HasSubstr(why)));
  }
  options.window = "5s,6s";
  EXPECT_THAT(refusal({}, tiny_input().at("requests"), settings_of(options)),
              HasSubstr("no request of requests arrives in it"));
}

/// As `longhaul prefill` answers: over iterations that follow each other.
std::vector<prefill::Decision> simulated_answers(const PlannedStretches& planned,
                                                 prefill::PlacementPolicy policy) {
  const Plan once = plan::lower(planned.schedule, planned.scenario);
  const OpTimes times = sim::simulate(once);
  Timeline rows;
  plan::append_rows(rows, once, times, 0);
  const auto bubbles = prefill::find_bubbles(rows.rows, planned.scenario.training_ranks());
  prefill::ControllerMeans means;
  means.memory.emplace(
      bubbles.period,
      prefill::free_memory_steps(planned.schedule, planned.scenario, once, times, planned.served));
  prefill::Controller controller{bubbles, planned.served, policy, {}, means};
  return prefill::place_open_loop(controller, planned.requests);
}

/// Activations that prompts are larger than, and room for one of so many tokens beside them.
std::vector<std::string> room_for(std::int64_t tokens) {
  const std::string activation = "costs.activation=1KiB";
  const PlannedStretches planned = tiny({activation}, {});
  const ServedModel& model = planned.served[0].model;
  Bytes most;
  for (const auto& need : schedule::device_memory(planned.schedule, planned.scenario))
    most = std::max(most, need.total());
  const Bytes weights = model.dimensions->weights();
  const Bytes share = weights / 2 + Bytes{weights.count() % 2};
  return {activation, fmt::format("memory.capacity={}B",
                                  (most + share + prefill::held_memory(model, tokens, 0)).count())};
}

// Prompts of 60 and of 80 tokens find no room; of the others one may wait for another.
TEST(PlannedStretches, RefuseForMemoryWhatTheSimulatorRefuses) {
  PrefillSettings settings;
  settings.pairs = 6;
  const PlannedStretches planned = tiny(room_for(20), settings);
  const auto simulated = simulated_answers(planned, settings.policy);
  ASSERT_EQ(planned.decisions.size(), simulated.size());
  int refused = 0;
  for (std::size_t i = 0; i < simulated.size(); ++i) {
    EXPECT_EQ(planned.decisions[i].refused, simulated[i].refused) << "request " << i;
    EXPECT_EQ(planned.decisions[i].lacks, simulated[i].lacks) << "request " << i;
    refused += simulated[i].refused == prefill::RefusalReason::memory ? 1 : 0;
  }
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace longhaul::harness
