#include "api/longhaul.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/shipped.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

/// P = 2, M = 2, F = 10 ms, D = 20 ms, W = 30 ms, 5 ms between the two datacenters, 1 ms a message.
const char* const kTwoSites = R"(
[scenario]
name = "two-sites"
[parallel]
stages = 2
microbatches = 2
[costs]
forward = "10ms"
dgrad = "20ms"
wgrad = "30ms"
activation = "1MiB"
message = "1MB"
[[datacenter]]
name = "west"
stages = "0"
[[datacenter]]
name = "east"
stages = "1"
[[link]]
between = ["west", "east"]
latency = "5ms"
bandwidth = "8Gbps"
)";

Scenario two_sites() { return Scenario::parse(kTwoSites); }

template <typename Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Api, TellsWhatAScenarioHolds) {
  const Scenario scenario = two_sites();
  EXPECT_EQ(scenario.name(), "two-sites");
  EXPECT_EQ(scenario.stages(), 2);
  EXPECT_EQ(scenario.replicas(), 1);
  EXPECT_EQ(scenario.microbatches(), 2);
  EXPECT_EQ(scenario.datacenters(), (std::vector<std::string>{"west", "east"}));
  EXPECT_EQ(scenario.placement(), (std::vector<int>{0, 1}));
}

TEST(Api, OverridesAndErrorsAreThoseOfTheTool) {
  EXPECT_EQ(Scenario::parse(kTwoSites, {"parallel.microbatches=7"}).microbatches(), 7);
  EXPECT_THAT(error_of([] { static_cast<void>(Scenario::parse("nam = 1")); }),
              HasSubstr("scenario:1:1"));
  EXPECT_THAT(error_of([] { static_cast<void>(Scenario::load("no/such.toml")); }),
              HasSubstr("no/such.toml"));
  EXPECT_THAT(error_of([] { static_cast<void>(make_schedule("zbh1", two_sites())); }),
              HasSubstr("zb-h1"));
}

// By hand, in ms: F00 0-10, message 10-11, +5, F10 16-26, B10 26-76, message 76-77, +5, B00 82-132;
// F01 10-20, message 20-21, F11 76-86 (after B10: 1F1B), B11 86-136, 137, 142, B01 142-192.
TEST(Api, SimulatesToTheNanosecond) {
  const Prediction prediction = simulate(make_schedule("1f1b", two_sites()), two_sites());
  EXPECT_EQ(prediction.makespan_ns, 192'000'000);
  EXPECT_GE(prediction.makespan_ns, prediction.lower_bound_ns);
  EXPECT_GT(prediction.lower_bound_ns, 0);
  ASSERT_EQ(prediction.bubble_ratio.size(), 2U);
  EXPECT_DOUBLE_EQ(prediction.bubble_ratio[0], 1 - 120.0 / 192);
  EXPECT_EQ(prediction.peak_activation_bytes, (std::vector<std::int64_t>{2 << 20, 1 << 20}));
  EXPECT_TRUE(prediction.over_budget.empty());
  EXPECT_GT(prediction.wan_crossings_on_critical_path, 0);
  const auto last = std::ranges::max(prediction.rows, {}, &Row::end_ns);
  EXPECT_EQ(last.kind, "B");
  EXPECT_EQ(last.rank, 0);
  EXPECT_EQ(last.microbatch, 1);
  EXPECT_EQ(std::ranges::count(prediction.rows, "send", &Row::kind), 4);
  // Decoupled receives are posted early; grouped ones can only be later.
  EXPECT_GE(simulate(make_schedule("1f1b", two_sites()), two_sites(), Comm::grouped).makespan_ns,
            prediction.makespan_ns);
}

