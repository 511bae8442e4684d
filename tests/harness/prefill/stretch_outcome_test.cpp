#include "harness/prefill/stretch_outcome.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "harness/prefill/prefill_record.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "harness/prefill/stopped_run.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

/// The stretches of --check, of a backlog of 4, played as predicted.
class PredictedRun : public ::testing::Test {
protected:
  PredictedRun() {
    settings_.pairs = 1;
    settings_.backlog = prefill::BacklogOptions{.waiting = 4, .iterations = 1};
    planned_ = plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny"),
                              "gpipe", tiny_input().at("requests"), "requests", settings_);
    stretch_ = planned_.fill(0, settings_);
  }
  [[nodiscard]] PrefillRun played(const OpResults& results,
                                  const std::vector<OpId>& wrong = {}) const {
    PrefillRun run;
    run.answers = run.predicted_answers = planned_.decisions;
    run.offered = offered_to_plan(planned_, settings_, 1);
    run.pairs.push_back({.prefill_first = true,
                         .with = outcome_of_filled(planned_, stretch_, results, wrong),
                         .without = outcome_of_training(planned_.training, planned_.predicted),
                         .predicted = outcome_of_filled(planned_, stretch_, stretch_.predicted)});
    return run;
  }
  PrefillSettings settings_;
  PlannedStretches planned_;
  FilledStretch stretch_;
};

TEST_F(PredictedRun, IsSound) {
  const PrefillRun run = played(stretch_.predicted);
  EXPECT_EQ(why_not_sound(run), "");
  ASSERT_FALSE(run.pairs[0].with.requests.empty());
  for (const PlayedRequest& each : run.pairs[0].with.requests) EXPECT_EQ(each.hop, 100us);
}

TEST_F(PredictedRun, IsNotSoundWhereARequestHasNoAnswerOrTwo) {
  const PrefillRun sound = played(stretch_.predicted);
  ASSERT_EQ(why_not_sound(sound), "");
  const auto offered_of = [&](const PrefillRun& run) {
    return nlohmann::json(
        prefill_record(planned_, run, {}, settings_, {}))["schedules"][0]["requests"]["offered"];
  };
  const std::int64_t first = sound.answers.front().request;
  PrefillRun run = sound;
  run.answers.erase(run.answers.begin());
  EXPECT_EQ(why_not_sound(run), fmt::format("request {} was never answered", first));
  EXPECT_EQ(offered_of(run), sound.answers.size()) << "as the source counts them";
  run = sound;
  run.answers.push_back(sound.answers.front());
  EXPECT_EQ(why_not_sound(run), fmt::format("request {} was answered twice", first));
  run = sound;
  std::erase(run.offered, first);
  EXPECT_EQ(why_not_sound(run),
            fmt::format("request {} was answered, and no one had asked it", first));
}

TEST_F(PredictedRun, TellsWhatStaysIdleByCause) {
  const PrefillRun run = played(stretch_.predicted);
  const StretchOutcome& outcome = run.pairs[0].with;
  Duration idle{};
  for (const Duration each : outcome.idle) idle += each;
  EXPECT_GT(idle, Duration{});
  EXPECT_EQ(outcome.training + outcome.prefill + idle, planned_.bubbles.gpus * outcome.wall);
  const auto record = prefill_record(planned_, run, {}, settings_, {});
  const auto& schedule = record["schedules"][0];
  EXPECT_EQ(schedule["idle_ns"], schedule["predicted_idle_ns"]);
  Duration sum{};
  for (const auto& [cause, ns] : schedule["idle_ns"].items())
    sum += Duration{ns.get<std::int64_t>()};
  EXPECT_EQ(sum, idle);
  EXPECT_THAT(prefill_text(record), HasSubstr("idle (predicted): "));
}

TEST_F(PredictedRun, IsNotSoundWhereAStageBeginsBeforeTheOneBeforeItEnds) {
  OpResults results = stretch_.predicted;
  const auto second = std::ranges::find_if(
      stretch_.filled.stages, [](const auto& stage) { return stage.placed.stage == 1; });
  OpTime& time = results.times[index(second->op)];
  time.start -= 200us;
  time.end -= 200us;
  EXPECT_THAT(why_not_sound(played(results)), HasSubstr("do not add up to its TTFT"));
}

TEST_F(PredictedRun, IsNotSoundWhereAPromptIsDoneBeforeItArrives) {
  ASSERT_FALSE(stretch_.decisions.empty());
  const prefill::Decision& last = stretch_.decisions.back();
  stretch_.decisions.back().arrival = last.end + 1ms;
  EXPECT_THAT(why_not_sound(played(stretch_.predicted)), HasSubstr("was done before it arrived"));
}

