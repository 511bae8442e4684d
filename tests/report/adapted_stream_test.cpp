#include "report/adapted_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "plan/lowering/lower.hpp"
#include "report/stream_report.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::report {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

/// An RTX 4090 and an RTX 2080 Ti that train ViT-B-16 over 200 Mbps.
Scenario adapting(const std::vector<std::string>& set = {}, const std::string& link = "") {
  const std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\ngradient_sync = \"compressed\"\n"
      "[train]\npreset = \"vit-b-16\"\nparts = 4\nstaleness = 1\n"
      "[train.compress]\nmethod = \"threshold\"\nkeep = \"1%\"\n"
      "[train.adapt]\nevery = 8\n"
      "[[datacenter]]\nname = \"east\"\nreplicas = [0]\ngpu = \"rtx4090\"\n"
      "[[datacenter]]\nname = \"west\"\nreplicas = [1]\ngpu = \"rtx2080ti\"\n"
      "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\n" +
      (link.empty() ? "bandwidth = \"200Mbps\"\n" : link);
  return scenario::parse_scenario(text, "s.toml", set);
}

StreamReport adapted(const Scenario& scenario, int iterations) {
  return adapted_stream(schedule::generate("stella", scenario), scenario, Arrangement::decoupled,
                        iterations);
}