TEST(Api, FilesComeBackAsTheyWere) {
  const Schedule made = make_schedule("zb-h1", two_sites());
  const Schedule read = Schedule::from_csv(made.csv());
  EXPECT_EQ(read.csv(), made.csv());
  EXPECT_EQ(read.name(), "zb-h1");
  EXPECT_EQ(read.devices(), 2);
  EXPECT_EQ(read.chunks(), 2);
  EXPECT_EQ(read.device_of_chunk(), (std::vector<int>{0, 1}));
  EXPECT_EQ(read.row(1)[0], "1F0");
  EXPECT_EQ(Schedule::from_csv(made.pytorch_csv(), "torch").row(0), made.row(0));
  EXPECT_THAT(error_of([&] { static_cast<void>(read.row(2)); }), HasSubstr("device 2"));
}

TEST(Api, SaysWhatIsWrongWithASchedule) {
  EXPECT_EQ(why_invalid(make_schedule("1f1b", two_sites()), two_sites()), std::nullopt);
  const Schedule lacks = Schedule::from_csv("0F0,0B0\n1F0\n");
  EXPECT_THAT(why_invalid(lacks), Optional(HasSubstr("chunk 1")));
  const Schedule backwards = Schedule::from_csv("0B0,0F0\n1F0,1B0\n");
  EXPECT_NE(why_invalid(backwards), std::nullopt);
  EXPECT_THAT(error_of([&] { static_cast<void>(simulate(lacks, two_sites())); }),
              ::testing::Not("no error"));
  // One microbatch too many in flight: can be simulated, and is said.
  const Scenario tight = Scenario::parse(kTwoSites, {"memory.budget=0.5"});
  const Schedule gpipe = make_schedule("gpipe", tight);
  EXPECT_NE(why_invalid(gpipe, tight), std::nullopt);
  EXPECT_FALSE(simulate(gpipe, tight).over_budget.empty());
}

/// Chunks that go round three sites in a chain pass from the last straight back to the first.
TEST(Api, RefusesAScheduleThatMissesALink) {
  const Scenario chain = Scenario::parse(R"(
[parallel]
stages = 3
microbatches = 6
[costs]
forward = "10ms"
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "middle"
stages = [1]
[[datacenter]]
name = "east"
stages = [2]
[[link]]
between = ["west", "middle"]
latency = "5ms"
[[link]]
between = ["middle", "east"]
latency = "5ms"
)");
  EXPECT_EQ(why_invalid(make_schedule("1f1b", chain), chain), std::nullopt);
  EXPECT_THAT(error_of([&] { (void)make_schedule("interleaved-1f1b", chain); }),
              HasSubstr("no link from"));
}

