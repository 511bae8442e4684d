// Schedule stella as a stream: the known values of exchanging replicas, an oracle of its rules, and
// what must hold of any.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/part_lowering.hpp"
#include "report/stream_report.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"
#include "support/stella/random_stella.hpp"
#include "support/stella/stella_plan.hpp"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::plan_of;

/// Two replicas apart of three parts with F 10 ms and B 20 ms each, 25 MB a part at 10 Gbps (20 ms)
/// and 5 ms of latency.
Scenario exchanging(const std::vector<std::string>& set = {}) {
  const std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\ngradient_sync = \"compressed\"\n"
      "[costs]\nforward = \"30ms\"\nbackward = \"60ms\"\nweights = \"300MB\"\n"
      "[train]\nparts = 3\nmessage = \"25MB\"\n"
      "[[datacenter]]\nname = \"east\"\nreplicas = [0]\n"
      "[[datacenter]]\nname = \"west\"\nreplicas = [1]\n"
      "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\nbandwidth = \"10Gbps\"\n";
  return scenario::parse_scenario(text, "s.toml", set);
}

report::StreamReport stream(const Scenario& scenario, int iterations,
                            const char* schedule = "stella") {
  return report::stream_report(plan_of(scenario, schedule), scenario, iterations);
}

std::vector<double> starts(const std::vector<std::string>& set, int iterations) {
  std::vector<double> all;
  for (const Duration start : stream(exchanging(set), iterations).iteration_start)
    all.push_back(static_cast<double>(start.count()) / 1e6);
  return all;
}

const std::string kSlow = "train.message=50MB";  // 40 ms a part
const std::string kStale = "train.staleness=1";
const std::string kArrival = "train.serve=arrival";

TEST(Stella, HasTheKnownTimesOfStreams) {
  EXPECT_THAT(starts({}, 4), ElementsAre(0, 115, 230, 345));
  EXPECT_THAT(starts({kArrival}, 3), ElementsAre(0, 115, 230));
  EXPECT_THAT(starts({kSlow, kArrival}, 4), ElementsAre(0, 175, 350, 525));
  EXPECT_THAT(starts({kSlow}, 6), ElementsAre(0, 135, 300, 465, 630, 795));
  EXPECT_THAT(starts({kStale}, 4), ElementsAre(0, 90, 180, 270));
  EXPECT_THAT(starts({kStale, kSlow}, 7), ElementsAre(0, 90, 180, 270, 365, 485, 605));
  EXPECT_THAT(starts({kStale, kSlow, kArrival}, 6), ElementsAre(0, 90, 180, 295, 415, 535));
}

TEST(Stella, SaysWhichPartsAreFresh) {
  const report::StreamReport fast = stream(exchanging({kStale}), 12);
  EXPECT_THAT(fast.fresh_parts, ElementsAre(1, 2));
  EXPECT_DOUBLE_EQ(*fast.fresh_share, 2.0 / 3);
  EXPECT_EQ(fast.period, 90ms);
  const report::StreamReport slow = stream(exchanging({kStale, kSlow}), 12);
  EXPECT_THAT(slow.fresh_parts, IsEmpty());
  EXPECT_EQ(slow.fresh_share, 0);
  EXPECT_EQ(slow.period, 120ms);
  EXPECT_EQ(stream(exchanging(), 12).fresh_share, 1) << "without staleness all are";
  EXPECT_EQ(stream(exchanging({kStale}), 4).fresh_share, std::nullopt) << "2 to 1: none";
}

// With one buffer an update waits for the B of its part, so that no part is fresh.
TEST(Stella, OneBufferIsNeverFresh) {
  const report::StreamReport one = stream(exchanging({kStale, "train.buffers=1"}), 12);
  EXPECT_EQ(one.fresh_share, 0);
  EXPECT_EQ(one.period, 90ms);
  EXPECT_EQ(stream(exchanging({"train.buffers=1"}), 12).fresh_share, 1);
}

