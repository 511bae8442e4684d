// Whole runs of bench_pipeline whose ranks are threads of one process: the same predictions, checks
// and reports as with processes.
#include <csignal>

#include "integration/runs/bench_pipeline_fixture.hpp"
#include "integration/runs/three_pipelines.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class ThreadRuns : public BenchPipeline {
protected:
  /// On `ranks` threads of one process, without mpirun.
  void start_threads(int ranks, Words options) {
    options.insert(options.end(), {"--ranks-per-process", std::to_string(ranks)});
    start(0, std::move(options));
  }
  int run_threads(int ranks, Words options) {
    start_threads(ranks, std::move(options));
    return finish();
  }
  /// The part of a record that does not depend on durations.
  static json timeless(const json& schedule) {
    json kept;
    for (const char* key : {"schedule", "predicted_ns", "n", "check", "checks", "wrong_messages",
                            "memory", "predicted"})
      kept[key] = schedule.at(key);
    return kept;
  }
  void expect_one_report() const {
    EXPECT_NE(output().find("the run ends"), std::string::npos) << output();
    EXPECT_EQ(output().find("the run ends"), output().rfind("the run ends")) << output();
  }
};

TEST_F(ThreadRuns, SayWhatProcessesSay) {
  const Words options{"--schedule", "1f1b,zbv", "--iterations", "2", "--out", out()};
  ASSERT_EQ(run(4, options), 0) << output();
  const json processes = record();
  std::filesystem::remove_all(out());
  ASSERT_EQ(run_threads(4, options), 0) << output();
  const json threads = record();
  ASSERT_EQ(threads["schedules"].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(threads["schedules"][i]["check"], "ok");
    EXPECT_EQ(timeless(threads["schedules"][i]), timeless(processes["schedules"][i]));
  }
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());

  const json& environment = threads["environment"];
  EXPECT_EQ(environment["ranks"], 4);
  EXPECT_EQ(environment["ranks_per_process"], 4);
  ASSERT_EQ(environment["hosts"].size(), 1u);
  EXPECT_EQ(environment["hosts"][0]["ranks"], json({0, 1, 2, 3}));
  EXPECT_EQ(environment["hosts"][0]["ranks_are"], "threads of one process");
  EXPECT_EQ(processes["environment"]["ranks_per_process"], 1);
  EXPECT_THAT(processes["environment"]["hosts"][0]["ranks_are"].get<std::string>(),
              ::testing::StartsWith("processes"));
}

TEST_F(ThreadRuns, LeaseLinksAndRelayAsProcessesDo) {
  write_scenario(kThreePipelines);
  const Words options{"--schedule", "atlas", "--iterations", "2", "--out", out()};
  ASSERT_EQ(run_threads(12, options), 0) << output();
  const json schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["check"], "ok");
  EXPECT_GT(schedule["lease"]["n"], 0);
  // Warm-up included; 2 boundaries, 4 microbatches, 3 replicas, both ways.
  constexpr int kMessages = 2 * 4 * 3 * 2;
  const json& checks = schedule["checks"];
  EXPECT_EQ(checks["messages_of_leg"]["wan"].get<int>() % (3 * kMessages), 0);
  EXPECT_GT(checks["messages_of_leg"]["wan"], 0);
  EXPECT_EQ(checks["relayed"].get<int>() * 3, checks["messages_of_leg"]["wan"].get<int>() * 4);
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(ThreadRuns, GoUnderMpirunToo) {
  ASSERT_EQ(run(1, {"--schedule", "1f1b", "--iterations", "1", "--comm", "grouped",
                    "--ranks-per-process=4"}),
            0)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("1f1b"), HasSubstr("ok")));
}

TEST_F(ThreadRuns, AdaptToLinksThatChange) {
  ASSERT_EQ(run_threads(4, {"--schedule", "1f1b,zb-h1", "--adaptive", "--iterations", "6",
                            "--change", "2:link.latency_ratio=8", "--out", out()}),
            0)
      << output();
  for (const json& schedule : schedules()) EXPECT_EQ(schedule["check"], "ok");
  EXPECT_FALSE(record()["switches"].empty());
}

