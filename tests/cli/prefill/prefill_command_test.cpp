#include <algorithm>
#include <filesystem>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_file.hpp"
#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// GPipe of 2 stages and 2 microbatches, F 100 ms and B 200 ms: each device has one bubble of 300
/// ms in 900, device 0 from 200 ms, device 1 from 700. A token takes 1 ms.
class PrefillCommand : public ::testing::Test {
protected:
  [[nodiscard]] Outcome run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"prefill", scenario_, "--schedule", "gpipe"});
    return longhaul_run(more);
  }

  TempDir directory_;
  std::string profile_ =
      directory_.write("times.csv", "tokens,time_ns\n1,1000000\n400,400000000\n");
  std::string scenario_ =
      directory_.write("two.toml",
                       "[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\nmessage = \"1MB\"\n"
                       "[parallel]\nstages = 2\nmicrobatches = 2\n[[datacenter]]\nname = \"a\"\n"
                       "stages = [0, 1]\n[run]\niterations = 4\n"
                       "[prefill]\nprofile = \"times.csv\"\nguard = \"10ms\"\n");
  std::string requests_ = directory_.write("requests.jsonl",
                                           "{\"timestamp\": 150, \"input_length\": 100}\n"
                                           "{\"timestamp\": 150, \"input_length\": 300}\n"
                                           "{\"timestamp\": 160, \"input_length\": 401}\n"
                                           "{\"timestamp\": 170, \"input_length\": 150}\n");
};

