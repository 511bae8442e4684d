#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

/// Four stages for two sites of two GPUs: activations cross between them, gradients of replicas
/// are summed inside.
constexpr const char* kTwoPlaces = R"([scenario]
name = "two-places"
[model]
name = "small"
layers = 8
hidden = 32
intermediate = 64
heads = 4
kv_heads = 2
vocabulary = 64
sequence_length = 16
microbatch_size = 2
achieved_flops = 1e9
memory_bandwidth = "1GB/s"
[parallel]
stages = 4
microbatches = 4
gradient_sync = "all-reduce"
[costs]
forward = "20ms"
dgrad = "20ms"
wgrad = "20ms"
message = "1MB"
weights = "8MiB"
[[datacenter]]
name = "west"
gpus = 2
price = 3
egress_price = 40
[[datacenter]]
name = "east"
gpus = 2
price = 1
egress_price = 2
[[node]]
datacenter = "west"
gpus = 1
egress = "1Gbps"
ingress = "1Gbps"
internal = "1Gbps"
[[node]]
datacenter = "east"
gpus = 1
egress = "1Gbps"
ingress = "1Gbps"
internal = "1Gbps"
[[link]]
between = ["west", "east"]
latency = "10ms"
)";

class AdvisePlaces : public ::testing::Test {
protected:
  nlohmann::json answer(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"advise",   file_, "--search-moves", "20", "--json",
                                   "--tokens", "1e6"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? run.json() : nlohmann::json{};
  }
  TempDir dir_;
  std::string file_ = dir_.write("places.toml", kTwoPlaces);
};

/// GPUs and what leaves their sites, as `plan` has it.
TEST_F(AdvisePlaces, CountsWhatLeavesThem) {
  const auto json = answer({"--objective", "cost"});
  const double bound = json["bound"]["nanodollars"];
  double last = 0;
  for (const auto& plan : json["plans"]) {
    ASSERT_EQ(plan["place"]["placement"].size(), 2U);
    const double replicas = plan["place"]["replicas"], tokens = 4 * 2 * 16 * replicas;
    const double gpus = replicas * (2 * 3 + 2 * 1) / 3600;
    const double egress = replicas * 4 * 1e6 / 1e9 * (40 + 2);
    const double seconds = plan["iteration_ns"].get<double>() * 1e-9;
    EXPECT_NEAR(plan["dollars_per_million_tokens"].get<double>(),
                (gpus * seconds + egress) / tokens * 1e6, 1e-6);
    EXPECT_NEAR(plan["dollars"].get<double>(), std::ceil(1e6 / tokens) * (gpus * seconds + egress),
                1e-6);
    EXPECT_GE(plan["dollars"].get<double>(), last) << "plans are by cost";
    const double score = (gpus * seconds + egress) / replicas * 1e9;  // of a pipeline
    EXPECT_LT(bound, score);
    if (last == 0) {
      EXPECT_NEAR(json["gap"].get<double>(), score / bound - 1, 1e-6 * score / bound);
    }
    last = plan["dollars"];
  }
  const Outcome planned =
      longhaul_run({"plan", file_, "--search", "exact", "--objective", "cost", "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const double alone = planned.json()["plan"]["dollars_per_million_tokens"];
  EXPECT_GT(alone, 4 * 1e6 / 1e9 * 42 / 128 * 1e6) << "egress is most of it";
  EXPECT_LE(json["plans"][0]["dollars_per_million_tokens"].get<double>(), alone * (1 + 1e-9));
}

/// Nothing else is needed: neither the file that was asked about nor --set.
TEST_F(AdvisePlaces, AreScenariosThatSimulateToTheSameTimes) {
  const std::string out = dir_.path("advice");
  const auto plans =
      answer({"--out", out, "--set", "datacenter.west.gpus=4", "--set", "datacenter.east.gpus=4",
              "--set", "parallel.microbatches=5", "--set", "costs.optimizer=\"3ms\""})["plans"];
  ASSERT_EQ(std::rename(file_.c_str(), (file_ + ".gone").c_str()), 0);
  int overlapped = 0;
  for (const auto& plan : plans) {
    std::vector<std::string> again{"simulate", plan["scenario"], "--json", "--schedule",
                                   plan["schedule"]};
    if (!plan["overlap"].is_null()) again.insert(again.end(), {"--overlap", plan["overlap"]});
    if (!plan["overlap_search"].is_null())
      again.insert(again.end(), {"--overlap-search", plan["overlap_search"].dump()});
    const Outcome simulated = longhaul_run(again);
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    const auto json = simulated.json();
    EXPECT_EQ(json["scenario"], "two-places");
    EXPECT_EQ(json["replicas"], plan["place"]["replicas"]);
    EXPECT_EQ(json["microbatches"], 5);
    const char* const time = plan["overlap"].is_null() ? "iteration_ns" : "makespan_ns";
    EXPECT_EQ(json["schedules"][0][time], plan["iteration_ns"]);
    overlapped += plan["overlap"].is_null() ? 0 : 1;
  }
  EXPECT_GT(overlapped, 0);
  const Outcome report = longhaul_run({"report", out, "--out", dir_.path("report.html")});
  ASSERT_EQ(report.code, 0) << report.err;
  EXPECT_TRUE(data_of(file_text(dir_.path("report.html")))["left_out"].get<std::string>().empty());
}

/// Schedules that are late alone are where overlaps begin that are in time.
TEST_F(AdvisePlaces, StartFromWhatIsLateAlone) {
  const std::vector<std::string> more{"--set", "datacenter.west.gpus=4", "--set",
                                      "datacenter.east.gpus=4"};
  const auto plans = answer(more)["plans"];
  double alone = std::numeric_limits<double>::max();
  for (const auto& plan : plans)
    if (plan["overlap"].is_null()) alone = std::min(alone, plan["days"].get<double>());
  const double best = plans[0]["days"];
  ASSERT_LT(best, alone) << "an overlap is worth something";
  std::vector<std::string> with_deadline = more;
  with_deadline.insert(with_deadline.end(), {"--deadline", fmt::format("{}d", (best + alone) / 2)});
  const auto in_time = answer(with_deadline);
  EXPECT_EQ(in_time["plans"][0]["iteration_ns"], plans[0]["iteration_ns"]);
  EXPECT_TRUE(in_time["baseline_ns"].is_null());
}

}  // namespace
}  // namespace longhaul::test
