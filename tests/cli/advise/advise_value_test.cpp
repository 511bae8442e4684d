#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/advise/undivided.hpp"
#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AdviseValue : public AdviseLayouts {
protected:
  const std::string served_ = dir_.write(
      "served.toml", std::string{kUndivided} + "[prefill]\nmodel = \"llama3-8b\"\nprofile = \"" +
                         testing::in_checkout("benchmarks/requests/llama3-8b-a100.csv") + "\"\n");
  const std::vector<std::string> load_{
      "--requests", testing::in_checkout("benchmarks/requests/prompts.csv"),
      "--backlog",  "16",
      "--set",      "prefill.guard=\"2ms\""};
  [[nodiscard]] nlohmann::json advised(const char* objective, const std::string& out) const {
    std::vector<std::string> options{"advise", served_,        "--search-moves", "20",     "--json",
                                     "--out",  dir_.path(out), "--objective",    objective};
    if (std::string_view{objective} == "value") {
      options.insert(options.end(), load_.begin(), load_.end());
      options.insert(options.end(), {"--prefill-price", "1"});
    }
    const Outcome run = longhaul_run(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json();
  }
};

/// A plan's scenario has the [prefill] of the file, its profile in it, so that `prefill` places the
/// prompts again; its ranks stand for as many more GPUs, each copy with a queue of its own.
TEST_F(AdviseValue, FillTheBubblesOfTheirPlans) {
  const auto json = advised("value", "value");
  const auto gain = [](const nlohmann::json& answer) {
    std::int64_t sum = answer["baseline_nanodollars"].get<std::int64_t>();
    for (const auto& each : answer["waterfall"])
      sum -= each["added_nanodollars"].get<std::int64_t>();
    return sum;
  };
  EXPECT_LT(gain(json), gain(advised("cost", "cost"))) << "of the best plan, in nanodollars";
  int filled = 0;
  for (const auto& plan : json["plans"]) {
    if (plan["prefill_tokens"].is_null()) continue;
    ++filled;
    std::vector<std::string> again{"prefill", plan["scenario"], "--json", "--schedule",
                                   plan["schedule"]};
    again.insert(again.end(), load_.begin(), load_.end());
    const Outcome run = longhaul_run(again);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto row = run.json()["schedules"][0];
    const Outcome simulated =
        longhaul_run({"simulate", plan["scenario"], "--json", "--schedule", plan["schedule"]});
    const double copies = plan["gpus"].get<double>() / (simulated.json()["stages"].get<double>() *
                                                        simulated.json()["replicas"].get<double>());
    EXPECT_GE(copies, 1);
    EXPECT_NEAR(plan["prefill_tokens"].get<double>(),
                copies * row["tokens_served"].get<double>() / row["iterations"].get<double>(),
                1e-6);
    EXPECT_GT(row["tokens_served"], 0);
  }
  EXPECT_GT(filled, 0);
}

/// $ of the GPUs by their sites' prices, less what the prompts pay.
TEST_F(AdviseValue, IsWhatGpusCostLessWhatPromptsPay) {
  const auto json = advised("value", "value");
  for (const auto& plan : json["plans"]) {
    double shares = 0, priced = 0;  // stages or replicas, with and without prices
    for (const auto& [site, count] : plan["layout"]["placement"]["datacenters"].items()) {
      shares += count.get<double>();
      priced += count.get<double>() * (site == "west" ? 4 : 3);
    }
    const double paid =
        plan["prefill_tokens"].is_null() ? 0 : plan["prefill_tokens"].get<double>() / 1e6;
    const double seconds = plan["iteration_ns"].get<double>() * 1e-9;
    EXPECT_NEAR(plan["net_dollars"].get<double>(),
                plan["gpus"].get<double>() * priced / shares / 3600 * seconds - paid, 2e-9);
  }
  const Outcome report =
      longhaul_run({"report", dir_.path("value"), "--out", dir_.path("report.html")});
  EXPECT_THAT(report.out, HasSubstr("at the least cost less what prompts earn")) << report.err;
}

/// Two GPUs a rank, one of which computes prompts: both are paid for.
TEST_F(AdviseValue, PaysForAllGpusOfARank) {
  std::string text = file_text(testing::in_checkout("benchmarks/scenarios/m8-2dc.toml"));
  text += "[prefill]\nmodel = \"llama3-8b\"\nprofile = \"" +
          testing::in_checkout("benchmarks/requests/llama3-8b-a100.csv") + "\"\n";
  const std::string placed = dir_.write("m8.toml", text);
  const std::vector<std::string> prompts{
      "--set", "datacenter.price=3", load_[0], load_[1], load_[2], load_[3], "--objective",
      "value", "--prefill-price",    "1",      "--json"};
  const auto answer = [&](std::vector<std::string> words) {
    words.insert(words.end(), prompts.begin(), prompts.end());
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json();
  };
  const auto advice = answer({"advise", placed, "--search-moves", "20"});
  for (const auto& plan : advice["plans"]) {
    EXPECT_EQ(plan["gpus"], 8);
    const double paid =
        plan["prefill_tokens"].is_null() ? 0 : plan["prefill_tokens"].get<double>() / 1e6;
    const double seconds = plan["iteration_ns"].get<double>() * 1e-9;
    EXPECT_NEAR(plan["net_dollars"].get<double>(), 8 * 3 / 3600.0 * seconds - paid, 2e-9);
  }
  const auto value = answer({"prefill", placed, "--schedule", "1f1b"})["value"]["candidates"][0];
  const double seconds =
      value["period_ns"].get<double>() * 1e-9 * value["iterations"].get<double>();
  EXPECT_NEAR(value["value_per_second"].get<double>(),
              8 * 3 / 3600.0 + value["tokens_served"].get<double>() / 1e6 / seconds, 1e-9);
  for (const std::string stages : {"stages = \"0-1\"\n", "stages = \"2-3\"\n"})
    text.replace(text.find(stages), stages.size(), "");
  const auto open = answer({"advise", dir_.write("open.toml", text), "--search-moves", "5"});
  const auto& best = open["plans"][0];
  const double paid =
      best["prefill_tokens"].is_null() ? 0 : best["prefill_tokens"].get<double>() / 1e6;
  EXPECT_NEAR(
      best["net_dollars"].get<double>(),
      best["gpus"].get<double>() * 3 / 3600.0 * best["iteration_ns"].get<double>() * 1e-9 - paid,
      2e-8);
}