TEST_F(PrefillCommand, ShowsTheBubbles) {
  const Outcome found = longhaul_run({"bubbles", scenario_, "--schedule", "gpipe", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json()["schedules"][0];
  EXPECT_EQ(json["period_ns"], 900'000'000);
  EXPECT_DOUBLE_EQ(json["busy_ratio"].get<double>(), 1200.0 / 1800);
  ASSERT_EQ(json["bubbles"].size(), 2U);
  EXPECT_EQ(json["bubbles"][0]["start_ns"], 200'000'000);
  EXPECT_EQ(json["bubbles"][0]["end_ns"], 500'000'000);
  EXPECT_EQ(json["bubbles"][1]["end_ns"], 1'000'000'000) << "over the iteration's end";
  EXPECT_EQ(json["idle_ns_by_length"][0]["idle_ns"], 600'000'000);
}

TEST_F(PrefillCommand, AnswersAStreamAsItAnswersAllRequests) {
  const std::string out = directory_.path("stream.csv"), whole = directory_.path("whole.csv");
  for (const char* const policy : {"earliest", "best-fit"}) {
    const Outcome streamed = run({"--requests", requests_, "--policy", policy, "--json", "--stream",
                                  "--placements-out", out + policy});
    ASSERT_EQ(streamed.code, 0) << streamed.err;
    const Outcome all = run({"--requests", requests_, "--policy", policy, "--json",
                             "--placements-out", whole + policy});
    EXPECT_EQ(read_text_file(out + policy), read_text_file(whole + policy));
    const nlohmann::json one = streamed.json()["schedules"][0], other = all.json()["schedules"][0];
    for (const char* const key :
         {"iterations", "requests", "tokens_served", "ttft_parts_ns", "training_delay"})
      EXPECT_EQ(one[key], other[key]) << key;
    for (const char* const key : {"training", "prefill", "total", "useful"})
      EXPECT_EQ(one["utilisation"][key], other["utilisation"][key]) << key;
    for (const char* const key : {"p50", "p90", "p99", "max"}) {
      const double exact = other["ttft_ns"][key].get<double>();
      EXPECT_NEAR(one["ttft_ns"][key].get<double>(), exact, exact / 256) << key;
    }
    EXPECT_TRUE(one["idle_ns"].is_null() && one["cost"].is_null());
    EXPECT_DOUBLE_EQ(one["ttft_error"].get<double>(), 1.0 / 256);
    EXPECT_EQ(other["ttft_error"], 0);
  }
}

TEST_F(PrefillCommand, RefusesAStreamThatNeedsAllRequests) {
  for (const auto& [option, value] :
       {std::pair{"--backlog", "8"}, {"--copies", "2"}, {"--signals", "plan"}}) {
    const Outcome found = run({"--requests", requests_, "--stream", option, value});
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err, HasSubstr(std::string{"Leave "} + option + " out")) << option;
  }
}

// Two GPUs whose bubbles are 300 ms long: 1 GB of a gemma-2b's share, and 1 GB of training's.
TEST_F(PrefillCommand, SaysWhatSwappingWeightsLeavesOfTheBubbles) {
  const std::vector<std::string> swap{
      "bubbles", scenario_,           "--schedule", "gpipe", "--set", "prefill.model=gemma-2b",
      "--set",   "costs.weights=1GB", "--weights",  "swap",  "--json"};
  const Outcome found = longhaul_run(swap);
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json()["schedules"][0]["swap"][0];
  const std::int64_t load = json["load_ns"], restore = json["restore_ns"];
  EXPECT_EQ(load, 78'317'888) << "2,506,172,416 numbers of 2 bytes at 64 GB/s";
  EXPECT_EQ(restore, 15'625'000);
  EXPECT_EQ(json["idle_ns"], 600'000'000);
  EXPECT_EQ(json["left_ns"], 600'000'000 - 2 * (load + restore));
  EXPECT_EQ(json["usable_bubbles"], 2);
  std::vector<std::string> slow = swap;
  slow.insert(slow.end(), {"--pcie", "16GB/s"});
  EXPECT_EQ(longhaul_run(slow).json()["schedules"][0]["swap"][0]["left_ns"], 0);
  const Outcome unknown =
      longhaul_run({"bubbles", scenario_, "--schedule", "gpipe", "--weights", "swap"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("needs its dimensions"));
}

TEST_F(PrefillCommand, PlacesEachRequestOrSaysWhyNot) {
  const std::string out = directory_.path("answers.csv");
  const Outcome found = run({"--requests", requests_, "--json", "--placements-out", out});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(read_text_file(out),
            "request,arrival_ns,tokens,answer,reason,pipeline,start_ns,end_ns\n"
            "0,150000000,100,placed,,0,200000000,300000000\n"
            "1,150000000,300,refused,too_long,,,\n"
            "2,160000000,401,refused,profile,,,\n"
            "3,170000000,150,placed,,0,300000000,450000000\n");
  const nlohmann::json json = found.json()["schedules"][0];
  EXPECT_EQ(json["requests"]["offered"], 4);
  EXPECT_EQ(json["requests"]["done"], 2);
  EXPECT_EQ(json["requests"]["refused"]["too_long"], 1);
  EXPECT_EQ(json["requests"]["refused"]["slo"], 0);
  EXPECT_EQ(json["tokens_served"], 250);
  EXPECT_DOUBLE_EQ(json["utilisation"]["total"].get<double>(), 1450.0 / 1800);
  EXPECT_EQ(json["utilisation"]["useful"], nullptr);
  EXPECT_EQ(json["ttft_ns"]["max"], 280'000'000);
  EXPECT_EQ(json["ttft_parts_ns"]["kv"], 0) << "without decode";
  EXPECT_EQ(json["training_delay"]["total_ns"], 0);
  double parts = 0;
  for (const auto& [part, time] : json["ttft_parts_ns"].items()) parts += time.get<double>();
  EXPECT_DOUBLE_EQ(parts, (150e6 + 280e6) / 2);
  EXPECT_LE(json["utilisation"]["total"], json["utilisation"]["bounds"]["flow"]);
}

TEST_F(PrefillCommand, FillsFromABacklog) {
  const Outcome found = run({"--requests", requests_, "--backlog", "3", "--patience", "5"});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("a backlog of 3, 4 iterations"));
  EXPECT_THAT(found.out, HasSubstr("too_long"));
  EXPECT_THAT(found.out, HasSubstr("without a model its memory counts nothing"));
}

TEST_F(PrefillCommand, SaysWhatABacklogLeavesOut) {
  const std::string note = "! of a backlog these count nothing: ";
  EXPECT_THAT(run({"--requests", requests_, "--backlog", "3"}).out, Not(HasSubstr(note)));
  std::vector<std::string> more{"--requests", requests_,
                                "--backlog",  "3",
                                "--set",      "memory.capacity=200GB",
                                "--set",      "costs.activation=1MB",
                                "--set",      "costs.weights=1MB",
                                "--set",      "prefill.model=llama3-8b",
                                "--set",      "prefill.decode={rate = \"100Gbps\"}",
                                "--set",      "prefill.prefix_cache=1GB"};
  const Outcome found = run(more);
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out,
              HasSubstr(note + "decode.slots, memory of keys that leave, prefix_cache\n"));
  more.emplace_back("--json");
  EXPECT_EQ(run(more).json()["left_out"],
            nlohmann::json({"decode.slots", "memory of keys that leave", "prefix_cache"}));
  EXPECT_EQ(run(more).json()["not_counted"], nlohmann::json::array());
  const nlohmann::json open_loop = run({"--requests", requests_, "--json"}).json();
  EXPECT_EQ(open_loop["left_out"], nlohmann::json::array());
  EXPECT_EQ(open_loop["not_counted"], nlohmann::json({"memory", "decode"}));
}

// What fills bubbles by length looks at no SLO, and what misses it is late.
TEST_F(PrefillCommand, CountsABacklogsPromptsThatMissTheirSloAsLate) {
  std::vector<std::string> words{
      "--requests", requests_, "--backlog", "3", "--json", "--set", "prefill.slo_ttft=150ms"};
  const nlohmann::json filled = run(words).json();
  EXPECT_EQ(filled["left_out"], nlohmann::json::array({"slo_ttft"}));
  EXPECT_GT(filled["schedules"][0]["requests"]["late"], 3);
  words.insert(words.end(), {"--policy", "earliest"});
  const nlohmann::json in_order = run(words).json();
  EXPECT_EQ(in_order["left_out"], nlohmann::json::array());
  EXPECT_EQ(in_order["schedules"][0]["requests"]["late"], 0);
  EXPECT_GT(in_order["schedules"][0]["requests"]["refused"]["slo"], 0);
}

TEST_F(PrefillCommand, GivesTheSameBytesTwice) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--backlog", "3"}, {"--set", "run.noise=0.05"}}) {
    std::vector<std::string> answers, tables;
    for (const char* const name : {"first.csv", "second.csv"}) {
      std::vector<std::string> words{"--requests", requests_, "--json", "--placements-out",
                                     directory_.path(name)};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome found = run(words);
      ASSERT_EQ(found.code, 0) << found.err;
      nlohmann::json json = found.json();
      for (auto& schedule : json["schedules"])
        ASSERT_EQ(schedule.erase("placement_ns"), 1U) << "of this program's time";
      answers.push_back(json["schedules"].dump());
      tables.push_back(read_text_file(directory_.path(name)));
      std::filesystem::remove(directory_.path(name));
    }
    EXPECT_EQ(answers[0], answers[1]);
    EXPECT_EQ(tables[0], tables[1]);
    EXPECT_THAT(tables[0], HasSubstr("placed"));
  }
}

