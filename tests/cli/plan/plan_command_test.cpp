#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// a and b, 12 and `second` GPUs, 5 ms and 5 Gbps apart; P = 4, M = 8, C = 1.
std::string sites(const std::string& second, const std::string& link = R"([[link]]
between = ["a", "b"]
latency = "5ms"
bandwidth = "5Gbps"
)") {
  return R"([scenario]
name = "two-sites"
[parallel]
stages = 4
microbatches = 8
cell = 1
gradient_sync = "all-reduce"
[costs]
forward = "10ms"
backward = "20ms"
message = "1MiB"
weights = "8MiB"
[[datacenter]]
name = "a"
gpus = 12
price = 2.0
egress_price = 0.1
[[datacenter]]
name = "b"
price = 1.0
gpus = )" +
         second + "\n" + link;
}

class PlanCommand : public ::testing::Test {
protected:
  Outcome plan(const std::string& text, std::vector<std::string> more) {
    std::vector<std::string> arguments{"plan", dir_.write("s.toml", text)};
    if (std::ranges::find(more, "--schedule") == more.end())
      arguments.insert(arguments.end(), {"--schedule", "1f1b"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return longhaul_run(arguments);
  }
  void expect_refused(const std::string& text, std::vector<std::string> more,
                      const std::string& why) {
    const Outcome run = plan(text, std::move(more));
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(why));
  }

private:
  TempDir dir_;
};

TEST_F(PlanCommand, PrintsATableAndTheBest) {
  const Outcome run = plan(sites("12"), {});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("two-sites: algorithm 1 with 1f1b, C=1"));
  EXPECT_THAT(run.out, HasSubstr("a 2 > b 2"));
  EXPECT_THAT(run.out, HasSubstr("best by throughput: 1f1b, D=6 cells of C=1"));
  EXPECT_THAT(run.out, HasSubstr("best by time: 1f1b, D=1"));
}

TEST_F(PlanCommand, JsonHoldsEveryPlan) {
  const Outcome run = plan(sites("12"), {"--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto answer = run.json();
  ASSERT_EQ(answer["plans"].size(), 6U);
  // D = 1 in datacenter a: (M + P - 1) (F + B) = 330 ms.
  EXPECT_EQ(answer["plans"][0]["pipeline_ns"], 330'000'000);
  EXPECT_EQ(answer["plans"][5]["way"][1]["gpus"], 12);
  const double throughput = answer["plans"][5]["iterations_per_second"];
  EXPECT_NEAR(throughput, 6e9 / answer["plans"][5]["iteration_ns"].get<double>(), 1e-9);
  EXPECT_EQ(answer["best"]["throughput"], 5);
  EXPECT_GT(answer["plans"][5]["egress_dollars"], 0);
}

TEST_F(PlanCommand, SaysWhenADatacenterIsBetterLeftOut) {
  const Outcome run = plan(sites("4"), {"--set", "link.all.latency=3s"});
  EXPECT_EQ(run.code, 2);  // the file has no link between all
  const Outcome far = plan(sites("4"), {"--set", "link.a-b.latency=3s"});
  ASSERT_EQ(far.code, 0) << far.err;
  EXPECT_THAT(far.out, HasSubstr("leaving b out is better"));
}

TEST_F(PlanCommand, SaysOfEachDWhichLinkIsMissing) {
  const auto answer = plan(sites("12", ""), {"--json"}).json();
  ASSERT_EQ(answer["plans"].size(), 6U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(answer["plans"][i]["feasible"]) << i;
  for (std::size_t i = 3; i < 6; ++i)
    EXPECT_THAT(std::string{answer["plans"][i]["reason"]}, HasSubstr("no link from a to b")) << i;
}

// A third site over a slow link asks for C = 84: 336 GPUs, and there are 32.
TEST_F(PlanCommand, AThirdSiteTakesNoPlanAway) {
  const std::string third = sites("12") + R"([[datacenter]]
name = "c"
price = 1.0
gpus = 8
[[link]]
between = ["a", "c"]
latency = "5ms"
bandwidth = "10Mbps"
[[link]]
between = ["b", "c"]
latency = "5ms"
bandwidth = "10Mbps"
)";
  std::string text = third;
  text.erase(text.find("cell = 1\n"), 9);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--search", "exact"}, {"--break-even", "a,c"}}) {
    const Outcome without = plan(text, {"--set", "datacenter.c.gpus=0"});
    ASSERT_EQ(without.code, 0) << without.err;
    const Outcome with = plan(text, more);
    EXPECT_EQ(with.code, 0) << with.err;
  }
}

TEST_F(PlanCommand, GivesTheReasonWhereThereIsNone) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--search", "exact"}, {"--break-even", "a,b"}}) {
    std::vector<std::string> words = more;
    words.insert(words.end(), {"--set", "parallel.stages=30"});
    expect_refused(sites("12"), words, "have 24 GPUs (a, b), and one DP-cell needs 30");
  }
  expect_refused(sites("12", ""), {"--set", "parallel.stages=20"}, "no link from a to b");
  expect_refused(sites("12", ""), {"--set", "parallel.stages=20", "--search", "exact"}, "link");
}