/// However it is written, as other commands take it.
TEST_F(AdviseValue, TakesPrefillInAnyForm) {
  const std::string profile = testing::in_checkout("benchmarks/requests/llama3-8b-a100.csv");
  const auto net = [&](const std::string& text) {
    const std::string file = dir_.write("served.toml", text);
    std::vector<std::string> options{"advise",
                                     file,
                                     "--search-moves",
                                     "5",
                                     "--json",
                                     "--out",
                                     dir_.path("any"),
                                     "--objective",
                                     "value",
                                     "--prefill-price",
                                     "1",
                                     "--set",
                                     "search.micro_batch=2"};
    options.insert(options.end(), load_.begin(), load_.end());
    std::filesystem::remove_all(dir_.path("any"));
    const Outcome run = longhaul_run(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["plans"][0]["net_dollars"].get<double>();
  };
  const double table =
      net(std::string{kUndivided} + "[prefill]\nmodel = \"llama3-8b\"\nprofile = \"" + profile +
          "\"\n[run]\niterations = 7\n");
  EXPECT_EQ(net("prefill.model = \"llama3-8b\"\nprefill.profile = \"" + profile +
                "\"\nrun.iterations = 7\n" + kUndivided),
            table);
  EXPECT_EQ(net("prefill = { model = \"llama3-8b\", profile = \"" + profile +
                "\" }\nrun = { iterations = 7 }\n" + kUndivided),
            table);
  EXPECT_THAT(file_text(dir_.path("any") + "/plan-1.toml"), HasSubstr("iterations = 7"));
}

TEST_F(AdviseValue, NeedsAQueueAndAModel) {
  std::vector<std::string> open{"advise", served_,  "--objective",     "value",
                                load_[0], load_[1], "--prefill-price", "1"};
  EXPECT_THAT(longhaul_run(open).err, HasSubstr("without --backlog"));
  open[1] = file_;
  open.insert(open.end(), {"--backlog", "16"});
  EXPECT_THAT(longhaul_run(open).err, HasSubstr("serves nothing (there is no [prefill])"));
}

/// Where prompts earn less than their GPUs cost. Plans carry [run] of the file.
TEST_F(AdviseValue, AreWorthNoLessThanThoseOfANarrowerSpace) {
  const std::string file = dir_.write(
      "served.toml", std::string{kUndivided} + "[prefill]\nmodel = \"llama3-8b\"\nprofile = \"" +
                         testing::in_checkout("benchmarks/requests/llama3-8b-h100.csv") +
                         "\"\n[run]\niterations = 7\n");
  const auto best = [&](const std::vector<std::string>& narrowed) {
    std::vector<std::string> options{"advise",
                                     file,
                                     "--search-moves",
                                     "5",
                                     "--json",
                                     "--out",
                                     dir_.path("advice"),
                                     "--objective",
                                     "value",
                                     "--requests",
                                     testing::in_checkout("benchmarks/requests/prompts.csv"),
                                     "--backlog",
                                     "16",
                                     "--prefill-price",
                                     "0.02",
                                     "--set",
                                     "search.data=[1, 2]",
                                     "--set",
                                     "search.micro_batch=2"};
    std::filesystem::remove_all(dir_.path("advice"));
    for (const std::string& each : narrowed) options.insert(options.end(), {"--set", each});
    const Outcome run = longhaul_run(options);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["plans"][0];
  };
  const auto widest = best({});
  const std::string text = file_text(dir_.path("advice") + "/plan-1.toml");
  EXPECT_THAT(text, HasSubstr("iterations = 7"));
  EXPECT_THAT(text, Not(HasSubstr("# --set")));
  for (const std::vector<std::string>& narrowed :
       {std::vector<std::string>{"search.tensor=2", "search.pipeline=5", "search.data=2"},
        std::vector<std::string>{"search.tensor=2", "search.pipeline=2", "search.data=2"},
        std::vector<std::string>{"search.tensor=8", "search.pipeline=1", "search.data=2"}})
    EXPECT_LE(widest["net_dollars"].get<double>(), best(narrowed)["net_dollars"].get<double>())
        << fmt::format("{}", fmt::join(narrowed, ", "));
}

}  // namespace
}  // namespace longhaul::test