TEST_F(ThreadRuns, ShowWhoIsWhere) {
  ASSERT_EQ(run_threads(4, {"--print-map", "--json"}), 0) << output();
  const std::string text = output();
  const json map = json::parse(text.substr(text.find('[')));
  ASSERT_EQ(map.size(), 4u);
  for (std::size_t rank = 0; rank < map.size(); ++rank) EXPECT_EQ(map[rank]["stage"], rank);
}

TEST_F(ThreadRuns, EndWithOneReportWhenAMessageIsLost) {
  EXPECT_EQ(run_threads(4, {"--schedule", "1f1b", "--iterations", "2", "--deadline", "1s",
                            "--fault", "lose@1:0:1"}),
            3)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("no progress"), HasSubstr("waits for: rank"),
                              HasSubstr("from rank 1"), HasSubstr("rank 0"), HasSubstr("rank 3")));
  expect_one_report();
}

TEST_F(ThreadRuns, EndWithOneReportWhenADeviceFails) {
  for (const int processes : {0, 1}) {
    EXPECT_EQ(run(processes, {"--schedule", "1f1b", "--iterations", "2", "--fault", "device@2:3:1",
                              "--ranks-per-process", "4"}),
              3)
        << output();
    EXPECT_THAT(output(), HasSubstr("the run ends: rank 2: its device failed in rank 2 (east"));
    expect_one_report();
  }
}

TEST_F(ThreadRuns, CountWhatIsHurt) {
  EXPECT_EQ(run_threads(4, {"--schedule", "1f1b", "--iterations", "2", "--warmup", "0", "--payload",
                            "1KiB", "--fault", "twice@1:0:1"}),
            1);
  EXPECT_THAT(output(), HasSubstr("2 unclaimed"));
  EXPECT_EQ(run_threads(4, {"--schedule", "1f1b", "--iterations", "2", "--warmup", "0", "--fault",
                            "corrupt@1:0:1"}),
            1);
  EXPECT_THAT(output(), HasSubstr("1 corrupted"));
}

TEST_F(ThreadRuns, EndWithOneReportWhenToldTo) {
  start_threads(4, {"--schedule", "1f1b", "--iterations", "100000", "--out", out()});
  const std::size_t finished = wait_for_iterations(2);
  kill(child_, SIGTERM);
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_EQ(finish(), 128 + SIGTERM);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 10s);
  EXPECT_THAT(output(), AllOf(HasSubstr("was told to end (signal 15, SIGTERM)"),
                              HasSubstr("rank 0"), HasSubstr("rank 3")));
  expect_one_report();
  expect_readable(finished);
}

TEST_F(ThreadRuns, GoOnWhereAKilledProcessStopped) {
  const Words options{"--schedule", "1f1b,zb-h1", "--iterations", "3", "--out", out()};
  Words faulty = options;
  faulty.insert(faulty.end(), {"--fault", "kill@1:4:2"});
  EXPECT_EQ(run_threads(4, faulty), 128 + SIGKILL) << "its ranks are one process";
  ASSERT_EQ(trace::finished_iterations(out()).size(), 2u) << output();
  Words resumed = options;
  resumed.push_back("--resume");
  ASSERT_EQ(run_threads(4, resumed), 0) << output();
  for (const json& schedule : schedules()) {
    EXPECT_EQ(schedule["n"], 3);
    EXPECT_EQ(schedule["check"], "ok");
  }
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
}

TEST_F(ThreadRuns, BadNumbersOfThemAreRefused) {
  EXPECT_EQ(run_threads(3, {"--schedule", "1f1b"}), 2);
  EXPECT_THAT(output(), AllOf(HasSubstr("needs 4 ranks"), HasSubstr("--ranks-per-process is 3"),
                              HasSubstr("Write --ranks-per-process 4.")));
  for (const char* count : {"0", "-1", "four", "100000", ""}) {
    EXPECT_EQ(run(0, {"--ranks-per-process", count}), 2) << count;
    EXPECT_THAT(output(), HasSubstr("--ranks-per-process")) << count;
  }
  EXPECT_EQ(run(2, {"--ranks-per-process", "2"}), 2);
  EXPECT_THAT(output(), AllOf(HasSubstr("on 2 processes"),
                              HasSubstr("scripts/mpi -n 1 ... --ranks-per-process 4")));
  EXPECT_EQ(output().find("on 2 processes"), output().rfind("on 2 processes")) << "said once";
}

}  // namespace
}  // namespace longhaul::testing