std::string refusal_of(const std::vector<std::string>& set, const std::string& link = "") {
  try {
    (void)adapted(adapting(set, link), 20);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(AdaptedStream, FindsTheBandwidthOfALinkByIdleTime) {
  const StreamReport report = adapted(adapting(), 400);
  const AdaptationReport& adaptation = report.adaptation.value();
  ASSERT_GT(adaptation.decisions.size(), 20U);
  int last = -1;
  for (const planner::Adaptation& made : adaptation.decisions) {
    EXPECT_GT(made.iteration, last);
    EXPECT_EQ(made.iteration % 8, 7 + 4 - 8) << "4 after one of every 8";
    last = made.iteration;
    if (made.iteration < 250) continue;
    EXPECT_THAT(made.bandwidth.bits_per_second(), AllOf(Ge(0.9 * 200e6), Le(1.3 * 200e6)));
    EXPECT_GT(made.setting.batch[0], made.setting.batch[1]);
  }
  EXPECT_EQ(adaptation.decisions.front().reason, planner::AdaptationReason::first);
}

TEST(AdaptedStream, FindsItAtOnceByItsLinks) {
  const StreamReport report = adapted(adapting({"train.adapt.estimate=links"}), 100);
  for (const planner::Adaptation& made : report.adaptation.value().decisions) {
    EXPECT_NEAR(made.bandwidth.bits_per_second() / 200e6, 1, 0.01);
    EXPECT_EQ(made.reason, planner::AdaptationReason::links);
  }
  // Equation 6 asks for what passes within the time of the fastest: no one waits for the link.
  const planner::TuneChoice& last = report.adaptation->decisions.back().setting;
  EXPECT_NEAR(static_cast<double>(report.period.value().count()) * 1e-9 / last.seconds, 1, 0.05);
}

TEST(AdaptedStream, FollowsALinkThatFalls) {
  const std::string link =
      "trace = \"falls.csv\"\n[traces]\n"
      "\"falls.csv\" = \"\"\"time_s,bandwidth_mbps\n0,800\n60,80\n\"\"\"\n";
  for (const char* estimate : {"idle", "links"}) {
    const Scenario scenario = adapting({fmt::format("train.adapt.estimate={}", estimate)}, link);
    const StreamReport report = adapted(scenario, 800);
    std::vector<double> before, after, rates;
    for (const planner::Adaptation& made : report.adaptation.value().decisions) {
      const Duration at = report.iteration_start[to_size(made.iteration)];
      if (at > 40s && at < 60s) before.push_back(made.bandwidth.bits_per_second());
      if (at > 100s) after.push_back(made.bandwidth.bits_per_second());
      rates.push_back(made.setting.compression_rate);
    }
    ASSERT_FALSE(before.empty());
    ASSERT_FALSE(after.empty());
    EXPECT_THAT(before.back(), AllOf(Ge(0.85 * 800e6), Le(1.3 * 800e6))) << estimate;
    EXPECT_THAT(after.back(), AllOf(Ge(0.85 * 80e6), Le(1.3 * 80e6))) << estimate;
    EXPECT_GT(rates.back(), 0.98);
  }
}

// The stream takes as long as its blocks, those of each setting, and what the estimate is too high
// by: changes cost nothing.
TEST(AdaptedStream, ChangesWithoutAGap) {
  const StreamReport report = adapted(adapting({"train.adapt.estimate=links"}), 200);
  double blocks = 0;
  std::size_t next = 0;
  const auto& decisions = report.adaptation->decisions;
  double seconds = 28.0 / 300;  // alpha of both at first; the slower takes 20 / 99
  seconds = std::max(seconds, 20.0 / 99);
  for (int iteration = 0; iteration + 1 < 200; ++iteration) {
    if (next < decisions.size() && decisions[next].iteration == iteration)
      seconds = decisions[next++].setting.seconds;
    blocks += seconds;
  }
  const double took = static_cast<double>(report.iteration_start.back().count()) * 1e-9;
  EXPECT_NEAR(took / blocks, 1, 0.03);
}

TEST(AdaptedStream, ChangesWhatItIsToldTo) {
  const std::vector<int> batch{40, 10};
  const std::string given = "train.batch=[40, 10]";
  const auto rate = adapted(adapting({given, "train.adapt.changes=rate"}), 60).adaptation.value();
  ASSERT_FALSE(rate.decisions.empty());
  for (const planner::Adaptation& made : rate.decisions) EXPECT_EQ(made.setting.batch, batch);
  EXPECT_EQ(rate.samples, 60 * 50);
  const auto none = adapted(adapting({given, "train.adapt.changes=nothing"}), 60).adaptation;
  EXPECT_THAT(none->decisions, IsEmpty());
  EXPECT_DOUBLE_EQ(none->effective_samples, 60 * 50) << "g is 0 without probes";
  const auto plain = adapting({given, "train.adapt.every=0"});
  EXPECT_EQ(adapted(adapting({given, "train.adapt.changes=nothing"}), 60).iteration_start,
            stream_report(plan::lower(schedule::generate("stella", plain), plain), plain, 60)
                .iteration_start);
}

TEST(AdaptedStream, SaysItsDecisions) {
  const StreamReport report = adapted(adapting(), 40);
  const nlohmann::ordered_json json = stream_json(report);
  const AdaptationReport& adaptation = report.adaptation.value();
  ASSERT_EQ(json["adaptation"].size(), adaptation.decisions.size());
  const nlohmann::ordered_json& first = json["adaptation"][0];
  EXPECT_EQ(first["iteration"], 11);
  EXPECT_EQ(first["reason"], "first");
  EXPECT_EQ(first["batch"].size(), 2U);
  EXPECT_EQ(first["compression_rate"], adaptation.decisions[0].setting.compression_rate);
  EXPECT_EQ(json["samples"], adaptation.samples);
  EXPECT_THAT(adaptation_text("stella", adaptation), HasSubstr("Batches and rate of stella"));
}

TEST(AdaptedStream, RefusesInOneLineWhatCannotBeAdapted) {
  EXPECT_EQ(refusal_of({}), "accepted");
  EXPECT_THAT(refusal_of({"train.compress.method=int8"}), HasSubstr("sends all numbers"));
  EXPECT_THAT(refusal_of({"parallel.microbatches=2"}), HasSubstr("1 ranks and 2 microbatches"));
  EXPECT_THAT(refusal_of({"train.message=1MB"}), HasSubstr("train.message states what is sent"));
  EXPECT_THAT(refusal_of({"train.batch=[9, 65]", "train.adapt.most_batch=64"}),
              HasSubstr("train.batch has 65 samples for replica 1"));
  EXPECT_EQ(refusal_of({"train.batch=[9, 64]", "train.adapt.most_batch=64"}), "accepted");
  EXPECT_THAT(refusal_of({"costs.forward=30ms", "costs.backward=60ms", "costs.weights=352MB"}),
              HasSubstr("times that no batch changes"));
  EXPECT_THAT(refusal_of({}, "bandwidth = \"unlimited\"\n"), HasSubstr("has no link to adapt"));
}

TEST(AllStreams, AreOfReplicasThatTrainTogether) {
  const auto streams = [](const char* name, const Scenario& scenario) {
    const std::vector<planner::ScheduleResult> made{{schedule::generate(name, scenario)}};
    return all_streams(made, scenario, Arrangement::decoupled, 20);
  };
  EXPECT_THAT(streams("1f1b", uniform_scenario(2, 4)), IsEmpty());
  const std::vector<StreamReport> plain = streams("stella", adapting({"train.adapt.every=0"}));
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].schedule, "stella");
  EXPECT_EQ(plain[0].iteration_start.size(), 20U);
  EXPECT_FALSE(plain[0].adaptation);
  const std::vector<StreamReport> steered = streams("stella", adapting());
  ASSERT_EQ(steered.size(), 1U);
  EXPECT_TRUE(steered[0].adaptation);
}

// The link falls to 20 Mbps after 1 s, a few iterations on: the first half of them is shorter.
TEST(StreamReport, ItsPeriodIsTheMeanOfTheSecondHalf) {
  const std::string link =
      "trace = \"falls.csv\"\n[traces]\n"
      "\"falls.csv\" = \"\"\"time_s,bandwidth_mbps\n0,800\n1,20\n\"\"\"\n";
  const Scenario scenario = adapting({"train.adapt.every=0"}, link);
  const Plan plan = plan::lower(schedule::generate("stella", scenario), scenario);
  const StreamReport report = stream_report(plan, scenario, 12);
  const std::vector<Duration>& start = report.iteration_start;
  ASSERT_EQ(start.size(), 12U);
  EXPECT_LT(2 * (start[6] - start[1]), start[11] - start[6]);
  EXPECT_EQ(report.period, (start[11] - start[6]) / 5);
}

}  // namespace
}  // namespace longhaul::report
