// Training and prefills played with other times than the plan's.
#include "prefill/play/play.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_file.hpp"
#include "cli/support.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/make_schedule.hpp"
#include "prefill/play/played_training.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::test {
namespace {

using prefill::PlayedTimes;

PlayedTimes calm_times() {
  return {[](OpId, DeviceId, int) { return 1.0; },
          [](std::int64_t, Duration estimate) { return estimate; }};
}

class NothingToDo : public prefill::IdleGpu {
public:
  Offer next(std::int32_t, Duration, const prefill::PlayedTraining&) override { return {}; }
  void block_begins(std::int32_t, Duration) override {}
  void ended(std::int32_t, Duration, Duration, bool) override {}
  [[nodiscard]] Duration stops_at(std::int32_t, Duration, Duration end, Duration) const override {
    return end;
  }
};

TEST(PlayedTraining, IsTheSimulationWhereNothingDiffers) {
  for (const Scenario& scenario :
       {uniform_scenario(4, 8, 100ns), spread(uniform_scenario(4, 8, 100ns), 2, 70ns, 30ns),
        spread(uniform_scenario(6, 12, 100ns), 3, 450ns, 130ns)})
    for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv"}) {
      const Schedule schedule = schedule::generate(name, scenario);
      const Plan plan = planner::lower_reported(schedule, scenario, Arrangement::decoupled).plan;
      const OpTimes times = sim::simulate(plan);
      const prefill::TrainingGraph graph{plan, times, scenario.training_ranks()};
      const PlayedTimes calm = calm_times();
      NothingToDo nothing;
      prefill::PlayedTraining played{graph, calm, nothing};
      played.run(3);
      EXPECT_EQ(played.wall(), 3 * graph.makespan()) << name;
      for (std::size_t i = 0; i < graph.nodes().size(); ++i)
        if (graph.nodes()[i].rank >= 0) {
          EXPECT_EQ(played.starts()[i], graph.nodes()[i].planned) << name;
        }
    }
}

/// GPipe of 2 stages and 2 microbatches, F 100 ms and B 200 ms.
class PlayedPrefill : public ::testing::Test {
protected:
  [[nodiscard]] nlohmann::json run(const std::string& requests, std::vector<std::string> more) {
    const std::string file = directory_.write("requests.jsonl", requests);
    more.insert(more.begin(),
                {"prefill", scenario_, "--schedule", "gpipe", "--requests", file, "--json"});
    const Outcome found = longhaul_run(more);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.code == 0 ? found.json()["schedules"][0] : nlohmann::json{};
  }

  TempDir directory_;
  std::string profile_ =
      directory_.write("times.csv", "tokens,time_ns\n1,1000000\n400,400000000\n");
  std::string scenario_ =
      directory_.write("two.toml",
                       "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
                       "[parallel]\nstages = 2\nmicrobatches = 2\n[[datacenter]]\nname = \"a\"\n"
                       "stages = [0, 1]\n[run]\niterations = 20\n"
                       "[prefill]\nprofile = \"times.csv\"\n");
  static constexpr const char* kLonger =
      "{\"timestamp\": 200, \"input_length\": 100, \"takes_ns\": 350000000}\n";
};

TEST_F(PlayedPrefill, OneThatTakesLongerDelaysTwoBlocksAndBindsOne) {
  const nlohmann::json json = run(kLonger, {"--policy", "earliest"});
  EXPECT_EQ(json["training_delay"]["total_ns"], 50'000'000);
  EXPECT_EQ(json["training_delay"]["blocks_late"], 2);
  EXPECT_EQ(json["training_delay"]["blocks_bound_by_prefill"], 1);
  EXPECT_EQ(json["ttft_ns"]["max"], 350'000'000);
  EXPECT_EQ(json["requests"]["late"], 1);
}

TEST_F(PlayedPrefill, OneThatIsKilledDelaysNoOneByMoreThanALayer) {
  const nlohmann::json json =
      run(kLonger, {"--overrun", "kill", "--set", "prefill.model=llama3-8b"});
  EXPECT_EQ(json["requests"]["killed"], 1);
  EXPECT_EQ(json["requests"]["done"], 0);
  EXPECT_EQ(json["requests"]["unfinished"], 1);
  EXPECT_LE(json["training_delay"]["total_ns"], 350'000'000 / 32 + 1);
}

TEST_F(PlayedPrefill, OneThatIsKilledIsUnfinishedNotRefused) {
  const std::string file = directory_.write("requests.jsonl", kLonger);
  const std::string out = directory_.path("answers.csv");
  const Outcome found =
      longhaul_run({"prefill", scenario_, "--schedule", "gpipe", "--requests", file, "--overrun",
                    "kill", "--set", "prefill.model=llama3-8b", "--placements-out", out});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, ::testing::HasSubstr("gpipe: 0 refused, 1 unfinished\n"));
  EXPECT_THAT(read_text_file(out), ::testing::HasSubstr("0,200000000,100,placed,,0,200000000,"));
}

// Places in the load and numbers of requests differ.
TEST_F(PlayedPrefill, AWindowAndCopiesKeepWhatALineTakes) {
  const std::string before = "{\"timestamp\": 100, \"input_length\": 100}\n";
  const std::string after = "{\"timestamp\": 900, \"input_length\": 100}\n";
  EXPECT_EQ(run(before + kLonger + after,
                {"--policy", "earliest", "--window", "150ms,"})["ttft_ns"]["max"],
            500'000'000)
      << "it arrives at 50 ms, waits for 150, and takes 350 ms instead of 100";
  const std::string quick =
      "{\"timestamp\": 0, \"input_length\": 100, \"takes_ns\": 1}\n"
      "{\"timestamp\": 1, \"input_length\": 100, \"takes_ns\": 1}\n";
  const nlohmann::json json = run(quick, {"--copies", "3", "--signals", "plan"});
  EXPECT_EQ(json["requests"]["done"], 6);
  EXPECT_DOUBLE_EQ(json["ttft_parts_ns"]["compute"].get<double>(), 1);
}