TEST(Api, SearchesRepeatWithASeedAndMoves) {
  const Search search{0, 2'000, 3, 1};
  const Schedule first = make_schedule("best", two_sites(), Comm::decoupled, search);
  EXPECT_EQ(make_schedule("best", two_sites(), Comm::decoupled, search).csv(), first.csv());
  EXPECT_LE(simulate(first, two_sites()).makespan_ns, 192'000'000);
  EXPECT_THAT(
      error_of([] {
        static_cast<void>(make_schedule("best", two_sites(), Comm::decoupled, {-1, {}, 1, 1}));
      }),
      HasSubstr("-1 seconds"));
  for (const Search& wrong : {Search{0, -1, 1, 1}, Search{0, 1, 1, -2}})
    EXPECT_THAT(error_of([&] {
                  static_cast<void>(make_schedule("best", two_sites(), Comm::decoupled, wrong));
                }),
                HasSubstr("neither is negative"));
}

TEST(Api, ASearchKeepsToPlacements) {
  Search search{0, 200, 1, 1};
  search.placement = "ud";
  const Schedule one_each = make_schedule("best", two_sites(), Comm::decoupled, search);
  EXPECT_EQ(one_each.device_of_chunk(), (std::vector<int>{0, 1}));
  search.placement = "wave";
  const Schedule wave = make_schedule("best", two_sites(), Comm::decoupled, search);
  EXPECT_EQ(wave.device_of_chunk(), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_FALSE(wave.pytorch_csv().empty());
  search.placement = "ud,loop,waev";
  EXPECT_THAT(error_of([&] {
                static_cast<void>(make_schedule("best", two_sites(), Comm::decoupled, search));
              }),
              HasSubstr("Did you mean \"wave\"?"));
}

// Every name makes a valid schedule on a scenario that ships, or says why it cannot.
TEST(Api, MakesEverySchedule) {
  const Scenario scenario =
      Scenario::load(testing::in_checkout("benchmarks/scenarios/m70-2dc.toml"));
  int made = 0;
  for (const std::string& name : schedule_names()) {
    if (name.ends_with("-opt")) continue;  // starts a solver of its own
    const std::string why = error_of([&] {
      const Schedule schedule = make_schedule(name, scenario, Comm::decoupled, {0, 100, 1, 1});
      EXPECT_EQ(why_invalid(schedule), std::nullopt) << name;
      ++made;
    });
    EXPECT_FALSE(why.empty());
  }
  EXPECT_GE(made, 15);
}

/// As the tool answers, and in its words.
TEST(Api, AsksTheToolsCommands) {
  EXPECT_THAT(commands(),
              ::testing::IsSupersetOf({"advise", "bubbles", "collective", "plan", "predict",
                                       "prefill", "profile needed", "tune"}));
  const std::string scenario = testing::in_checkout("benchmarks/scenarios/m70-2dc.toml");
  const Answer answer = ask({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_TRUE(answer.yes);
  const Scenario loaded = Scenario::load(scenario);
  const auto makespan = simulate(make_schedule("1f1b", loaded), loaded).makespan_ns;
  EXPECT_THAT(answer.json, HasSubstr("\"makespan_ns\": " + std::to_string(makespan)));
  EXPECT_FALSE(ask({"check", scenario, "--set", "memory.capacity=1GiB"}).yes);
  EXPECT_THAT(error_of([] { (void)ask({"simulat"}); }), HasSubstr("Did you mean \"simulate\"?"));
  EXPECT_THAT(error_of([&] {
                (void)ask({"simulate", scenario, "--schedule", "1f1c"});
              }),
              ::testing::StartsWith("There is no schedule"));
}

/// The commands that docs/python.md shows of Python, each with a key of its answer.
TEST(Api, AsksEachSystem) {
  const auto shipped = [](const std::string& name) {
    return testing::in_checkout("benchmarks/" + name);
  };
  const testing::ScratchDirectory scratch;
  const std::string probes = (scratch.path() / "probes.csv").string();
  std::ofstream{probes} << "model,version,batch,compression_rate,g\nvit_b_16,v2,64,0,-0.03\n"
                           "vit_b_16,v2,900,0.5,0.06\nvit_b_16,v2,2000,0.99,0.11\n";
  const std::vector<std::pair<std::vector<std::string>, const char*>> asked{
      {{"predict", shipped("rows/published-runs.csv")}, "\"iteration_ns\""},
      {{"plan", shipped("scenarios/atlas-5dc.toml"), "--set", "parallel.cell=2"},
       "\"iteration_ns\""},
      {{"collective", shipped("scenarios/dp-2dc.toml"), "--kind", "all-reduce", "--bytes", "64MiB"},
       "\"algorithm\""},
      {{"prefill", shipped("scenarios/bubbletea.toml"), "--schedule", "atlas", "--requests",
        shipped("requests/prompts.csv"), "--backlog", "64", "--set", "run.iterations=2"},
       "\"utilisation\""},
      {{"tune", shipped("scenarios/stella-fig14.toml"), "--probes", probes, "--bandwidth", "1Gbps"},
       "\"settings\""},
      {{"advise", shipped("scenarios/dp-2dc.toml"), "--search-moves", "100"}, "\"waterfall\""}};
  for (const auto& [words, key] : asked) {
    SCOPED_TRACE(words.front());
    const Answer answer = ask(words);
    EXPECT_TRUE(answer.yes);
    EXPECT_THAT(answer.json, HasSubstr(key));
  }
}

}  // namespace
}  // namespace longhaul::api