TEST_F(PlanCommand, TakesTheFastestOfSeveralSchedules) {
  const auto best = [&](const std::string& schedules) {
    const Outcome run = plan(sites("12"), {"--schedule", schedules, "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json();
  };
  const auto one = best("1f1b"), other = best("zb-h1"), both = best("1f1b,zb-h1");
  for (std::size_t i = 0; i < 6; ++i) {
    const auto time = [&](const auto& answer) {
      return answer["plans"][i]["iteration_ns"].template get<std::int64_t>();
    };
    EXPECT_EQ(time(both), std::min(time(one), time(other))) << i;
  }
}

TEST_F(PlanCommand, SweepsStartAtNoGpusAtAll) {
  const Outcome run = plan(sites("12"), {"--sweep", "datacenter.b.gpus=0:12:4", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto sweep = run.json()["sweep"];
  ASSERT_EQ(sweep.size(), 4U);
  EXPECT_EQ(sweep[0]["values"]["datacenter.b.gpus"], "0");
  EXPECT_EQ(sweep[0]["best"]["cells"], 3);
  EXPECT_EQ(sweep[3]["best"]["cells"], 6);
}

TEST_F(PlanCommand, SweepsOfOtherValuesAreGrids) {
  const Outcome run = plan(sites("12"), {"--sweep", "link.a-b.latency=0ms:20ms:10ms", "--sweep",
                                         "datacenter.b.gpus=4:12:8"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("20ms"));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 2 + 2 + 6);
}

TEST_F(PlanCommand, SearchReportsWhatItPruned) {
  const Outcome run =
      plan(sites("12"), {"--search", "exact", "--cell", "1,2", "--objective", "cost", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto search = run.json()["search"];
  std::int64_t pruned = 0;
  for (const auto& count : search["pruned"]) pruned += count.get<std::int64_t>();
  EXPECT_EQ(search["evaluated"].get<std::int64_t>() + pruned, search["candidates"]);
}

TEST_F(PlanCommand, FindsBreakEven) {
  const Outcome run =
      plan(sites("12"), {"--break-even", "a,b", "--latencies", "0ms,100s", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto points = run.json()["break_even"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0]["verdict"], "found");
  EXPECT_EQ(points[1]["verdict"], "never");
  EXPECT_TRUE(points[1]["bandwidth_bits_per_second"].is_null());
}

TEST_F(PlanCommand, RefusesBadInput) {
  const std::string good = sites("12");
  expect_refused(good, {"--set", "parallel.stages=30"}, "one DP-cell needs 30");
  expect_refused(good, {"--sweep", "datacenter.b.gpsu=0:12:4"}, "gpsu");
  expect_refused(good, {"--sweep", "datacenter.c.gpus=0:12:4"}, "no datacenter \"c\"");
  expect_refused(good, {"--sweep", "datacenter.b.gpus=-4:12:4"}, "-4 is no number of GPUs");
  expect_refused(good, {"--sweep", "datacenter.b.gpus=12:0:4"}, "nothing lies in 12:0:4");
  expect_refused(good, {"--sweep", "datacenter.b.gpus=0:12:0"}, "nothing lies in");
  expect_refused(good, {"--sweep", "datacenter.b.gpus=0:1e9:1"}, "1000 is the limit");
  expect_refused(good, {"--sweep", "datacenter.b.gpus"}, "PATH=FROM:TO:STEP");
  expect_refused(good, {"--order", "prize"}, "Did you mean \"price\"?");
  expect_refused(good, {"--max-cells", "0"}, "--max-cells");
  expect_refused(good, {"--cell", "1,2"}, "--search exact");
  expect_refused(good, {"--break-even", "a"}, "does not name two datacenters");
  expect_refused(good, {"--break-even", "a,x"}, "no datacenter \"x\"");
}

TEST_F(PlanCommand, RefusesOptionsThatHaveNoEffect) {
  const std::string good = sites("12");
  expect_refused(good, {"--limit", "5"}, "--search exact");
  expect_refused(good, {"--objective", "cost"}, "--search exact or --sweep");
  expect_refused(good, {"--latencies", "5ms"}, "--break-even");
  expect_refused(good, {"--tolerance", "0.01"}, "--break-even");
  expect_refused(good, {"--search", "exact", "--order", "price"}, "looks through all orders");
  expect_refused(good, {"--search", "exact", "--break-even", "a,b"}, "algorithm 1");
}

TEST_F(PlanCommand, NeedsTheNumberOfGpus) {
  std::string text = sites("12");
  text.erase(text.find("gpus = 12"), 9);
  expect_refused(text, {}, "does not say how many GPUs");
}

}  // namespace
}  // namespace longhaul::test
