#include "harness/prefill/served_check.hpp"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "harness/prefill/prefill_rows.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using ::testing::HasSubstr;

/// A stretch of --check --compute real, whose prompts all ranks of one process compute as
/// predicted.
class ComputedStretch {
public:
  explicit ComputedStretch(const std::vector<std::string>& overrides, const char* kv = "layerwise",
                           bool backlog = false) {
    settings_.pairs = 1;
    settings_.stretch = 1;
    settings_.kv = *from_string<prefill::KvSending>(kv);
    if (backlog) settings_.backlog = prefill::BacklogOptions{.waiting = 4, .iterations = 1};
    planned_ = plan_stretches(
        scenario::parse_scenario(tiny_input(kv, true).at("scenario"), "tiny", overrides), "1f1b",
        tiny_input().at("requests"), "requests", settings_);
    stretch_ = planned_.fill(0, settings_);
    outcome_ = outcome_of_filled(planned_, stretch_, stretch_.predicted);
  }
  /// Plays messages and computations in the order of their ends.
  ComputedStretch& compute() {
    for (int rank = 0; rank < planned_.scenario.ranks(); ++rank) {
      works_.push_back(std::make_unique<ServedWork>(planned_, Rank{rank}));
      works_.back()->begin(stretch_);
    }
    const Plan& plan = stretch_.filled.plan;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
      if (works_[0]->knows(OpId{static_cast<std::uint32_t>(i)})) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return std::pair{stretch_.predicted.times[i].end, plan.ops[i].kind != OpKind::compute};
    });
    for (const std::size_t i : order) play(OpId{static_cast<std::uint32_t>(i)});
    for (const auto& work : works_)
      for (const auto& [from, to] : {std::pair{&work->numbers().logits, &numbers.logits},
                                     {&work->numbers().sent, &numbers.sent},
                                     {&work->numbers().received, &numbers.received}})
        to->insert(from->begin(), from->end());
    return *this;
  }
  [[nodiscard]] ServedReport report() const {
    ServedCheck check{planned_};
    check.check(stretch_, outcome_, numbers);
    return check.report();
  }
  [[nodiscard]] const FilledStretch& stretch() const { return stretch_; }
  [[nodiscard]] int computations() const { return computations_; }
  [[nodiscard]] const PlannedStretches& planned() const { return planned_; }

  ServedNumbers numbers;

private:
  void play(OpId id) {
    const Op& op = stretch_.filled.plan.op(id);
    const auto own = index(stretch_.filled.plan.rank_of(id));
    if (op.kind == OpKind::compute) {
      works_[own]->run(id);
      ++computations_;
    }
    if (op.kind != OpKind::recv) return;
    const engine::Payload sent = works_[index(op.peer)]->make(OpId{op.match});
    const engine::Payload room = works_[own]->room(id);
    ASSERT_EQ(room.bytes.size(), sent.bytes.size());
    std::ranges::copy(sent.bytes, room.bytes.begin());
    EXPECT_EQ(works_[own]->check(id, room.bytes), engine::Payloads::Verdict::right);
    works_[own]->deliver(id, room);
  }

  PrefillSettings settings_;
  PlannedStretches planned_;
  FilledStretch stretch_;
  StretchOutcome outcome_;
  std::vector<std::unique_ptr<ServedWork>> works_;
  int computations_ = 0;
};

std::size_t passes_of(const ComputedStretch& computed) {
  int most = 0;
  for (const auto& stage : computed.stretch().filled.stages)
    most = std::max(most, stage.placed.pass + 1);
  return to_size(most);
}

void expect_right(const ServedReport& report) {
  EXPECT_GT(report.prompts, 0);
  EXPECT_EQ(report.wrong_prompts, 0) << (report.wrong.empty() ? "" : report.wrong.front());
  EXPECT_LE(report.logits_difference, ServedReport::kAllowed);
  EXPECT_LE(report.kv_difference, ServedReport::kAllowed);
  EXPECT_TRUE(report.kv_equal);
  EXPECT_TRUE(report.decoded_equal);
  EXPECT_EQ(report.decoded, 8 * report.prompts);
}

