// `advise` against one system's own planner on the same drawn file: by worth, `prefill --schedule
// best --objective value` and `plan` with prompts; by time to a loss, `tune --family`.
#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

constexpr double kRounding = 2e-9;  // $: scores are whole nanodollars

nlohmann::json answer_of(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--json");
  const Outcome run = longhaul_run(words);
  EXPECT_EQ(run.code, 0) << run.err;
  return run.code == 0 ? run.json() : nlohmann::json{};
}

bool uses(const nlohmann::json& plan, const char* idea) {
  return std::ranges::find(plan["ideas"], idea) != plan["ideas"].end();
}

/// Draws files of prompts and of scenarios whose GPUs have prices.
class DrawnFiles {
public:
  DrawnFiles(const TempDir& directory, std::uint64_t seed)
      : directory_{directory}, seed_{seed}, random_{seed} {}

  std::int64_t number(std::int64_t low, std::int64_t high) { return random_.between(low, high); }
  std::string ms(std::int64_t low, std::int64_t high) {
    return fmt::format("\"{}ms\"", number(low, high));
  }
  /// Blocks, [run] and [prefill]: a token takes a millisecond.
  std::string blocks(std::int64_t iterations) {
    const std::string profile =
        directory_.write("times.csv", "tokens,time_ns\n1,1000000\n400,400000000\n");
    return fmt::format(
        "[costs]\nforward = {}\ndgrad = {}\nwgrad = {}\nmessage = \"1MB\"\nweights = \"1MB\"\n"
        "[memory]\nbudget = {}\n[run]\niterations = {}\n[prefill]\nprofile = \"{}\"\nguard = {}\n",
        ms(40, 120), ms(40, 120), ms(20, 120), number(1, 2), iterations, profile, ms(0, 20));
  }
  std::string links() {
    return fmt::format("[[link]]\nbetween = \"all\"\nlatency = {}\nbandwidth = \"1Gbps\"\n",
                       ms(0, 120));
  }
  std::string file(const std::string& text) {
    return directory_.write(fmt::format("{}.toml", seed_), text);
  }
  /// --requests, --backlog of some, and the price: GPUs are worth 0.6 $ of 10^6 tokens.
  std::vector<std::string> load() {
    std::string requests;
    std::int64_t time = 0;
    for (int i = 0; i < 12; ++i, time += number(0, 300))
      requests +=
          fmt::format("{{\"timestamp\": {}, \"input_length\": {}}}\n", time, number(20, 200));
    std::vector<std::string> words{
        "--requests",      directory_.write(fmt::format("{}.jsonl", seed_), requests),
        "--objective",     "value",
        "--prefill-price", std::vector<std::string>{"0.05", "0.3", "2"}[seed_ % 3]};
    if (seed_ % 2 == 0) words.insert(words.end(), {"--backlog", "4"});
    return words;
  }

private:
  const TempDir& directory_;
  std::uint64_t seed_;
  Random random_;
};

/// 2 to 4 stages in two datacenters, in cells of one or two pipelines.
std::string placed_file(DrawnFiles& draw) {
  const std::int64_t stages = draw.number(2, 4), half = draw.number(1, stages - 1);
  const std::int64_t replicas = draw.number(1, 3);
  const std::int64_t cell = replicas == 2 ? draw.number(1, 2) : 1;
  return draw.file(fmt::format(
      "[parallel]\nstages = {}\nmicrobatches = {}\nreplicas = {}\ncell = {}\n"
      "gradient_sync = \"none\"\n[[datacenter]]\nname = \"a\"\nstages = \"0-{}\"\nprice = {}\n"
      "[[datacenter]]\nname = \"b\"\nstages = \"{}-{}\"\nprice = {}\n{}{}",
      stages, draw.number(2, 4), replicas, cell, half - 1, draw.number(1, 4), half, stages - 1,
      draw.number(1, 4), draw.links(), draw.blocks(2)));
}

