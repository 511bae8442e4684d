// `--schedule best --objective value`: one search for training and prompts.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/text_file.hpp"
#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

class BestByValue : public ::testing::Test {
protected:
  [[nodiscard]] Outcome run(const std::string& scenario, const std::string& requests,
                            std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"prefill", scenario, "--requests", requests, "--objective", "value", "--json"});
    return longhaul_run(more);
  }
  /// 2 stages, 2 microbatches, F 100 ms, B 200 ms (in parts it would take longer), no links;
  /// `replicas` of them, which sum nothing.
  [[nodiscard]] std::string two_stages(int replicas, const std::string& prefill) const {
    return directory_.write(
        fmt::format("two-{}.toml", replicas),
        fmt::format("[costs]\nforward = \"100ms\"\nbackward = \"200ms\"\ndgrad = \"200ms\"\n"
                    "wgrad = \"100ms\"\nmessage = \"1MB\"\n"
                    "[memory]\nbudget = 2\n"
                    "[parallel]\nstages = 2\nmicrobatches = 2\nreplicas = {}\n"
                    "gradient_sync = \"none\"\n[[datacenter]]\nname = \"a\"\n"
                    "stages = [0, 1]\n[run]\niterations = 4\n"
                    "[prefill]\nprofile = \"{}\"\n{}",
                    replicas, profile_, prefill));
  }

  TempDir directory_;
  std::string profile_ =
      directory_.write("times.csv", "tokens,time_ns\n1,1000000\n400,400000000\n");
};

const nlohmann::json& of(const nlohmann::json& candidates, const std::string& name) {
  return *std::ranges::find_if(candidates,
                               [&](const auto& one) { return one["schedule"] == name; });
}

