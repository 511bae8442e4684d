#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {

inline constexpr const char* kThreeReplicas = R"([scenario]
name = "tiny training"
[model]
layers = 4
hidden = 16
intermediate = 32
heads = 2
vocabulary = 32
sequence_length = 8
microbatch_size = 2
achieved_flops = 1e9
[parallel]
stages = 1
replicas = 3
microbatches = 2
gradient_sync = "compressed"
[train]
parts = 2
batch = [2, 1, 3]
staleness = 1
[train.compress]
keep = "10%"
block = 4
[train.costs]
copy_out = "50us"
compress = "100us"
merge = "100us"
copy_in = "50us"
[[datacenter]]
name = "west"
replicas = "0-1"
[[datacenter]]
name = "east"
replicas = "2"
[[link]]
between = ["west", "east"]
latency = "500us"
bandwidth = "200Mbps"
)";

/// Runs of bench_train.
class TrainRuns : public BenchPipeline {
protected:
  TrainRuns() {
    program_ = {LONGHAUL_BENCH_TRAIN};
    write_scenario(kThreeReplicas);
  }

  [[nodiscard]] std::vector<std::string> words(const std::string& methods,
                                               std::vector<std::string> more = {}) const {
    std::vector<std::string> all{
        scenario(),         "--data", "synthetic", "--held-out", "4",        "--methods", methods,
        "--max-iterations", "12",     "--points",  "4",          "--replay", "--out",     out(),
        "--deadline",       "2s",     "--lr-grid", "0.01"};
    for (std::size_t i = 0; i < more.size(); ++i) {  // in the place of what is there
      const auto there = std::ranges::find(all, more[i]);
      if (there == all.end() || !more[i].starts_with("--") || more[i] == "--set")
        all.push_back(more[i]);
      else
        *std::next(there) = more[++i];
    }
    return all;
  }
  [[nodiscard]] nlohmann::json curves() const { return record()["train"]["curves"]; }
};

}  // namespace longhaul::testing
