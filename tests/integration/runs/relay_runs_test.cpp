// Whole runs of two pipelines that share the WAN, on 4 ranks: small enough for the sanitizers,
// under which .ci/run starts them too.
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Rank = 2 * replica + stage.
constexpr const char* kTwoPipelines = R"([scenario]
name = "two pipelines"
[costs]
forward = "2ms"
backward = "4ms"
recompute = "2ms"
activation = "2MiB"
message = "1MB"
weights = "1MiB"
[parallel]
stages = 2
replicas = 2
cell = 2
microbatches = 4
gradient_sync = "none"
[memory]
recompute = true
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
between = "all"
latency = "2ms"
[[node]]
datacenter = "west"
egress = "8Gbps"
ingress = "8Gbps"
internal = "100Gbps"
[[node]]
datacenter = "east"
egress = "8Gbps"
ingress = "8Gbps"
internal = "100Gbps"
)";

class RelayRuns : public BenchPipeline {
protected:
  RelayRuns() { write_scenario(kTwoPipelines); }
  /// Each pipeline sends half of each message itself, and relays half of the other's.
  void expect_relayed() const {
    EXPECT_THAT(output(), HasSubstr("payloads relayed"));
    const auto schedule = record()["schedules"][0];
    EXPECT_EQ(schedule["check"], "ok");
    constexpr int kMessages = 2 * 4 * 2 * 2;  // iterations, microbatches, replicas, both ways
    EXPECT_EQ(schedule["checks"]["messages_of_leg"]["wan"], 2 * kMessages);
    EXPECT_EQ(schedule["checks"]["messages_of_leg"]["scatter"], kMessages);
    EXPECT_EQ(schedule["checks"]["messages_of_leg"]["gather"], kMessages);
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  }
  const std::vector<std::string> atlas_{"--schedule",   "atlas", "--comm",   "decoupled",
                                        "--iterations", "2",     "--warmup", "0",
                                        "--out",        out()};
};

TEST_F(RelayRuns, FourProcesses) {
  ASSERT_EQ(run(4, atlas_), 0) << output();
  expect_relayed();
}

TEST_F(RelayRuns, FourThreads) {
  auto options = atlas_;
  options.insert(options.end(), {"--ranks-per-process", "4"});
  ASSERT_EQ(run(0, options), 0) << output();
  expect_relayed();
}

}  // namespace
}  // namespace longhaul::testing
