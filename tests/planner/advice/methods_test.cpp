#include "planner/advice/methods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/advice/advice.hpp"
#include "planner/make_schedule.hpp"
#include "planner/search/makespan.hpp"
#include "scenario/reader/load.hpp"
#include "support/shipped.hpp"

namespace longhaul::planner {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Blocks of 30 ms in all, a million numbers: 4 MB of f32 at 1 MB a second, 5 ms away.
constexpr const char* kThinLink = R"([scenario]
name = "thin"
[parallel]
stages = 1
replicas = 2
microbatches = 1
gradient_sync = "all-reduce"
[costs]
forward = "10ms"
dgrad = "10ms"
wgrad = "10ms"
weights = "4MB"
[[datacenter]]
name = "west"
replicas = [0]
[[datacenter]]
name = "east"
replicas = [1]
[[link]]
between = ["west", "east"]
latency = "5ms"
bandwidth = "8Mbps"
)";

/// Its runs reach a loss of 1 after so many updates.
FamilyMember member_of(const std::string& method, double wan_bytes, int updates, int staleness = 0,
                       int local_steps = 1) {
  return {.method = method,
          .exchange = SetExchange::sites,
          .serve = Serve::deadline,
          .staleness = staleness,
          .local_steps = local_steps,
          .wan_bytes = wan_bytes,
          .curves = {{1, {{updates, 1.0}}}, {2, {{updates, 1.0}}}}};
}

TrainingMethods methods_of_thin_link() {
  return allowed_methods(
      {member_of("none", 1000, 100), member_of("int8", 250, 110),
       member_of("diloco:10", 250, 150, 0, 10), member_of("stella:16", 250, 120, 1)},
      TrainingChange::lossy, 1);
}

/// Of a method of methods_of_thin_link().
Duration time_of_method(std::size_t method, const Scenario& scenario) {
  const Schedule schedule = make_schedule("1f1b", scenario).schedule;
  const TrainingMethods methods = methods_of_thin_link();
  const BesideMethods beside = beside_methods(schedule, scenario, methods).or_throw();
  const MethodPlay play = play_method(schedule, scenario, methods, method, beside).or_throw();
  EXPECT_EQ(play.scenario.train.message, Bytes{1'000'000}) << "a quarter of 4 MB";
  return play.update;
}
Duration time_of_method(std::size_t method) {
  return time_of_method(method, scenario::parse_scenario(kThinLink, "thin.toml"));
}

TEST(Methods, TakeTheTimeOfTheirBytes) {
  EXPECT_EQ(time_of_method(1), milliseconds{30 + 1000 + 5});
  EXPECT_EQ(time_of_method(2), Duration{milliseconds{9 * 30 + 1035}} / 10);
  // The exchange of an iteration goes on beside the next one, which is no help to a link that is
  // never idle.
  EXPECT_EQ(time_of_method(3), milliseconds{1000});
}