// The file of a backlog is what the window leaves of it.
TEST_F(PlayedPrefill, ABacklogOfAWindowKeepsWhatALineTakes) {
  const std::string before = "{\"timestamp\": 0, \"input_length\": 100}\n";
  const nlohmann::json json = run(before + kLonger, {"--backlog", "1", "--window", "150ms,"});
  EXPECT_GT(json["requests"]["done"], 10);
  EXPECT_DOUBLE_EQ(json["ttft_parts_ns"]["compute"].get<double>(), 350e6);
}

TEST_F(PlayedPrefill, EachModelHasItsNoise) {
  scenario_ =
      directory_.write("models.toml",
                       "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
                       "[parallel]\nstages = 2\nmicrobatches = 2\n[[datacenter]]\nname = \"a\"\n"
                       "stages = [0, 1]\n[[prefill]]\nname = \"calm\"\nprofile = \"times.csv\"\n"
                       "[[prefill]]\nname = \"rough\"\nprofile = \"times.csv\"\nnoise = 0.1\n");
  const auto compute = [&](const char* model) {
    return run(std::string{"{\"timestamp\": 200, \"input_length\": 100, \"model\": \""} + model +
                   "\"}\n",
               {"--policy", "earliest"})["ttft_parts_ns"]["compute"]
        .get<double>();
  };
  EXPECT_DOUBLE_EQ(compute("calm"), 100e6);
  EXPECT_NE(compute("rough"), 100e6);
}

// Three of 100 ms, at once: of the first model in cells 0 and 1, of the second on a pipeline that
// has the number of cell 1's, of cells 2 and 3.
TEST_F(PlayedPrefill, KeepsTwoModelsPipelinesOfOneNumberApart) {
  scenario_ =
      directory_.write("models.toml",
                       "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
                       "[parallel]\nstages = 2\nmicrobatches = 2\nreplicas = 4\n"
                       "gradient_sync = \"none\"\n[[datacenter]]\nname = \"a\"\nstages = [0, 1]\n"
                       "[[prefill]]\nname = \"one\"\nprofile = \"times.csv\"\n"
                       "[[prefill]]\nname = \"two\"\nstages = 2\nprofile = \"times.csv\"\n");
  const std::string asks = "{\"timestamp\": 150, \"input_length\": 100";
  const std::string requests = asks + "}\n" + asks + "}\n" + asks + ", \"model\": \"two\"}\n";
  for (const char* const signals : {"plan", "both"}) {
    const nlohmann::json json = run(requests, {"--policy", "earliest", "--signals", signals});
    const double all = 8 * 900e6 * json["iterations"].get<double>();
    EXPECT_EQ(json["period_ns"], 900'000'000);
    EXPECT_EQ(json["requests"]["done"], 3);
    EXPECT_NEAR(json["utilisation"]["prefill"].get<double>() * all, 300e6, 1) << signals;
    EXPECT_EQ(json["ttft_ns"]["max"], 150'000'000);
  }
}

TEST_F(PlayedPrefill, NoOneIsDelayedWhereEstimatesHold) {
  std::string requests;
  for (int i = 0; i < 60; ++i)
    requests += "{\"timestamp\": " + std::to_string(50 * i) +
                ", \"input_length\": " + std::to_string(20 + 7 * (i % 11)) + "}\n";
  for (const char* const signals : {"plan", "both"}) {
    const nlohmann::json json = run(requests, {"--signals", signals});
    EXPECT_EQ(json["training_delay"]["total_ns"], 0) << signals;
    EXPECT_EQ(json["training_delay"]["blocks_bound_by_prefill"], 0);
    EXPECT_EQ(json["requests"]["done"], 60);
    std::int64_t idle = 0;
    for (const auto& [cause, time] : json["idle_ns"].items()) idle += time.get<std::int64_t>();
    const double all = 2.0 * 900e6 * json["iterations"].get<double>();
    EXPECT_NEAR((1 - json["utilisation"]["total"].get<double>()) * all, static_cast<double>(idle),
                1);
  }
}

// Prompts of 100 ms that take 290 fill more than any that take what they are estimated.
TEST_F(PlayedPrefill, KnowsNoBoundOfThePlanWhereTimesDiffer) {
  std::string requests;
  for (int i = 0; i < 40; ++i)
    requests += "{\"timestamp\": " + std::to_string(450 * i) +
                ", \"input_length\": 100, \"takes_ns\": 290000000}\n";
  const nlohmann::json share = run(requests, {})["utilisation"];
  EXPECT_LE(share["total"].get<double>(), share["upper_bound"].get<double>() + 1e-9);
  EXPECT_EQ(share["bound_reason"], "bubbles");
  for (const char* const none : {"whole_prompts", "mix", "flow"})
    EXPECT_TRUE(share["bounds"][none].is_null()) << none;
}

TEST_F(PlayedPrefill, CarelessnessSlowsTraining) {
  const std::string requests = "{\"timestamp\": 0, \"input_length\": 130}\n";
  const nlohmann::json careless = run(requests, {"--policy", "careless", "--backlog", "8"});
  EXPECT_GT(careless["training_delay"]["total_ns"], 20 * std::int64_t{900'000'000} / 50);
  const nlohmann::json fair = run(requests, {"--backlog", "8", "--set", "run.noise=0.05"});
  EXPECT_LT(fair["training_delay"]["total_ns"], careless["training_delay"]["total_ns"]);
}

}  // namespace
}  // namespace longhaul::test