/// The stretches of --check --kv layerwise.
class RunThatSendsKeys : public PredictedRun {
protected:
  RunThatSendsKeys() {
    settings_.backlog.reset();
    planned_ = plan_stretches(scenario::parse_scenario(tiny_input("layerwise").at("scenario"), "t"),
                              "1f1b", tiny_input().at("requests"), "requests", settings_);
    stretch_ = planned_.fill(0, settings_);
  }
};

TEST_F(RunThatSendsKeys, LeavesOutBoundsOfPairsThatWereNotPlayed) {
  const auto bounds_of = [&](const PrefillRun& run) {
    return nlohmann::json(
        prefill_record(planned_, run, {}, settings_, {}))["schedules"][0]["utilisation"];
  };
  PrefillRun run = played(stretch_.predicted);
  const nlohmann::json whole = bounds_of(run);
  EXPECT_TRUE(whole["bounds_left_out"].is_null());
  ASSERT_FALSE(whole["bounds"]["flow"].is_null());
  EXPECT_EQ(whole["upper_bound"], whole["bounds"]["flow"]) << "few prompts come";
  run.is_stopped = true;
  EXPECT_THAT(bounds_of(run)["bounds_left_out"].get<std::string>(), HasSubstr("was stopped"));
  for (const char* const none : {"mix", "flow"})
    EXPECT_TRUE(bounds_of(run)["bounds"][none].is_null()) << none;
  EXPECT_FALSE(bounds_of(run)["bounds"]["whole_prompts"].is_null());
  EXPECT_GT(bounds_of(run)["upper_bound"], whole["upper_bound"]);
}

TEST_F(RunThatSendsKeys, CountsThemIntoTimeToFirstToken) {
  const PrefillRun run = played(stretch_.predicted);
  EXPECT_EQ(why_not_sound(run), "");
  const StretchOutcome& outcome = run.pairs[0].with;
  ASSERT_FALSE(outcome.requests.empty());
  Bytes bytes;
  for (const PlayedRequest& each : outcome.requests) {
    EXPECT_GE(each.kv, 500us) << "the way alone";
    EXPECT_EQ(each.first_token, 2ms);
    bytes += planned_.served[0].model.dimensions->kv(each.tokens);
  }
  EXPECT_EQ(outcome.kv.bytes, bytes);
  EXPECT_GT(outcome.kv.messages_bound, 0);
  EXPECT_GT(outcome.kv.delay, 0ns);
}

TEST_F(RunThatSendsKeys, CountsAPromptWhoseTokenComesAfterItsSloAsLate) {
  const auto late = [&] { return played(stretch_.predicted).pairs[0].with.late; };
  EXPECT_EQ(late(), 0);
  std::vector<Duration> ttft;
  for (const PlayedRequest& each : played(stretch_.predicted).pairs[0].with.requests)
    ttft.push_back(each.ttft);
  std::ranges::sort(ttft);
  ASSERT_GT(ttft.size(), 1U);
  ASSERT_LT(ttft.front(), ttft.back());
  planned_.served[0].model.slo_ttft = ttft.front();
  EXPECT_EQ(late(), std::ranges::count_if(ttft, [&](Duration each) { return each > ttft[0]; }));
}

TEST_F(RunThatSendsKeys, IsNotSoundWhereATokenIsThereBeforeItsKeys) {
  OpResults results = stretch_.predicted;
  results.times[index(stretch_.filled.tokens[0].op)].start -= 1s;
  EXPECT_THAT(why_not_sound(played(results)), HasSubstr("do not add up to its TTFT"));
}

TEST_F(RunThatSendsKeys, DoesNotAnswerWhatCameWrong) {
  const auto& slices = stretch_.filled.plan.extras.slices;
  const auto recv = std::ranges::find_if(slices, [&](const plan::OpSlice& slice) {
    return stretch_.filled.plan.op(slice.op).kind == OpKind::recv;
  });
  const auto record = prefill_record(planned_, played(stretch_.predicted, {recv->op}),
                                     PrefillOptions{}, settings_, nlohmann::json{});
  EXPECT_EQ(record["schedules"][0]["requests"]["failed"], 1);
  EXPECT_EQ(record["schedules"][0]["predicted_requests"]["failed"], 0);
  int named = 0;
  for (const auto& each : record["schedules"][0]["requests_detail"])
    named += each["answer"] == "failed" && each["reason"] == "kv" ? 1 : 0;
  EXPECT_EQ(named, 1);
}