TEST(Stella, SendsSetsOverTheWan) {
  const auto wan = [](const std::string& exchange) {
    const std::string text =
        "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 8\ngradient_sync = \"compressed\"\n"
        "[costs]\nforward = \"30ms\"\nweights = \"300MB\"\n[train]\nmessage = \"1kB\"\n"
        "[train.compress]\nexchange = \"" +
        exchange +
        "\"\n[[datacenter]]\nname = \"east\"\nreplicas = \"0-3\"\n"
        "[[datacenter]]\nname = \"west\"\nreplicas = \"4-7\"\n"
        "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\n";
    return report::busiest_way(plan_of(scenario::parse_scenario(text, "s.toml")));
  };
  EXPECT_EQ(wan("ring"), Bytes{7000});
  EXPECT_EQ(wan("direct"), Bytes{16000});
  EXPECT_EQ(wan("sites"), Bytes{1000});
}

std::vector<double> starts_of(const Scenario& scenario, const plan::PartExchanges& exchanges) {
  const Plan plan =
      plan::lower_exchanges(schedule::generate("stella", scenario), scenario, exchanges);
  std::vector<double> all;
  for (const Duration start : report::stream_report(plan, scenario, 3).iteration_start)
    all.push_back(static_cast<double>(start.count()) / 1e6);
  return all;
}

// Sets of part 2 are ready at 50 ms, of part 1 at 70, of part 0 at 90; answers 25 ms after their
// sending begins. The link serves part 2, 1, 0, then answers of 1, of 0 (130 to 150 ms), of 2.
TEST(Stella, RoundsFollowEachOther) {
  plan::PartExchanges twice;
  twice.sizes.assign(3, {Bytes{25'000'000}, Bytes{25'000'000}});
  EXPECT_THAT(starts_of(exchanging(), twice), ElementsAre(0, 155, 310));
  twice.sizes.resize(1);
  EXPECT_THAT(starts_of(exchanging({"train.parts=1"}), twice), ElementsAre(0, 140, 280));
}

// A microbatch takes 90 ms. Part 0 is sent at 180 ms, part 1 30 ms before the end of the iteration:
// with an overlap of a microbatch no F waits for either.
TEST(Stella, FragmentsAreExchangedInTheMiddle) {
  const std::string four = "parallel.microbatches=4", parts = "train.parts=2";
  plan::PartExchanges fragments;
  fragments.fragments = 2;
  EXPECT_THAT(starts_of(exchanging({four, parts}), fragments), ElementsAre(0, 385, 770));
  EXPECT_THAT(starts_of(exchanging({four, parts, kSlow}), fragments), ElementsAre(0, 405, 810));
  fragments.overlap = 1;
  EXPECT_THAT(starts_of(exchanging({four, parts, kSlow}), fragments), ElementsAre(0, 360, 720));
}

TEST(Stella, TasksTakeTheirTime) {
  // Out 1, compress 2, merge 3, optimize 4, in 5 ms: part 0, last, comes 15 ms later.
  const std::vector<std::string> set{"train.costs.copy_out=1ms", "train.costs.gather=0ms",
                                     "train.costs.compress=2ms", "train.costs.merge=3ms",
                                     "train.costs.optimize=4ms", "train.costs.copy_in=5ms"};
  EXPECT_THAT(starts(set, 3), ElementsAre(0, 130, 260));
  const Plan plan = plan_of(exchanging(set));
  const std::string lanes[] = {"out", "host", "host:update", "in"};
  for (const std::string& name : lanes)
    EXPECT_EQ(std::ranges::count(plan.lanes, name, &Lane::name), 2) << name;
}

testing::StellaByRules::Answer simulated(const Scenario& scenario, int iterations) {
  const Plan plan = plan_of(scenario);
  std::vector<OpId> forwards;
  for (const plan::FarDependency& far : plan.extras.far)
    if (far.strength == plan::Strength::weak) forwards.push_back(far.op);
  std::ranges::sort(forwards);  // by rank, in a rank by part
  testing::StellaByRules::Answer answer;
  sim::simulate_stream(plan, {iterations, {}}, [&](const sim::StreamedIteration& done) {
    answer.starts.push_back(done.results.times[index(forwards.front())].start);
    answer.versions.emplace_back();
    for (const OpId op : forwards)
      answer.versions.back().push_back(done.results.versions[index(op)]);
    Duration updated{};
    for (const plan::OpTask& task : plan.extras.tasks)
      updated = std::max(updated, done.results.times[index(task.op)].end);
    answer.updated.push_back(updated);
  });
  return answer;
}