TEST(ServedCheck, FindsThePromptsOfAnyStagesAndPassesRight) {
  for (const char* const stages : {"prefill.stages=1", "prefill.stages=2"})
    for (const char* const chunk : {"prefill.batch=1", "prefill.chunk=1", "prefill.chunk=16"})
      for (const char* const kv : {"layerwise", "whole"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", stages, chunk, kv));
        // So that passes of one token are worth their time.
        ComputedStretch computed{{stages, chunk, "prefill.floor=\"1us\""}, kv};
        expect_right(computed.compute().report());
        EXPECT_EQ(passes_of(computed) > 1, std::string_view{chunk} != "prefill.batch=1");
      }
}

TEST(ServedCheck, FindsPromptsThatShareAPassRight) {
  ComputedStretch computed{
      {"prefill.stages=1", "prefill.chunk=24", "prefill.batch=3"}, "layerwise", true};
  expect_right(computed.compute().report());
  const auto& stages = computed.stretch().filled.stages;
  EXPECT_GT(
      std::ranges::count_if(
          stages, [](const auto& stage) { return stage.placed.in_pass > stage.placed.tokens; }),
      1)
      << "none shares a pass";
}

/// The first prompt of a stretch that is right but for what `change` does.
template <typename Change>
ServedReport with_one_wrong(const Change& change) {
  ComputedStretch computed{{"prefill.stages=2", "prefill.chunk=16"}};
  computed.compute();
  change(computed.numbers);
  const ServedReport report = computed.report();
  EXPECT_EQ(report.wrong_prompts, 1);
  EXPECT_EQ(served_json(report)["wrong_prompts"], 1);
  return report;
}

TEST(ServedCheck, FindsAKeyThatCameWrong) {
  const ServedReport report = with_one_wrong([](ServedNumbers& numbers) {
    float& number = numbers.received.begin()->second[2];
    number = std::nextafter(number, 9.0F);
  });
  EXPECT_FALSE(report.kv_equal);
  EXPECT_THAT(report.wrong.at(0), HasSubstr("keys and values are not those that were sent"));
}

TEST(ServedCheck, FindsAKeyThatWasComputedWrong) {
  const ServedReport report = with_one_wrong([](ServedNumbers& numbers) {
    numbers.sent.begin()->second[2] += 1;
    numbers.received.begin()->second[2] = numbers.sent.begin()->second[2];
  });
  EXPECT_TRUE(report.kv_equal);
  EXPECT_THAT(report.wrong.at(0), HasSubstr("keys and values differ by 1 from one rank's"));
}

TEST(ServedCheck, FindsAChunkThatWasDropped) {
  const ServedReport report = with_one_wrong(
      [](ServedNumbers& numbers) { numbers.received.erase(numbers.received.begin()); });
  EXPECT_FALSE(report.kv_equal);
  EXPECT_FALSE(report.decoded_equal);
}

TEST(ServedCheck, FindsLogitsThatAreNotThoseOfTheLastToken) {
  const ServedReport report = with_one_wrong(
      [](ServedNumbers& numbers) { std::ranges::reverse(numbers.logits.begin()->second); });
  EXPECT_GT(report.logits_difference, 0.1);
  EXPECT_FALSE(report.decoded_equal);
  EXPECT_TRUE(report.kv_equal);
  EXPECT_THAT(report.wrong.at(0), HasSubstr("the logits of its last token differ by"));
}

TEST(ServedCheck, FindsNumbersThatAreMissingOrNone) {
  EXPECT_THAT(with_one_wrong([](ServedNumbers& numbers) {
                numbers.logits.erase(numbers.logits.begin());
              }).wrong.at(0),
              HasSubstr("differ by inf"));
}

TEST(ServedShape, RefusesWhatCannotBeComputed) {
  ServedModel model;
  model.name = "m";
  const auto why = [&] {
    try {
      (void)served_shape(model);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_THAT(why(), HasSubstr("real layers need its dimensions"));
  model.dimensions = ServedDimensions{.layers = 4,
                                      .hidden = 64,
                                      .intermediate = 128,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_size = 16,
                                      .vocabulary = 100};
  EXPECT_EQ(why(), "");
  model.stages = 5;
  EXPECT_THAT(why(), HasSubstr("4 layers in 5 stages"));
  model.stages = 1;
  model.dimensions->head_size = 8;
  EXPECT_THAT(why(), HasSubstr("do not make up the hidden size of 64"));
  model.dimensions->head_size = 16;
  model.dimensions->kv_heads = 3;
  EXPECT_THAT(why(), HasSubstr("4 heads share 3 key and value heads"));
  model.dimensions = served_presets().front().dimensions;
  EXPECT_THAT(why(), HasSubstr("real layers are computed by CPUs"));
}

TEST(ServedRange, GivesEachLayerToOneStage) {
  ServedModel model;
  model.dimensions = ServedDimensions{.layers = 7};
  for (model.stages = 1; model.stages <= 7; ++model.stages) {
    int next = 0;
    for (int stage = 0; stage < model.stages; ++stage) {
      EXPECT_EQ(served_range(model, stage).first, next);
      next += served_range(model, stage).count;
    }
    EXPECT_EQ(next, 9) << "an embedding, 7 decoders, a head";
  }
}

}  // namespace
}  // namespace longhaul::harness
