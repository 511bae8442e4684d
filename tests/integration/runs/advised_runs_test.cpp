// Runs of bench_pipeline on what `longhaul advise --out` writes for stages whose places were open.
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

constexpr const char* kOpenPlaces = R"([scenario]
name = "open"
[costs]
forward = "2ms"
dgrad = "2ms"
wgrad = "2ms"
optimizer = "1ms"
message = "100kB"
weights = "100kB"
[parallel]
stages = 2
microbatches = 4
gradient_sync = "all-reduce"
[[datacenter]]
name = "west"
gpus = 2
[[datacenter]]
name = "east"
gpus = 2
[[link]]
between = "all"
latency = "4ms"
bandwidth = "800Mbps"
)";

class AdvisedRuns : public BenchPipeline {};

TEST_F(AdvisedRuns, PlayPlacedPlansAsAdvised) {
  write_scenario(kOpenPlaces);
  const std::string advice = (scratch_.path() / "advice").string();
  program_ = {LONGHAUL_BINARY, "advise", scenario().string()};
  ASSERT_EQ(run(0, {"--search-moves", "20", "--set", "parallel.microbatches=3", "--out", advice}),
            0)
      << output();
  const nlohmann::json plans =
      nlohmann::json::parse(std::ifstream{advice + "/advice.json"})["plans"];
  ASSERT_FALSE(plans.empty());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    out_ = "run-" + std::to_string(i);
    const std::string plan = advice + "/plan-" + std::to_string(i + 1);
    program_ = {LONGHAUL_BENCH_PIPELINE, plan + ".toml"};
    const int ranks = plans[i]["gpus"].get<int>();
    ASSERT_EQ(run(0, {"--schedule", plan + ".csv", "--iterations", "2", "--ranks-per-process",
                      std::to_string(ranks), "--out", out()}),
              0)
        << output();
    const nlohmann::json played = schedules()[0];
    EXPECT_EQ(played["check"], "ok");
    EXPECT_EQ(played["predicted_ns"], plans[i]["iteration_ns"]);
  }
}

}  // namespace
}  // namespace longhaul::testing
