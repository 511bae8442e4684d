// Ranks that are more than (replica, stage): tensor ranks, groups that share weights, services, and
// replicas that differ, on ranks.
#include <set>
#include <tuple>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::IsEmpty;

class RankLayoutRuns : public BenchPipeline {
protected:
  /// Runs 1F1B on so many ranks; each of its rows is right.
  trace::Trace traced_run(int ranks, std::vector<std::string> settings) {
    std::vector<std::string> words{"--schedule", "1f1b", "--iterations", "2", "--out", out()};
    settings.insert(settings.end(), {"parallel.stages=2", "datacenter.west.stages=[0]",
                                     "datacenter.east.stages=[1]"});
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    EXPECT_EQ(run(ranks, words), 0) << output();
    EXPECT_EQ(record()["schedules"][0]["check"], "ok");
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
    return trace::read_trace(out() + "/trace.h5");
  }
};

TEST_F(RankLayoutRuns, TensorRanksOfAStageSendToTheirOwn) {
  const trace::Trace trace = traced_run(4, {"parallel.tensor=2"});
  std::set<std::pair<int, int>> pairs;
  for (const TimelineRow& row : trace.measured.rows)
    if (row.kind == RowKind::send) pairs.emplace(row.rank, row.peer);
  EXPECT_EQ(pairs, (std::set<std::pair<int, int>>{{0, 2}, {2, 0}, {1, 3}, {3, 1}}));
  EXPECT_EQ(trace.measured.rows.size(), 2 * trace.predicted.rows.size());
}

TEST_F(RankLayoutRuns, ReplicasThatDifferShareWeightsBesideAService) {
  write_scenario(std::string{kFourStages} +
                 "[[replica]]\nreplicas = [1]\nforward = \"4ms\"\n"
                 "[[service]]\nrole = \"controller\"\ndatacenter = \"east\"\n");
  const trace::Trace trace = traced_run(
      5, {"parallel.replicas=2", "parallel.microbatches=[4,2]", "parallel.gradient_sync=zero3"});
  std::set<int> ranks;
  std::map<int, int> forwards;  // of device 0, by replica
  int gathers = 0;
  for (const TimelineRow& row : trace.measured.rows) {
    ranks.insert(row.rank);
    if (row.iteration != 0) continue;
    if (row.kind == RowKind::F && row.device == 0) {
      ++forwards[row.replica];
      EXPECT_EQ(row.planned_ns, row.replica == 0 ? 2'000'000 : 4'000'000);
    }
    gathers += row.kind == RowKind::send && row.collective >= 0 ? 1 : 0;
  }
  EXPECT_EQ(ranks, (std::set{0, 1, 2, 3})) << "the service has nothing to do";
  EXPECT_EQ(forwards, (std::map<int, int>{{0, 4}, {1, 2}}));
  EXPECT_EQ(gathers, 2 * 2 * 2) << "of each stage a gather and a scatter, a message each way";
}

// What `plan --search parallel --emit` writes runs: of four ranks, in each of the ways that it
// keeps, with the time that follows the last backward, sums of replicas included, as a step.
TEST_F(RankLayoutRuns, PlansOfASearchRunAsTheyAreWritten) {
  write_scenario(
      "[model]\nlayers = 6\nhidden = 512\nintermediate = 2048\nheads = 8\nvocabulary = 512\n"
      "sequence_length = 128\nmicrobatch_size = 1\n[parallel]\nglobal_batch = 8\n"
      "[[datacenter]]\nname = \"west\"\n[[datacenter]]\nname = \"east\"\n"
      "[[link]]\nbetween = [\"west\", \"east\"]\nlatency = \"2ms\"\nbandwidth = \"8Gbps\"\n");
  const std::string plans = out() + "-plans";
  program_ = {LONGHAUL_BINARY, "plan"};
  ASSERT_EQ(run(0, {scenario().string(),
                    "--search",
                    "parallel",
                    "--gpus",
                    "4",
                    "--tensor",
                    "1,2",
                    "--data",
                    "1,2",
                    "--pipeline",
                    "2,4",
                    "--micro-batch",
                    "1",
                    "--extrapolate",
                    "--schedule",
                    "1f1b,cross-ud,best",
                    "--recompute",
                    "none",
                    "--sharding",
                    "none",
                    "--keep",
                    "all",
                    "--exhaustive",
                    "--emit",
                    plans,
                    "--json"}),
            0)
      << output();
  const auto found = nlohmann::json::parse(output())["plans"];
  std::set<std::tuple<int, int, int, std::string>> done;  // once for all placements
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& plan = found[i];
    const std::string order = plan["schedule"], own = plans + "/plan-" + std::to_string(i);
    if (!done.emplace(plan["tensor"], plan["data"], plan["pipeline"], order).second) continue;
    out_ = "run-" + std::to_string(i);
    program_ = {LONGHAUL_BENCH_PIPELINE, own + ".toml"};
    ASSERT_EQ(run(4, {"--schedule", order == "best" ? own + ".csv" : order, "--iterations", "2",
                      "--warmup", "0", "--out", out()}),
              0)
        << output();
    const auto schedule = schedules()[0];
    EXPECT_EQ(schedule["check"], "ok") << order;
    EXPECT_EQ(schedule["predicted_ns"], plan["iteration_ns"]) << order;
  }
  EXPECT_EQ(done.size(), 3U * 3U);
}

}  // namespace
}  // namespace longhaul::testing