/// $ of an iteration less what its prompts pay.
double net_of(const nlohmann::json& candidate, double dollars_per_hour, double price) {
  return dollars_per_hour / 3600 * candidate["period_ns"].get<double>() * 1e-9 -
         candidate["tokens_served"].get<double>() / candidate["iterations"].get<double>() * price /
             1e6;
}

TEST(NeverWorthLess, ThanTheSearchOfPrefillAndWhatItChoosesFrom) {
  const TempDir directory;
  int with_prefill = 0, found_more = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    DrawnFiles draw{directory, seed};
    const std::string file = placed_file(draw);
    std::vector<std::string> load = draw.load();
    load.insert(load.end(), {"--search-moves", "3000"});
    const nlohmann::json advice = answer_of({"advise", file}, load);
    const nlohmann::json alone = answer_of({"prefill", file, "--schedule", "best"}, load);
    if (advice.is_null() || alone.is_null()) continue;
    const nlohmann::json& best = advice["plans"][0];
    const double price = alone["value"]["prefill_price"];
    const double hourly = alone["value"]["gpu_hour"].get<double>() * alone["stages"].get<double>() *
                          alone["replicas"].get<double>();
    std::vector<double> nets;
    for (const nlohmann::json& each : alone["value"]["candidates"]) {
      nets.push_back(net_of(each, hourly, price));
      EXPECT_LE(best["net_dollars"].get<double>(), nets.back() + kRounding) << each["schedule"];
    }
    with_prefill += uses(best, "prefill") ? 1 : 0;
    found_more += nets[0] + kRounding < *std::min_element(nets.begin() + 1, nets.end()) ? 1 : 0;
  }
  EXPECT_GT(with_prefill, 40);
  EXPECT_GT(found_more, 8) << "its search finds more than any schedule that it chooses from";
}

/// Two stages and datacenters for several pipelines; where stages go is open.
std::string open_file(DrawnFiles& draw) {
  std::string text =
      fmt::format("[parallel]\nstages = 2\nmicrobatches = {}\ngradient_sync = \"all-reduce\"\n",
                  draw.number(2, 3));
  for (const char* name : {"a", "b"})
    text += fmt::format("[[datacenter]]\nname = \"{}\"\ngpus = {}\nprice = {}\n", name,
                        draw.number(1, 2), 0.5 * static_cast<double>(draw.number(1, 8)));
  return draw.file(text + draw.links() + draw.blocks(2));
}

/// --set that places stages as a plan of `plan` does.
std::vector<std::string> set_of_plan(const nlohmann::json& plan) {
  std::vector<std::string> words;
  const auto set = [&](std::string word) {
    words.emplace_back("--set");
    words.push_back(std::move(word));
  };
  std::set<std::string> used;
  int first = 0;
  for (const nlohmann::json& each : plan["way"]) {
    const int stages = each["stages"];
    used.insert(each["datacenter"].get<std::string>());
    set(fmt::format("datacenter.{}.stages=\"{}-{}\"", each["datacenter"].get<std::string>(), first,
                    first + stages - 1));
    first += stages;
  }
  for (const char* name : {"a", "b"})
    if (!used.contains(name)) set(fmt::format("datacenter.{}.stages=[]", name));
  set(fmt::format("parallel.replicas={}", plan["replicas"].get<int>()));
  set(fmt::format("parallel.cell={}", plan["pipelines_per_cell"].get<int>()));
  return words;
}