struct SeenVersions {
  int fresh = 0, stale = 0;
};

void expect_the_rules(const testing::RandomStella& random, SeenVersions& seen) {
  constexpr int kIterations = 5;
  const auto expected = testing::StellaByRules{random.rules, kIterations}.run();
  const auto own = simulated(random.scenario(), kIterations);
  ASSERT_EQ(own.starts, expected.starts);
  ASSERT_EQ(own.versions, expected.versions);
  ASSERT_EQ(own.updated, expected.updated);
  for (const int version : own.versions.back())
    ++(version == kIterations - 2 ? seen.fresh : seen.stale);
}

TEST(Stella, EqualsItsRulesPlayedEventByEvent) {
  SeenVersions seen;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_rules(testing::RandomStella{seed}, seen);
  }
  EXPECT_GT(seen.fresh, 100);
  EXPECT_GT(seen.stale, 100);
}

TEST(Stella, OfNodesEqualsItsRulesPlayedEventByEvent) {
  SeenVersions seen;
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomStella random{seed};
    if (random.into_nodes()) expect_the_rules(random, seen);
  }
  EXPECT_GT(seen.fresh, 100);
  EXPECT_GT(seen.stale, 100);
}

/// When the updates of the iterations are all in place.
std::vector<Duration> updates(const Scenario& scenario) { return simulated(scenario, 8).updated; }

TEST(Stella, MoreStalenessIsNeverSlowerUnderArrival) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = testing::RandomStella{seed}.scenario();
    scenario.train.serve = Serve::arrival;
    Duration fresher = Duration::max();
    for (const int staleness : {0, 1, 2}) {
      scenario.train.staleness = staleness;
      const Duration last = simulated(scenario, 8).starts.back();
      EXPECT_LE(last, fresher) << "seed " << seed << ", staleness " << staleness;
      fresher = last;
    }
  }
}

/// Of replicas that are equal, apart, with equal parts and nothing but blocks and one link.
TEST(Stella, DeadlineIsNeverSlowerThanArrivalWithoutStaleness) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random{seed};
    Scenario scenario =
        exchanging({fmt::format("train.parts={}", random.between(1, 6)),
                    fmt::format("costs.forward={}ms", 60 * random.between(1, 5)),
                    fmt::format("train.message={}kB", 100 * random.between(1, 900))});
    const auto deadline = updates(scenario);
    scenario.train.serve = Serve::arrival;
    EXPECT_LE(deadline.back(), updates(scenario).back()) << "seed " << seed;
  }
}

TEST(Stella, AStreamOfOneIterationIsThePlan) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Plan plan = plan_of(testing::RandomStella{seed}.scenario());
    const OpTimes alone = sim::simulate(plan);
    sim::simulate_stream(plan, {1, {}}, [&](const sim::StreamedIteration& done) {
      for (std::size_t i = 0; i < alone.size(); ++i)
        ASSERT_EQ(done.results.times[i].end, alone[i].end) << "seed " << seed << " op " << i;
    });
  }
}

TEST(Stella, OneReplicaSendsNothing) {
  const Plan plan = plan_of(exchanging({"parallel.replicas=1", "datacenter.west.replicas=[]"}));
  EXPECT_FALSE(std::ranges::any_of(plan.ops, [](const Op& op) { return op.kind == OpKind::send; }));
  EXPECT_EQ(report::stream_report(plan, exchanging(), 8).period, 90ms);
}

// Exchanged each to each over links of their own, replicas are told apart by their numbers alone.
TEST(Stella, RenumberingReplicasChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    testing::RandomStella random{seed, true};
    random.rules.ring = false;
    random.rules.shared_link = false;
    random.rules.host_threads = 1000;
    const auto before = updates(random.scenario());
    std::ranges::reverse(random.rules.replicas);
    EXPECT_EQ(updates(random.scenario()), before) << "seed " << seed;
  }
}