TEST_F(PrefillCommand, RefusesAFileThatIsNoTraceInOneLine) {
  const std::string bytes("\x7f\0ELF\x01\xff\xfe\0\n\0\x80,\"\r\n", 16);
  for (const char* const name : {"binary.csv", "binary.jsonl", "empty.csv", "empty.jsonl"}) {
    const bool is_empty = std::string{name}.starts_with("empty");
    const std::string file = directory_.write(name, is_empty ? "" : bytes);
    for (const bool stream : {false, true}) {
      std::vector<std::string> words{"--requests", file};
      if (stream) words.emplace_back("--stream");
      const Outcome found = run(words);
      EXPECT_EQ(found.code, 2) << name;
      EXPECT_THAT(found.err, HasSubstr(file)) << name;
      EXPECT_EQ(std::ranges::count(found.err, '\n'), 1) << name << ": " << found.err;
    }
  }
}

TEST_F(PrefillCommand, ChoosesTheScheduleThatIsWorthMost) {
  const std::string long_prompts =
      directory_.write("long.jsonl", "{\"timestamp\": 0, \"input_length\": 150}\n");
  const Outcome found =
      longhaul_run({"prefill", scenario_, "--schedule", "1f1b,gpipe", "--requests", long_prompts,
                    "--backlog", "8", "--objective", "value", "--prefill-price", "1", "--set",
                    "prefill.guard=0ms", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(found.json()["value"]["chosen"], "gpipe");
  const auto schedules = found.json()["schedules"];
  EXPECT_DOUBLE_EQ(schedules[0]["utilisation"]["total"].get<double>(), 1650.0 / 1800);
  EXPECT_DOUBLE_EQ(schedules[1]["utilisation"]["total"].get<double>(), 1);
}

// One replica: device 1's bubble follows device 0's by 500 ms, a stage of 50 ms and a hop of 450.
TEST_F(PrefillCommand, SkewsPipelinesWhereThatIsAskedFor) {
  const std::vector<std::string> skewed{
      "--requests", requests_,           "--set", "prefill.stages=2",
      "--set",      "prefill.hop=450ms", "--set", "prefill.skewed_for=100"};
  std::vector<std::string> json = skewed;
  json.emplace_back("--json");
  const Outcome found = run(json);
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json said = found.json()["schedules"][0]["skewed"][0];
  EXPECT_EQ(said["pipelines"], nlohmann::json::parse(R"([{"pipeline": 0, "ranks": [0, 1]}])"));
  EXPECT_EQ(said["prompts"], 5) << "290 ms less the guard hold 5 stages";
  EXPECT_EQ(said["prompts_of_equal_places"], 0);
  EXPECT_EQ(said["prompts_upper_bound"], 5);
  EXPECT_EQ(found.json()["schedules"][0]["requests"]["done"], 3);
  EXPECT_THAT(run(skewed).out, HasSubstr("skewed pipelines hold 5 prompts of 100 tokens"));
  const Outcome longer = run(
      {"--requests", requests_, "--set", "prefill.stages=2", "--set", "prefill.skewed_for=401"});
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.err, HasSubstr("more than the profile's last size, 400. Use 400 or less."));
}

TEST_F(PrefillCommand, SaysThatAGuardLeavesNothing) {
  for (const std::vector<std::string>& load :
       {std::vector<std::string>{}, {"--backlog", "4"}, {"--stream"}}) {
    std::vector<std::string> words{"--requests", requests_, "--set", "prefill.guard=300ms"};
    words.insert(words.end(), load.begin(), load.end());
    const Outcome found = run(words);
    EXPECT_EQ(found.code, 0) << found.err;
    EXPECT_THAT(found.out, HasSubstr("prefill serves nothing: its guard, 300 ms, leaves nothing of "
                                     "the longest bubble, 300 ms"));
    words.emplace_back("--json");
    EXPECT_EQ(run(words).json()["schedules"][0]["requests"]["done"], 0);
    words[3] = "prefill.guard=199ms";
    words.pop_back();
    EXPECT_THAT(run(words).out, Not(HasSubstr("serves nothing")));
  }
}

TEST_F(PrefillCommand, SaysHowFarItsProfileIsOffASizeThatItLacks) {
  const std::string three =
      directory_.write("three.csv", "tokens,time_ns\n1,1000000\n200,300000000\n400,400000000\n");
  const Outcome found =
      run({"--requests", requests_, "--set", "prefill.profile=\"" + three + "\"", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json said = found.json()["cost_model"][0];
  EXPECT_EQ(said["sizes_left_out"], 1);
  EXPECT_NEAR(said["mean_error"].get<double>(), 1 - 200.0 / 300, 1e-6);
  EXPECT_EQ(run({"--requests", requests_, "--json"}).json()["cost_model"][0]["mean_error"], nullptr)
      << "two sizes: none is between others";
}

// What is wrong in line 3 is found after two answers, and nothing of them is left.
TEST_F(PrefillCommand, LeavesNoAnswersOfAFileThatIsRefused) {
  const std::string good = "{\"timestamp\": 150, \"input_length\": 100}\n";
  const std::string out = directory_.path("answers.csv");
  for (const auto& [name, third, why] :
       {std::tuple{"back", "{\"timestamp\": 140, \"input_length\": 1}", "time goes back"},
        {"zero", "{\"timestamp\": 150, \"input_length\": 0}", "0 tokens are out of range"},
        {"less", "{\"timestamp\": 150, \"input_length\": -5}", "-5 tokens are out of range"},
        {"half", "{\"timestamp\": 150, \"input_len", "is no JSON object"},
        {"huge", "{\"timestamp\": 150, \"input_length\": 100000000000000000000}",
         "is no whole number in range"},
        {"none", "{\"timestamp\": 150}", "\"input_length\" is missing"}}) {
    const std::string file =
        directory_.write(std::string{name} + ".jsonl", good + good + third + "\n");
    for (const bool stream : {false, true}) {
      std::vector<std::string> words{"--requests", file, "--placements-out", out};
      if (stream) words.emplace_back("--stream");
      const Outcome found = run(words);
      EXPECT_EQ(found.code, 2) << name;
      EXPECT_THAT(found.err, HasSubstr(file + ":3: ")) << name;
      EXPECT_THAT(found.err, HasSubstr(why)) << name;
      EXPECT_EQ(std::ranges::count(found.err, '\n'), 1) << found.err;
      EXPECT_FALSE(std::filesystem::exists(out)) << name;
    }
  }
}

TEST_F(PrefillCommand, OverwritesNoAnswers) {
  const std::string out = directory_.write("answers.csv", "kept\n");
  for (const char* const more : {"", "--stream"}) {
    std::vector<std::string> words{"--requests", requests_, "--placements-out", out};
    if (*more != 0) words.emplace_back(more);
    const Outcome found = run(words);
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err, HasSubstr("results are never overwritten"));
    EXPECT_EQ(read_text_file(out), "kept\n");
  }
}

TEST_F(PrefillCommand, NamesTheNearestOptionOfAMistypedOne) {
  const Outcome found = run({"--requests", requests_, "--placement-out", "x.csv"});
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.err, HasSubstr("--placements-out"));
}

TEST_F(PrefillCommand, RefusesWhatDoesNotFit) {
  const auto said = [&](std::vector<std::string> more) {
    const Outcome found = run(std::move(more));
    EXPECT_EQ(found.code, 2);
    return found.err;
  };
  EXPECT_THAT(said({}), HasSubstr("--requests is missing"));
  EXPECT_THAT(said({"--requests", requests_, "--policy", "earlyest"}),
              HasSubstr("Did you mean \"earliest\"?"));
  EXPECT_THAT(said({"--requests", requests_, "--patience", "3"}), HasSubstr("without --backlog"));
  EXPECT_THAT(said({"--requests", requests_, "--backlog", "0"}), HasSubstr("--backlog"));
  EXPECT_THAT(said({"--requests", requests_, "--backlog", "3", "--rate", "2"}),
              HasSubstr("--rate: it has no effect with --backlog"));
  EXPECT_THAT(said({"--requests", requests_, "--backlog", "3", "--route", "nearest"}),
              HasSubstr("--route: it has no effect with --backlog"));
  EXPECT_THAT(said({"--requests", requests_, "--window", "5s,1s"}),
              HasSubstr("ends before it begins"));
  EXPECT_THAT(said({"--requests", requests_, "--rate", "no"}), HasSubstr("--rate"));
  EXPECT_THAT(said({"--requests", requests_, "--objective", "value"}),
              HasSubstr("--prefill-price is missing"));
  EXPECT_THAT(said({"--requests", requests_, "--signals", "non"}), HasSubstr("--signals"));
  EXPECT_THAT(said({"--requests", requests_, "--set", "prefill.prefix_cache=1MiB"}),
              HasSubstr("needs prefill.model"));
  EXPECT_THAT(said({"--requests", requests_, "--set", "prefill.stages=2"}),
              HasSubstr("prefill.stages = 2 is more than the 1 DP-cells"));
  EXPECT_THAT(said({"--requests", directory_.path("none.csv")}), HasSubstr("none.csv"));
}

}  // namespace
}  // namespace longhaul::test
