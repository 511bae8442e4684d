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

TEST(PlannedStretches, RefuseWhatRanksDoNotKeepTo) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({"prefill.chunk=16"}), HasSubstr("prefill.chunk"));
  EXPECT_THAT(refusal({"prefill.prefix_cache=1MiB"}), HasSubstr("Leave prefill.prefix_cache out"));
  PrefillSettings live;
  live.controller = PrefillController::live;
  EXPECT_THAT(
      refusal({"prefill.decode={rate = \"1Gbps\"}"}, tiny_input().at("requests"), live),
      HasSubstr("send no keys and values with --controller live. Leave prefill.decode out"));
  EXPECT_THAT(refusal({"prefill.noise=0.1"}), HasSubstr("Leave prefill.noise out"));
  EXPECT_THAT(refusal({"memory.capacity=1GiB"}), HasSubstr("Leave memory.capacity out"));
  EXPECT_THAT(refusal({}, "{\"timestamp\": 0, \"input_length\": 60, \"takes_ns\": 5}\n"),
              HasSubstr("request 0: ranks play prefills as long as they are planned"));
}

}  // namespace
}  // namespace longhaul::harness
