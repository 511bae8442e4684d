#include "harness/prefill/live_pairs.hpp"

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/prefill/prefill_record.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "plan/rows.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

/// The stretches of --check, of a backlog of 4 that a live controller places, as simulated.
class PredictedLive : public ::testing::Test {
protected:
  explicit PredictedLive(const std::string& kv = {}) {
    settings_.pairs = 3;
    settings_.controller = PrefillController::live;
    settings_.backlog = prefill::BacklogOptions{.waiting = 4, .iterations = 3};
    planned_ = plan_stretches(scenario::parse_scenario(tiny_input(kv).at("scenario"), "tiny"),
                              kv.empty() ? "gpipe" : "1f1b", tiny_input(kv).at("requests"),
                              "requests", settings_);
    predicted_ = predict_live(planned_, settings_);
  }
  PrefillSettings settings_;
  PlannedStretches planned_;
  LivePrediction predicted_;
};

/// The same, with keys and values that go to a decode rank.
class PredictedLiveKv : public PredictedLive {
protected:
  PredictedLiveKv() : PredictedLive{"layerwise"} {}
};

TEST_F(PredictedLiveKv, CountsSlicesAndFirstTokens) {
  PrefillRun run;
  run.answers = run.predicted_answers = predicted_.answers;
  run.offered = predicted_.offered;
  for (const FilledStretch& each : predicted_.stretches) {
    const StretchOutcome with = outcome_of_filled(planned_, each, each.predicted);
    EXPECT_EQ(each.filled.tokens.size(), with.requests.size()) << "each prompt has its token";
    for (const PlayedRequest& request : with.requests) {
      EXPECT_TRUE(request.is_done);
      EXPECT_EQ(request.first_token, 2ms);
      EXPECT_GT(request.kv, Duration{});
      EXPECT_EQ(request.sum_of_parts(), request.ttft);
    }
    run.pairs.push_back(
        {true, with, outcome_of_training(planned_.training, planned_.predicted), with});
  }
  EXPECT_EQ(why_not_sound(run), "");
  const auto record =
      prefill_record(planned_, run, PrefillOptions{}, settings_, nlohmann::json{})["schedules"][0];
  EXPECT_GT(record["requests"]["done"], 20);
  EXPECT_GT(record["kv"]["slices"], 100);
  EXPECT_EQ(record["kv"]["slices"], record["kv"]["predicted_slices"]);
  EXPECT_GT(record["training_delay"]["messages_bound_by_kv"], 0) << "slices are to be met";
}

// Slices of a byte are more than a run has.
TEST_F(PredictedLiveKv, SaysWhereGpusAreShortOfSlices) {
  const FilledStretch& first = predicted_.stretches.front();
  const StretchOutcome with = outcome_of_filled(planned_, first, first.predicted);
  PrefillRun run;
  run.answers = run.predicted_answers = predicted_.answers;
  run.pairs.push_back(
      {true, with, outcome_of_training(planned_.training, planned_.predicted), with});
  const auto counted = [&] {
    return prefill_record(planned_, run, PrefillOptions{}, settings_,
                          nlohmann::json{})["schedules"][0]["kv"]["gpus_short_of_slices"];
  };
  EXPECT_EQ(warning_of(short_of_slices(planned_, settings_)), "");
  EXPECT_EQ(counted(), 0);
  for (prefill::Served& each : planned_.served) each.model.decode->slice = Bytes{1};
  const ShortOfSlices found = short_of_slices(planned_, settings_);
  EXPECT_EQ(counted(), found.gpus);
  EXPECT_GT(found.gpus, 0);
  EXPECT_GT(found.most, prefill::kMostLiveSlices);
  EXPECT_THAT(
      warning_of(found),
      ::testing::AllOf(::testing::HasSubstr(fmt::format("as many as {} slices", found.most)),
                       ::testing::HasSubstr("16384 for each"),
                       ::testing::HasSubstr("prefill.decode.slice")));
  settings_.controller = PrefillController::planned;
  EXPECT_EQ(short_of_slices(planned_, settings_).gpus, 0) << "it has as many as it needs";
}