TEST(NeverWorthLess, ThanThePlannerOfSitesWithPromptsInItsBubbles) {
  const TempDir directory;
  int planned = 0, with_prefill = 0, better = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    DrawnFiles draw{directory, seed};
    const std::string file = open_file(draw);
    const std::vector<std::string> load = draw.load();
    const Outcome exact =
        longhaul_run({"plan", file, "--search", "exact", "--objective", "cost", "--json"});
    if (exact.code != 0) continue;  // no placement holds a pipeline
    ++planned;
    std::vector<std::string> moves = load;
    moves.insert(moves.end(), {"--search-moves", "20"});
    const nlohmann::json best = answer_of({"advise", file}, moves)["plans"][0];
    const nlohmann::json plan = exact.json()["plan"];
    std::vector<std::string> words = set_of_plan(plan);
    words.insert(words.end(), load.begin(), load.end());
    const nlohmann::json alone =
        answer_of({"prefill", file, "--schedule", plan["schedule"].get<std::string>()}, words);
    const nlohmann::json& value = alone["value"];
    const double hourly = value["gpu_hour"].get<double>() * alone["stages"].get<double>() *
                          alone["replicas"].get<double>();
    // What is compared is an iteration's share of one replica.
    const double net = net_of(value["candidates"][0], hourly, value["prefill_price"]) /
                       alone["replicas"].get<double>();
    const double own = best["net_dollars"].get<double>() / best["place"]["replicas"].get<double>();
    EXPECT_LE(own, net + kRounding);
    with_prefill += uses(best, "prefill") ? 1 : 0;
    better += own + kRounding < net ? 1 : 0;
  }
  EXPECT_GT(planned, 40);
  EXPECT_GT(with_prefill, 25);
  EXPECT_GT(better, 20) << "all ideas together are worth more";
}

/// Curves of four methods that differ in bytes and in updates until a loss of 2. Exact sums send
/// what the scenario's 131,584 weights take, in f32 and both ways.
std::string drawn_curves(DrawnFiles& draw) {
  constexpr int kDense = 2 * 4 * 131'584;
  std::string csv =
      "method,seed,exchange,serve,staleness,local_steps,wan_bytes,updates,validation\n";
  const auto add = [&](const char* method, int staleness, int steps, int bytes,
                       std::int64_t updates) {
    for (const int seed : {1, 2})
      csv += fmt::format(
          "{0},{1},sites,deadline,{2},{3},{4},1,3\n{0},{1},sites,deadline,{2},{3},{4},"
          "{5},2\n",
          method, seed, staleness, steps, bytes, updates);
  };
  add("none", 0, 1, kDense, 100);
  add("none:late", 1, 1, kDense, draw.number(90, 120));
  add("stella:16", 1, 1, 60'000, draw.number(90, 200));
  add("diloco:10", 0, 10, kDense, draw.number(90, 250));
  return csv;
}

/// And than any other: by the time that `tune` itself says.
TEST(NeverWorthLess, ThanTheMethodThatTuneChooses) {
  const TempDir directory;
  const std::string trained = testing::in_checkout("benchmarks/scenarios/train-2dc.toml");
  std::set<std::string> picks;
  int methods = 0, sooner = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    DrawnFiles draw{directory, seed};
    const std::vector<std::string> bandwidths{"0.5Mbps", "5Mbps", "50Mbps", "500Mbps", "5Gbps"};
    const std::vector<std::string> set{"--set", "link.bandwidth=" + bandwidths[seed % 5],
                                       "--set", fmt::format("link.latency={}", draw.ms(0, 30)),
                                       "--set", "train.target=\"loss=2\""};
    const std::string curves = directory.write(fmt::format("{}.csv", seed), drawn_curves(draw));
    const nlohmann::json tuned =
        answer_of({"tune", trained, "--family", "all", "--curves", curves}, set)["settings"][0];
    const nlohmann::json best = answer_of(
        {"advise", trained, "--allow", "lossy", "--search-moves", "10", "--curves", curves},
        set)["plans"][0];
    const auto time = best["loss"]["time_ns"].get<std::int64_t>();
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const nlohmann::json& each : tuned["methods"])
      least = std::min(least, each["time_ns"].get<std::int64_t>());
    EXPECT_LE(time, least) << tuned["pick"] << " by tune, " << best["loss"]["method"];
    picks.insert(tuned["pick"].get<std::string>());
    methods += uses(best, "method") ? 1 : 0;
    sooner += time < least ? 1 : 0;
  }
  EXPECT_GT(picks.size(), 2U);
  EXPECT_GT(methods, 35);
  EXPECT_GT(sooner, 0) << "a composed method, or another schedule";
}

}  // namespace
}  // namespace longhaul::test