TEST(Stella, IsAValidScheduleWhoseBackwardRunsFromTheLastPart) {
  const Scenario scenario = exchanging({"parallel.microbatches=2"});
  Schedule schedule = schedule::generate("stella", scenario);
  EXPECT_EQ(schedule::first_violation(schedule), std::nullopt);
  const auto& row = schedule.rows.front();
  ASSERT_EQ(row.size(), 12U);
  EXPECT_EQ(to_text(row[2]), "F(chunk 0, microbatch 0) part 2/3");
  EXPECT_EQ(to_text(row[3]), "B(chunk 0, microbatch 0) part 2/3");
  std::swap(schedule.rows.front()[3], schedule.rows.front()[4]);
  EXPECT_TRUE(schedule::first_violation(schedule).has_value());
  std::swap(schedule.rows.front()[3], schedule.rows.front()[4]);
  schedule.rows.front()[4].part = 2;
  EXPECT_THAT(schedule::first_violation(schedule)->text, HasSubstr("once more"));
}

TEST(Stella, RefusesInOneLine) {
  const auto said = [](const std::vector<std::string>& set, const char* schedule = "stella") {
    try {
      (void)plan_of(exchanging(set), schedule);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_EQ(said({}), "accepted");
  EXPECT_THAT(said({"parallel.gradient_sync=zero1"}), HasSubstr("gradient_sync = \"compressed\""));
  EXPECT_THAT(said({"parallel.stages=2", "costs.message=1kB"}), HasSubstr("replicas of one stage"));
  EXPECT_THAT(said({"train.local_steps=4", "train.staleness=1"}), HasSubstr("staleness = 1"));
  EXPECT_THAT(said({"train.local_steps=4", "parallel.microbatches=2"}),
              HasSubstr("2 microbatches"));
  EXPECT_THAT(said({"train.local_steps=4"}, "gpipe"), HasSubstr("Use stella"));
  EXPECT_THAT(said({"train.costs.merge=[\"1ms\", \"1ms\", \"1ms\"]"}, "1f1b"),
              HasSubstr("train.costs.merge has 3 values, schedule 1f1b has 1 parts"));
}

// H local steps of 90 ms each, then the exchange of part 0 (25 ms) that the next F waits for.
TEST(Stella, PlaysLocalStepsBetweenTwoExchanges) {
  EXPECT_THAT(starts({"train.local_steps=4"}, 3), ElementsAre(0, 385, 770));
  EXPECT_THAT(starts({"train.local_steps=1"}, 3), ElementsAre(0, 115, 230));
  const report::StreamReport many = stream(exchanging({"train.local_steps=4"}), 4);
  EXPECT_EQ(many.wan_bytes, stream(exchanging(), 4).wan_bytes);
}

// The chunks of a pipeline are parts: with two stages each waits for its own exchange.
TEST(Stella, ChunksOfPipelinesAreParts) {
  const Scenario scenario =
      exchanging({"parallel.stages=2", "parallel.microbatches=4", "costs.message=1kB"});
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "cross-ud", "cross-ud-sub"}) {
    const Plan plan = plan_of(scenario, name);
    const report::StreamReport report = report::stream_report(plan, scenario, 8);
    EXPECT_EQ(report.parts, 2) << name;
    EXPECT_EQ(report.fresh_share, 1) << name;
    EXPECT_GT(report.period, 360ms) << name;
    Scenario stale = scenario;
    stale.train.staleness = 1;
    EXPECT_LT(stream(stale, 8, name).period, report.period) << name;
  }
}

TEST(Stella, TwentyIterationsOf10RanksAnd150PartsHoldFewInMemory) {
  Scenario scenario = exchanging({"train.parts=150", kStale, "train.message=400kB"});
  scenario.parallel.replicas = 10;
  scenario.placement = {DatacenterId{0}, DatacenterId{0}, DatacenterId{0}, DatacenterId{0},
                        DatacenterId{0}, DatacenterId{0}, DatacenterId{1}, DatacenterId{1},
                        DatacenterId{1}, DatacenterId{1}};
  for (auto times : kPartCosts) scenario.train.costs.*times = {50us};
  const Plan plan = plan_of(scenario);
  const auto live = [&](int iterations) {
    return sim::simulate_stream(plan, {iterations, {}}, [](const auto&) {}).most_live_iterations;
  };
  EXPECT_EQ(live(6), live(12));
}

}  // namespace
}  // namespace longhaul