// Prompts of 150 ms fill GPipe's bubbles of 300 ms, of which 1F1B has none on device 0.
TEST_F(BestByValue, TakesOfEquallyFastOrdersTheOneWhoseBubblesServeMore) {
  const std::string scenario = two_stages(1, "");
  const std::string requests =
      directory_.write("long.jsonl", "{\"timestamp\": 0, \"input_length\": 150}\n");
  const Outcome found = run(scenario, requests,
                            {"--schedule", "best", "--backlog", "8", "--prefill-price", "0.001",
                             "--search-moves", "2000", "--placement", "ud"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json(), value = json["value"];
  EXPECT_EQ(value["chosen"], "best");
  ASSERT_EQ(json["schedules"].size(), 1U);
  EXPECT_EQ(json["schedules"][0]["period_ns"], 900'000'000);
  EXPECT_DOUBLE_EQ(json["schedules"][0]["utilisation"]["total"].get<double>(), 1);
  const double best = of(value["candidates"], "best")["value_per_second"];
  EXPECT_EQ(best, of(value["candidates"], "gpipe")["value_per_second"].get<double>());
  EXPECT_GT(best, of(value["candidates"], "1f1b")["value_per_second"].get<double>());
  EXPECT_GT(value["search"]["judged"], 10);
}

// A prompt of 300 ms at 200 needs GPipe's bubble from 200 to 500. One of 100 ms at 600 starts at
// 600 under 1F1B, at 700 under GPipe: with an order for each replica no one waits.
TEST_F(BestByValue, GivesReplicasOrdersOfTheirOwnWhereThatServesSooner) {
  const std::string scenario = two_stages(2, "slo_ttft = \"310ms\"\n");
  const std::string requests = directory_.write("two.jsonl",
                                                "{\"timestamp\": 200, \"input_length\": 300}\n"
                                                "{\"timestamp\": 600, \"input_length\": 100}\n");
  const std::string file = directory_.path("best.csv"), answers = directory_.path("answers.csv");
  const std::vector<std::string> best{"--schedule",     "best",  "--prefill-price", "0.001",
                                      "--search-moves", "20000", "--placement",     "ud"};
  std::vector<std::string> words = best;
  for (const std::string& word :
       {std::string{"--schedule-out"}, file, std::string{"--placements-out"}, answers})
    words.push_back(word);
  const Outcome found = run(scenario, requests, words);
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json();
  EXPECT_EQ(json["value"]["search"]["replicas_differ"], true);
  EXPECT_EQ(json["schedules"][0]["period_ns"], 900'000'000);
  EXPECT_EQ(json["schedules"][0]["requests"]["done"], 2);
  EXPECT_EQ(json["schedules"][0]["ttft_parts_ns"]["wait"], 0);
  EXPECT_GT(of(json["value"]["candidates"], "gpipe")["wait_mean_ns"], 0);
  EXPECT_THAT(read_text_file(answers), HasSubstr("1,600000000,100,placed,,"));
  EXPECT_THAT(read_text_file(answers), HasSubstr(",600000000,700000000\n"));

  // The file is a schedule as others take it, and serves the same.
  const Outcome simulated = longhaul_run({"simulate", scenario, "--schedule", file, "--json"});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  EXPECT_EQ(simulated.json()["schedules"][0]["makespan_ns"], 900'000'000);
  const Outcome again = run(scenario, requests, {"--schedule", file, "--prefill-price", "0.001"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["schedules"][0]["ttft_parts_ns"]["wait"], 0);
  EXPECT_EQ(again.json()["schedules"][0]["period_ns"], 900'000'000);
  EXPECT_EQ(run(scenario, requests, best).json()["schedules"][0]["ttft_ns"],
            json["schedules"][0]["ttft_ns"])
      << "the same search twice";
}

/// Stages over two datacenters, blocks, links and prompts drawn.
struct DrawnInput {
  std::string scenario, requests;
  std::vector<std::string> options;
};

DrawnInput drawn_input(const TempDir& directory, const std::string& profile, std::uint64_t seed) {
  Random random{seed};
  const auto ms = [&](std::int64_t low, std::int64_t high) {
    return fmt::format("\"{}ms\"", random.between(low, high));
  };
  const auto stages = random.between(2, 4), microbatches = random.between(2, 5);
  const auto half = random.between(1, stages - 1);
  std::string first, second;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    (stage < half ? first : second) += fmt::format("{},", stage);
  std::string text = fmt::format(
      "[costs]\nforward = {}\ndgrad = {}\nwgrad = {}\nmessage = \"1MB\"\n[memory]\nbudget = {}\n"
      "[parallel]\nstages = {}\nmicrobatches = {}\nreplicas = {}\ngradient_sync = \"none\"\n"
      "[[datacenter]]\nname = \"a\"\nstages = [{}]\n[[datacenter]]\nname = \"b\"\nstages = [{}]\n"
      "[[link]]\nbetween = \"all\"\nlatency = {}\nbandwidth = \"1Gbps\"\n[run]\niterations = 3\n"
      "[prefill]\nprofile = \"{}\"\nguard = {}\n",
      ms(40, 120), ms(40, 120), ms(20, 120), random.between(1, 2), stages, microbatches,
      random.between(1, 3), first, second, ms(0, 120), profile, ms(0, 20));
  if (random.between(0, 1) == 0) text += fmt::format("slo_ttft = {}\n", ms(200, 800));
  std::string requests;
  std::int64_t time = 0;
  for (int i = 0; i < 12; ++i, time += random.between(0, 300))
    requests +=
        fmt::format("{{\"timestamp\": {}, \"input_length\": {}}}\n", time, random.between(20, 200));
  DrawnInput input{directory.write(fmt::format("{}.toml", seed), text),
                   directory.write(fmt::format("{}.jsonl", seed), requests),
                   {"--schedule", "best", "--search-moves", "8000", "--prefill-price",
                    random.between(0, 1) == 0 ? "0.1" : "10"}};
  if (random.between(0, 1) == 0) input.options.insert(input.options.end(), {"--backlog", "4"});
  return input;
}

TEST_F(BestByValue, IsNeverWorthLessThanAnyThatItCouldChoose) {
  int improved = 0, differ = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const DrawnInput input = drawn_input(directory_, profile_, seed);
    const std::string file = directory_.path(fmt::format("{}.csv", seed));
    std::vector<std::string> words = input.options;
    words.insert(words.end(), {"--schedule-out", file});
    const Outcome found = run(input.scenario, input.requests, words);
    ASSERT_EQ(found.code, 0) << seed << found.err;
    const nlohmann::json json = found.json(), candidates = json["value"]["candidates"];
    const double best = candidates[0]["value_per_second"];
    EXPECT_EQ(candidates[0]["schedule"], "best");
    ASSERT_GT(candidates.size(), 5U);
    double most = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i)
      most = std::max(most, candidates[i]["value_per_second"].get<double>());
    EXPECT_GE(best, most) << "seed " << seed;
    EXPECT_EQ(json["value"]["chosen"], "best");
    improved += best > most ? 1 : 0;
    // What is said of it holds of the file.
    const Outcome simulated =
        longhaul_run({"simulate", input.scenario, "--schedule", file, "--json"});
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_EQ(simulated.json()["schedules"][0]["makespan_ns"], json["schedules"][0]["period_ns"]);
    if (!json["value"]["search"]["replicas_differ"]) continue;
    ++differ;
    words = input.options;
    words[1] = file;
    const auto moves = std::ranges::find(words, "--search-moves");
    words.erase(moves, moves + 2);
    EXPECT_EQ(run(input.scenario, input.requests, words).json()["schedules"][0]["tokens_served"],
              json["schedules"][0]["tokens_served"]);
  }
  EXPECT_GT(improved, 10);
  EXPECT_GT(differ, 3);
}

TEST_F(BestByValue, WritesOneScheduleAndOverwritesNone) {
  const std::string scenario = two_stages(1, "");
  const std::string requests =
      directory_.write("one.jsonl", "{\"timestamp\": 0, \"input_length\": 50}\n");
  const std::string file = directory_.path("out.csv");
  const Outcome two =
      run(scenario, requests,
          {"--schedule", "gpipe,1f1b", "--prefill-price", "1", "--schedule-out", file});
  EXPECT_EQ(two.code, 2);
  EXPECT_THAT(two.err, HasSubstr("--schedule-out: 2 schedules do not go into one file"));
  directory_.write("out.csv", "kept\n");
  const Outcome kept = run(scenario, requests,
                           {"--schedule", "gpipe", "--prefill-price", "1", "--schedule-out", file});
  EXPECT_EQ(kept.code, 2);
  EXPECT_EQ(read_text_file(file), "kept\n");
  EXPECT_THAT(
      run(scenario, requests, {"--schedule", "best", "--prefill-price", "1", "--robust"}).err,
      HasSubstr("--robust: it knows no prompts"));
}

}  // namespace
}  // namespace longhaul::test