// The first prompt begins and does not end; the second never begins.
TEST_F(RunThatSendsKeys, SaysWhichPromptWasKilledAndWhichDeclined) {
  settings_.overrun = prefill::Overrun::kill;
  OpResults results = stretch_.predicted;
  results.outcomes.resize(results.times.size(), Outcome::ran);
  ASSERT_GT(stretch_.decisions.size(), 1U);
  for (const prefill::FilledStage& stage : stretch_.filled.stages)
    for (std::size_t op = index(stage.first); op <= index(stage.op); ++op)
      if (stage.placed.decision == 1 || (stage.placed.decision == 0 && op > index(stage.first)))
        results.outcomes[op] = Outcome::skipped;
  const auto record = prefill_record(planned_, played(results), {}, settings_, {});
  std::map<std::int64_t, std::string> reasons;
  for (const auto& each : record["schedules"][0]["requests_detail"])
    if (each["answer"] == "failed") reasons[each["id"]] = each["reason"];
  EXPECT_THAT(reasons,
              ::testing::ElementsAre(std::pair{stretch_.decisions[0].request, "killed"},
                                     std::pair{stretch_.decisions[1].request, "declined"}));
}

TEST_F(PredictedRun, CountsPromptsByLength) {
  OpResults results = stretch_.predicted;
  results.outcomes.resize(results.times.size(), Outcome::ran);
  results.outcomes[index(stretch_.filled.stages.back().op)] = Outcome::skipped;
  const auto record =
      prefill_record(planned_, played(results), PrefillOptions{}, settings_, nlohmann::json{});
  const auto& requests = record["schedules"][0]["requests"];
  ASSERT_EQ(requests["by_length"].size(), 1U) << "prompts of 5 to 80 tokens";
  EXPECT_EQ(requests["by_length"][0]["below_tokens"], 128);
  for (const char* const count : {"offered", "done"})
    EXPECT_EQ(requests["by_length"][0][count], requests[count]) << count;
  EXPECT_EQ(requests["failed"], 1);
  EXPECT_EQ(record["schedules"][0]["predicted_requests"]["failed"], 0);
  const auto& agreement = record["schedules"][0]["answers_as_predicted"];
  for (const char* const count : {"in_both", "same_answer"})
    EXPECT_EQ(agreement[count], requests["offered"]) << count;
  EXPECT_EQ(agreement["same_pipeline"], agreement["placed_in_both"]);
  for (const char* const none : {"killed", "cancelled"}) EXPECT_EQ(requests[none], 0) << none;
}

TEST_F(PredictedRun, CostsWhatDelaysTraining) {
  PrefillRun run = played(stretch_.predicted);
  const auto schedule_of = [&] {
    return nlohmann::json(prefill_record(planned_, run, {}, settings_, {}))["schedules"][0];
  };
  EXPECT_TRUE(schedule_of()["cost"].is_null()) << "without a price";
  EXPECT_GT(schedule_of()["placement_ns"], 0);
  for (Datacenter& each : planned_.scenario.datacenters) each.price = 3.6;
  run.pairs[0].without.wall = run.pairs[0].with.wall - 1ms;
  const nlohmann::json cost = schedule_of()["cost"];
  EXPECT_NEAR(cost["training_delay"].get<double>(), 4 * 3.6 / 3.6e6, 1e-12) << "1 ms of 4 GPUs";
  double alone = 0;
  for (const PlayedRequest& each : run.pairs[0].with.requests)
    alone += static_cast<double>(planned_.served[0].model.time(each.tokens)->count());
  EXPECT_NEAR(cost["gpus_saved"].get<double>(),
              alone / static_cast<double>(run.pairs[0].with.wall.count()), 1e-12);
}

TEST_F(PredictedRun, IsNotSoundWhereAGpuHeldMoreThanItHas) {
  settings_.backlog.reset();
  const std::vector<std::string> capacity{"memory.capacity=1GiB"};
  planned_ = plan_stretches(scenario::parse_scenario(tiny_input().at("scenario"), "tiny", capacity),
                            "gpipe", tiny_input().at("requests"), "requests", settings_);
  stretch_ = planned_.fill(0, settings_);
  PrefillRun run = played(stretch_.predicted);
  EXPECT_EQ(why_not_sound(run), "");
  const auto memory_of = [&] {
    return nlohmann::json(
        prefill_record(planned_, run, {}, settings_, {}))["schedules"][0]["memory"];
  };
  const nlohmann::json sound = memory_of();
  EXPECT_EQ(sound["gpus_over_capacity"], 0);
  ASSERT_EQ(sound["gpus"].size(), 4U);
  EXPECT_EQ(sound["gpus"][3]["capacity_bytes"], 1 << 30);
  EXPECT_GT(sound["gpus"][3]["peak_bytes"], 8 << 20) << "weights alone";
  EXPECT_EQ(sound["gpus"][3]["peak_bytes"], sound["gpus"][3]["predicted_peak_bytes"]);
  run.pairs[0].with.memory[3].peak = 1_GiB + Bytes{1};
  EXPECT_THAT(why_not_sound(run), HasSubstr("rank 3 held 1073741825 bytes at once"));
  EXPECT_EQ(memory_of()["gpus_over_capacity"], 1);
}

}  // namespace
}  // namespace longhaul::harness