// An open loop whose last requests arrive when the run is over: they are refused, none is lost.
TEST_F(PredictedLive, HasOneAnswerToEachThatAsked) {
  settings_.backlog.reset();
  planned_ = plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny"), "gpipe",
                            tiny_input().at("requests"), "requests", settings_);
  planned_.requests.back().arrival = 100s;
  predicted_ = predict_live(planned_, settings_);
  std::vector<std::int64_t> answered;
  for (const prefill::Decision& each : predicted_.answers) answered.push_back(each.request);
  EXPECT_EQ(predicted_.offered.size(), planned_.requests.size());
  EXPECT_THAT(answered, ::testing::UnorderedElementsAreArray(predicted_.offered));
  EXPECT_EQ(predicted_.answers.back().refused, prefill::RefusalReason::closed);
}

// A trace takes no row without them, and the controller's rank, whose answers are rows, has none.
TEST_F(PredictedLive, HasRowsOfReplicasAndDevices) {
  ASSERT_EQ(predicted_.stretches.size(), 3U);
  Timeline rows;
  for (const FilledStretch& each : predicted_.stretches)
    plan::append_rows(rows, each.filled.plan, each.predicted, 0);
  for (const TimelineRow& row : rows.rows) {
    ASSERT_GE(row.replica, 0) << "rank " << row.rank << ", op " << row.op;
    ASSERT_GE(row.device, 0) << "rank " << row.rank << ", op " << row.op;
  }
}

TEST_F(PredictedLive, IsSoundWherePlayedAsPredicted) {
  PrefillRun run;
  run.answers = run.predicted_answers = predicted_.answers;
  run.offered = predicted_.offered;
  for (const FilledStretch& each : predicted_.stretches) {
    const StretchOutcome with = outcome_of_filled(planned_, each, each.predicted);
    run.pairs.push_back(
        {true, with, outcome_of_training(planned_.training, planned_.predicted), with});
  }
  EXPECT_EQ(why_not_sound(run), "");
  const auto record =
      prefill_record(planned_, run, PrefillOptions{}, settings_, nlohmann::json{})["schedules"][0];
  EXPECT_GT(record["requests"]["done"], 20);
  EXPECT_EQ(record["requests"], record["predicted_requests"]);
  EXPECT_EQ(record["answers_as_predicted"]["same_pipeline"], record["requests"]["done"]);
}

// Prompts that take longer than they are estimated fill more than any that do not.
TEST_F(PredictedLive, KnowsNoBoundOfThePlanWhereTimesDiffer) {
  settings_.backlog.reset();
  const auto share_of = [&](const std::string& more, const std::vector<std::string>& overrides) {
    std::string requests;
    for (int i = 0; i < 12; ++i)
      requests += fmt::format("{{\"timestamp\": {}, \"input_length\": 5{}}}\n", 9 * i, more);
    planned_ =
        plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny", overrides),
                       "gpipe", requests, "requests", settings_);
    predicted_ = predict_live(planned_, settings_);
    PrefillRun run;
    run.answers = run.predicted_answers = predicted_.answers;
    run.offered = predicted_.offered;
    for (const FilledStretch& each : predicted_.stretches) {
      const StretchOutcome with = outcome_of_filled(planned_, each, each.predicted);
      run.pairs.push_back(
          {true, with, outcome_of_training(planned_.training, planned_.predicted), with});
    }
    const auto record = prefill_record(planned_, run, PrefillOptions{}, settings_, {});
    EXPECT_THAT(prefill_text(record), ::testing::HasSubstr("no placement exceeds "));
    return nlohmann::json(record["schedules"][0]["utilisation"]);
  };
  const nlohmann::json calm = share_of("", {});
  EXPECT_FALSE(calm["bounds"]["flow"].is_null());
  EXPECT_TRUE(calm["bounds_left_out"].is_null());
  EXPECT_LE(calm["total"], calm["upper_bound"]);
  for (const auto& [more, overrides, name] :
       {std::tuple{", \"takes_ns\": 9000000", std::vector<std::string>{}, "takes_ns"},
        {"", {"prefill.noise=0.5"}, "prefill.noise"},
        {"", {"run.noise=0.1"}, "run.noise"},
        {"", {"run.stragglers=[1,1.5]"}, "run.stragglers"}}) {
    const nlohmann::json share = share_of(more, overrides);
    EXPECT_THAT(share["bounds_left_out"].get<std::string>(), ::testing::HasSubstr(name));
    EXPECT_EQ(share["bound_reason"], "bubbles");
    EXPECT_LE(share["total"], share["upper_bound"]) << name;
    for (const char* const none : {"whole_prompts", "mix", "flow"})
      EXPECT_TRUE(share["bounds"][none].is_null()) << none << ", " << name;
  }
}

}  // namespace
}  // namespace longhaul::harness