// The first ten exchanges of all numbers, 4 s and 5 ms beside the blocks; the other ninety of a
// quarter of them.
TEST(Methods, PayForFirstExchangesThatSendMore) {
  const Scenario scenario = scenario::parse_scenario(kThinLink, "thin.toml");
  const Schedule schedule = make_schedule("1f1b", scenario).schedule;
  FamilyMember onebit = member_of("onebit:warmup=10", 250, 100);
  onebit.early_exchanges = 10;
  onebit.early_wan_bytes = 1000;
  FamilyMember seldom = member_of("diloco:10", 250, 100, 0, 10);
  seldom.early_exchanges = 4;
  seldom.early_wan_bytes = 1000;
  AdviceOptions options;
  options.moves = 20;
  options.threads = 1;
  options.methods =
      allowed_methods({member_of("none", 1000, 100), onebit, seldom}, TrainingChange::lossy, 1);
  const BesideMethods beside = beside_methods(schedule, scenario, *options.methods).or_throw();
  const auto play = [&](std::size_t method) {
    return play_method(schedule, scenario, *options.methods, method, beside).or_throw();
  };
  EXPECT_EQ(play(1).scenario.train.message, Bytes{1'000'000}) << "of a later one";
  EXPECT_EQ(play(1).forecast.early_period, milliseconds{30 + 4000 + 5});
  EXPECT_EQ(play(1).forecast.period, milliseconds{30 + 1000 + 5});
  EXPECT_EQ(play(1).update, Duration{milliseconds{10 * 4035 + 90 * 1035}} / 100);
  // Ten exchanges in all.
  EXPECT_EQ(play(2).update,
            Duration{milliseconds{4 * (9 * 30 + 4035) + 6 * (9 * 30 + 1035)}} / 100);
  const Advice advice = advise(scenario, options).or_throw();
  ASSERT_EQ(advice.best().method, 2U);
  // Gradients of weights before those of inputs, whose 10 ms then lie under each exchange.
  EXPECT_EQ(advice.best().score, Duration{milliseconds{25'050 - 10 * 10}}.count());
}

TEST(Methods, AreLeftOutWhereNoPlanCanExchangeAsTheyDo) {
  FamilyMember fragments = member_of("streaming-diloco:4,2", 250, 100, 0, 4);
  fragments.fragments = 2;
  FamilyMember overlap = member_of("streaming-diloco:4,1,1", 250, 100, 0, 4);
  overlap.overlap = 1;
  const TrainingMethods methods = allowed_methods(
      {member_of("none", 1000, 100), fragments, overlap, member_of("int8+hetero", 250, 100),
       member_of("diloco:4", 250, 100, 1, 4), member_of("int8", 250, 100)},
      TrainingChange::lossy, 1);
  ASSERT_EQ(methods.others.size(), 2U);
  EXPECT_EQ(methods.others[1].method, "int8");
  std::vector<std::string> left_out;
  for (const auto& each : methods.left_out) left_out.push_back(each.method);
  EXPECT_THAT(left_out, ElementsAre("streaming-diloco:4,2", "streaming-diloco:4,1,1", "int8+hetero",
                                    "diloco:4"));
  EXPECT_TRUE(allowed_methods({member_of("none", 1000, 100), fragments}, TrainingChange::stale, 1)
                  .left_out.empty())
      << "it is not allowed";
}

TEST(Methods, ThatAreLateHideAnExchangeButNoBlocks) {
  Scenario scenario = scenario::parse_scenario(kThinLink, "thin.toml");
  for (Link& link : scenario.links) link.bandwidth = Bandwidth{1e12};
  EXPECT_EQ(time_of_method(3, scenario), milliseconds{30});
}

TEST(Methods, CountTheOptimizersLongestStep) {
  Scenario scenario = scenario::parse_scenario(kThinLink, "thin.toml");
  scenario.costs.optimizer = {milliseconds{7}};
  EXPECT_EQ(time_of_method(1, scenario), milliseconds{1035 + 7});
}

TEST(Methods, AreAllowedByWhatTheyChange) {
  const std::vector<FamilyMember> members{
      member_of("none", 1000, 100), member_of("none:lr=1", 1000, 100, 2),
      member_of("none:x", 1000, 100, 0, 5), member_of("int8", 250, 100)};
  EXPECT_EQ(change_of(members[0]), TrainingChange::exact);
  EXPECT_EQ(change_of(members[1]), TrainingChange::stale);
  EXPECT_EQ(change_of(members[2]), TrainingChange::lossy);
  EXPECT_EQ(change_of(members[3]), TrainingChange::lossy);
  const TrainingMethods stale = allowed_methods(members, TrainingChange::stale, 1);
  ASSERT_EQ(stale.others.size(), 2U);
  EXPECT_EQ(stale.others[1].staleness, 2);
  EXPECT_EQ(allowed_methods(members, TrainingChange::lossy, 1).others.size(), 4U);
  const auto refusal = [](const std::vector<FamilyMember>& of, double loss) -> std::string {
    try {
      (void)allowed_methods(of, TrainingChange::lossy, loss);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({member_of("int8", 250, 100)}, 1), HasSubstr("no \"none\""));
  EXPECT_THAT(refusal(members, 0.5), HasSubstr("reaches a loss of 0.5"));
}

// Ten local steps were run, and forty: twenty are half way between, by the knob's logarithm.
TEST(Methods, MayLieBetweenTwoThatRan) {
  const std::vector<FamilyMember> members{member_of("none", 1000, 100),
                                          member_of("diloco:10", 250, 120, 0, 10),
                                          member_of("diloco:40", 250, 140, 0, 40)};
  const TrainingMethods methods = allowed_methods(members, TrainingChange::lossy, 1);
  ASSERT_EQ(methods.others.size(), 6U) << "14, 20 and 28 too";
  EXPECT_EQ(methods.others[4].method, "diloco:20");
  EXPECT_EQ(methods.others[4].local_steps, 20);
  EXPECT_EQ(methods.updates(4), 130);
  EXPECT_EQ(allowed_methods(members, TrainingChange::stale, 1).others.size(), 1U);
}

TEST(Methods, NeedGradientsBetweenDatacenters) {
  const Scenario scenario =
      scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/three-sites.toml"));
  const Schedule schedule = make_schedule("1f1b", scenario).schedule;
  const Result<BesideMethods> beside = beside_methods(schedule, scenario, methods_of_thin_link());
  ASSERT_FALSE(beside);
  EXPECT_THAT(beside.refusal().reason, HasSubstr("no gradients travel between datacenters"));
}

/// By updates until the loss: parts add up, and nothing is worse than plans without methods.
void expect_no_worse_with_methods(const Scenario& scenario) {
  AdviceOptions options;
  options.moves = 100;
  options.threads = 1;
  const Advice exact = advise(scenario, options).or_throw();
  options.methods = methods_of_thin_link();
  const Advice lossy = advise(scenario, options).or_throw();
  EXPECT_LE(lossy.best().score, exact.best().score * 100);
  ASSERT_TRUE(lossy.baseline);
  EXPECT_LE(*lossy.baseline, *exact.baseline * 100);
  Score gained = 0;
  for (const IdeaValue& each : lossy.waterfall) gained += each.added;
  EXPECT_EQ(gained, *lossy.baseline - lossy.best().score);
  for (const AdvisedPlan& plan : lossy.plans) {
    EXPECT_EQ(has(plan.ideas, Idea::method), plan.method.value_or(0) != 0);
    EXPECT_LE(plan.bound.lower_bound, plan.makespan);
    EXPECT_GT(plan.bound.lower_bound, Duration::zero());
    const double updates = *options.methods->updates(plan.method);
    EXPECT_EQ(plan.score, std::llround(updates * static_cast<double>(plan.makespan.count())));
  }
}

TEST(Methods, AreAnIdeaAmongOthers) {
  const auto dp_2dc = [](const std::string& bandwidth) {
    const std::vector<std::string> set{"parallel.microbatches=4", "link.bandwidth=" + bandwidth};
    return scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/dp-2dc.toml"), set);
  };
  for (const char* bandwidth : {"1Gbps", "200Gbps"}) {
    SCOPED_TRACE(bandwidth);
    expect_no_worse_with_methods(dp_2dc(bandwidth));
  }
  AdviceOptions options;
  options.moves = 100;
  options.threads = 1;
  options.methods = methods_of_thin_link();
  const Advice thin = advise(dp_2dc("1Gbps"), options).or_throw();
  ASSERT_TRUE(thin.best().method) << "a link on which sums take a minute";
  EXPECT_EQ(*thin.best().method, 2U) << "ten local steps";
  const Advice thick = advise(dp_2dc("100Tbps"), options).or_throw();
  EXPECT_EQ(thick.best().method.value_or(0), 0U) << "more updates for nothing";
}

// The same bytes, updates and exchange as exact sums have: it brings nothing.
TEST(Methods, GainNothingByAnotherName) {
  AdviceOptions options;
  options.moves = 20;
  options.threads = 1;
  for (const char* name : {"levels-2dc", "stella-gpt2", "dp-2dc"}) {
    SCOPED_TRACE(name);
    const std::vector<std::string> set{"parallel.microbatches=2"};
    Scenario scenario = scenario::load_scenario(
        testing::in_checkout(std::string{"benchmarks/scenarios/"} + name + ".toml"),
        std::span{set}.first(name == std::string_view{"dp-2dc"} ? 1 : 0));
    scenario.parallel.gradient_sync = GradientSync::all_reduce;
    options.methods = allowed_methods(
        {member_of("none", 1000, 100), member_of("copy", scenario.model ? 500 : 1000, 100)},
        TrainingChange::lossy, 1);
    const Advice advice = advise(scenario, options).or_throw();
    for (const IdeaValue& each : advice.waterfall) {
      if (each.idea == Idea::method) {
        EXPECT_EQ(each.alone, 0);
      }
    }
  }
}

// A deadline that exact sums miss, and ten local steps do not.
TEST(Methods, MeetADeadlineThatSumsMiss) {
  const Scenario scenario = scenario::parse_scenario(kThinLink, "thin.toml");
  AdviceOptions options;
  options.moves = 20;
  options.threads = 1;
  options.longest = milliseconds{1000};
  EXPECT_FALSE(advise(scenario, options));
  options.methods = methods_of_thin_link();
  const Advice advice = advise(scenario, options).or_throw();
  EXPECT_EQ(advice.best().method, 2U);
  EXPECT_FALSE(advice.baseline);
}

}  // namespace
}  // namespace longhaul::planner
