#include "harness/prefill/planned_stretches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/prefill/prefill_record.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "scenario/reader/load.hpp"

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
  EXPECT_THAT(refusal({"memory.capacity=1GiB"}), HasSubstr("Leave memory.capacity out"));
  EXPECT_THAT(refusal({}, "{\"timestamp\": 0, \"input_length\": 60, \"takes_ns\": 5}\n"),
              HasSubstr("request 0: ranks play prefills as long as they are estimated"));
}

}  // namespace
}  // namespace longhaul::harness
