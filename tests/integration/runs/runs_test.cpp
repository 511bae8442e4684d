// Whole runs of bench_pipeline, from outside: what goes well, what it leaves, and what is
// refused.
#include <sys/stat.h>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RunsTest : public BenchPipeline {};

TEST_F(RunsTest, AGoodRunLeavesARecordAndATraceThatValidates) {
  for (const char* comm : {"decoupled", "grouped"}) {
    std::filesystem::remove_all(out());
    ASSERT_EQ(
        run(4, {"--schedule", "1f1b,zb-h1", "--iterations", "2", "--comm", comm, "--out", out()}),
        0)
        << output();
    EXPECT_THAT(output(), AllOf(HasSubstr("1f1b"), HasSubstr("zb-h1"), HasSubstr("ok")));
    EXPECT_TRUE(std::filesystem::exists(out() + "/record.json"));
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
    const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
    EXPECT_EQ(trace.measured.rows.size(), 2 * trace.predicted.rows.size());
    EXPECT_THAT(output(), HasSubstr("four: 4 ranks, sent 64 KiB of 1 MiB, time_scale 1; "
                                    "measured, " +
                                    std::string{comm} + "\n"));
    EXPECT_THAT(output(), HasSubstr("machine: load "));
    const nlohmann::json found = record();
    EXPECT_EQ(found["message_bytes"], 1 << 20);
    EXPECT_EQ(found["payload_bytes"], 64 << 10);
    EXPECT_EQ(found["sent"]["messages"],
              (nlohmann::json{{"sent_bytes", 64 << 10}, {"nominal_bytes", 1 << 20}}));
    EXPECT_EQ(found["sent"]["whole"], false);
    const auto& load = found["environment"]["load_average"];
    EXPECT_GE(load["during"][0], load["before"][0]);
    EXPECT_GE(load["during"][0], load["after"][0]);
    for (const auto& schedule : found["schedules"]) {
      EXPECT_GT(schedule["timer_lateness"]["n"], 0);
      EXPECT_GT(schedule["credit"]["ops"], 0);
      EXPECT_LE(schedule["credit"]["credited"], schedule["credit"]["ops"]);
      EXPECT_LE(schedule["credit"]["largest_ns"], 1'000'000);
      EXPECT_GE(schedule["without_credit"]["measured_median_ns"], schedule["measured_median_ns"]);
      EXPECT_GT(schedule["critical_messages"], 0);
      EXPECT_EQ(schedule["credible"], schedule["doubts"].empty());
    }
  }
}

/// A block of 300 ns takes what a rank's loop takes: the record and the table say so.
TEST_F(RunsTest, BlocksTooShortToPlayAreDoubtful) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--set", "run.time_scale=0.0001",
                    "--trace", "off", "--out", out()}),
            0)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("time_scale 0.0001 (times are the scenario's own)"),
                              HasSubstr("ok, doubtful"),
                              HasSubstr("blocks of 300 ns cannot be played here")));
  const auto schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["check"], "ok") << "messages were right";
  EXPECT_EQ(schedule["credible"], false);
  EXPECT_NEAR(schedule["own_scale"]["predicted_ns"].get<double>(),
              1e4 * schedule["predicted_ns"].get<double>(), 1e4);
}

/// No one may ever write to a named pipe: a run that read it would hang.
TEST_F(RunsTest, NamedPipesAreRefusedAtOnce) {
  const std::string pipe = out() + ".csv";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(run(4, {"--schedule", pipe}), 2);
  EXPECT_THAT(output(), HasSubstr("it is a named pipe"));
  std::filesystem::remove(scenario());
  ASSERT_EQ(mkfifo(scenario().c_str(), 0600), 0);
  EXPECT_EQ(run(4, {}), 2);
  EXPECT_THAT(output(), HasSubstr("it is a named pipe"));
}

TEST_F(RunsTest, WithoutATraceItMeasuresAllTheSame) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--trace", "off", "--out", out()}),
            0)
      << output();
  EXPECT_EQ(record()["schedules"][0]["samples_ns"].size(), 2U);
  EXPECT_EQ(record()["environment"]["trace"], "off");
  EXPECT_GT(record()["environment"]["iterations_ns"], record()["schedules"][0]["samples_ns"][0]);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{out()}, {}), 1) << "record.json";
  EXPECT_EQ(run(4, {"--trace", "off", "--resume", "--out", out()}), 2);
  EXPECT_THAT(output(), HasSubstr("--resume needs --trace on"));
}

TEST_F(RunsTest, RankZeroLooksForBestAndAllRunIt) {
  const auto run_best = [&](const std::string& time_scale) {
    std::filesystem::remove_all(out());
    EXPECT_EQ(run(4, {"--schedule", "1f1b,best", "--search-moves", "200", "--search-threads", "1",
                      "--iterations", "1", "--warmup", "0", "--set", "run.time_scale=" + time_scale,
                      "--out", out()}),
              0)
        << output();
    return record()["schedules"];
  };
  const auto schedules = run_best("1");
  EXPECT_EQ(schedules[1]["schedule"], "best");
  EXPECT_EQ(schedules[1]["check"], "ok");
  EXPECT_LE(schedules[1]["predicted_ns"], schedules[0]["predicted_ns"]);
  EXPECT_FALSE(schedules[0].contains("planning")) << "it was generated";
  const auto& planning = schedules[1]["planning"];
  EXPECT_EQ(planning["makespan_ns"], schedules[1]["predicted_ns"]);
  EXPECT_FALSE(planning["candidates"].empty());
  EXPECT_EQ(run_best("2")[1]["planning"], planning) << "it is looked for in times of the model";
}

TEST_F(RunsTest, NothingIsOverwritten) {
  std::filesystem::create_directory(out());
  std::ofstream{out() + "/precious"} << "work of a night";
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--out", out()}), 2);
  EXPECT_THAT(output(), HasSubstr("not empty"));
  std::ifstream kept{out() + "/precious"};
  std::string text;
  std::getline(kept, text);
  EXPECT_EQ(text, "work of a night");
}

TEST_F(RunsTest, ADifferenceAboveTheMostIsExitCode1) {
  const std::vector<std::string> work{"--schedule", "1f1b", "--iterations", "1"};
  const auto with_most = [&](const char* most) {
    std::vector<std::string> arguments = work;
    arguments.insert(arguments.end(), {"--max-difference", most});
    return run(4, arguments);
  };
  EXPECT_EQ(with_most("100000%"), 0) << output();
  EXPECT_EQ(with_most("0.0000001%"), 1) << "no run is that close";
  EXPECT_THAT(output(), HasSubstr("off the prediction, more than 1e-07%"));
}

TEST_F(RunsTest, BadInputIsOneMessageAndExitCode2) {
  const std::vector<std::vector<std::string>> slips{{"--schedule", "1f1c"},
                                                    {"--comm", "coupled"},
                                                    {"--emulate", "maybe"},
                                                    {"--set", "link.latency=40"},
                                                    {"--deadline", "0s"},
                                                    {"--payload", "1"},
                                                    {"--schedule", "/no/such.csv"},
                                                    {"--iterations", "0"},
                                                    {"--nonsense"},
                                                    {"--credit", "soon"},
                                                    {"--fault", "trip@1:2"},
                                                    {"--search-time", "1"},
                                                    {"--search-moves", "few"},
                                                    {"--placement", "wive"},
                                                    {"--max-difference", "2"},
                                                    {"--credit", "-1ms"}};
  for (const auto& slip : slips) {
    EXPECT_EQ(run(4, slip), 2) << slip.front();
    const std::string text = output();
    const std::size_t at = text.find("longhaul: ");
    EXPECT_NE(at, std::string::npos) << text;
    EXPECT_EQ(text.find("longhaul: ", at + 1), std::string::npos) << text;
    EXPECT_LT(seconds_, 20);
  }
}

TEST_F(RunsTest, AMissingScenarioIsOneMessage) {
  std::filesystem::remove(scenario());
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--out", out()}), 2);
  const std::string text = output();
  const std::size_t at = text.find("longhaul: ");
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find("longhaul: ", at + 1), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(out())) << "nothing is written";
}

TEST_F(RunsTest, TheNumberOfRanksIsNamed) {
  EXPECT_EQ(run(2, {"--schedule", "1f1b"}), 2);
  EXPECT_THAT(output(), AllOf(HasSubstr("needs 4 ranks"), HasSubstr("scripts/mpi -n 4"),
                              HasSubstr("--nodes=2 --ntasks-per-node=2")));
}

TEST_F(RunsTest, AMapIsPrintedAndNothingRuns) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--print-map", "--json", "--out", out()}), 0) << output();
  const std::string text = output();
  const auto map = nlohmann::json::parse(text.substr(text.find('[')));
  ASSERT_EQ(map.size(), 4U);
  for (std::size_t rank = 0; rank < map.size(); ++rank) {
    EXPECT_EQ(map[rank]["rank"], rank);
    EXPECT_EQ(map[rank]["stage"], rank);
    EXPECT_EQ(map[rank]["datacenter"], rank < 2 ? "west" : "east");
    EXPECT_EQ(map[rank]["host"], map[0]["host"]);
    EXPECT_FALSE(map[rank]["cores"].get<std::string>().empty());
  }
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(RunsTest, WhatStaticBringsButCannotRunIsListedAsSkipped) {
  const std::vector<std::string> shape{
      "--set", "parallel.microbatches=6", "--iterations", "1", "--warmup", "0"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), shape.begin(), shape.end());
    return words;
  };
  ASSERT_EQ(run(4, with({"--schedule", "static", "--out", out()})), 0) << output();
  EXPECT_THAT(output(), HasSubstr("skipped interleaved-1f1b: "));
  const auto skipped = record()["skipped"];
  ASSERT_EQ(skipped.size(), 1u) << skipped;
  EXPECT_EQ(skipped[0]["schedule"], "interleaved-1f1b");
  EXPECT_NE(skipped[0]["reason"], "");
  EXPECT_EQ(run(4, with({"--schedule", "1f1b,interleaved-1f1b"})), 2) << "it was named";
  EXPECT_THAT(output(), Not(HasSubstr("predicted"))) << "nothing ran";
}

/// The last stage has no link back to the first, which interleaving needs.
TEST_F(RunsTest, AScheduleWithoutItsLinkIsSkippedToo) {
  write_scenario(R"([parallel]
stages = 3
microbatches = 6
[costs]
forward = "1ms"
message = "1MiB"
[[datacenter]]
name = "a"
stages = [0]
[[datacenter]]
name = "b"
stages = [1]
[[datacenter]]
name = "c"
stages = [2]
[[link]]
between = ["a", "b"]
latency = "1ms"
[[link]]
between = ["b", "c"]
latency = "1ms"
)");
  ASSERT_EQ(run(3, {"--schedule", "static", "--iterations", "1", "--warmup", "0"}), 0) << output();
  EXPECT_THAT(output(), HasSubstr("skipped interleaved-1f1b: "));
  EXPECT_EQ(run(3, {"--schedule", "interleaved-1f1b", "--iterations", "1"}), 2);
}

TEST_F(RunsTest, WhatDoesNotFitIsSaidBeforeAndMarked) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--warmup", "0", "--set",
                    "memory.capacity=1MiB", "--out", out()}),
            0)
      << output();
  const std::string text = output();
  EXPECT_THAT(text, HasSubstr("1f1b does not fit on device 0"));
  EXPECT_LT(text.find("does not fit"), text.find("predicted"));
  const auto schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["fits"], false);
  EXPECT_GT(schedule["memory"][0]["total_bytes"], schedule["memory"][0]["capacity_bytes"]);
}

TEST_F(RunsTest, OccupancyOfLinksIsPredictedAndMeasured) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "2", "--out", out()}), 0) << output();
  const auto schedule = record()["schedules"][0];
  const auto& predicted = schedule["predicted"]["resources"];
  const auto& measured = schedule["measured"]["resources"];
  ASSERT_EQ(predicted.size(), measured.size());
  std::int64_t held = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    EXPECT_EQ(predicted[i]["resource"], measured[i]["resource"]);
    EXPECT_EQ(predicted[i]["holds"], measured[i]["holds"]);
    EXPECT_GE(measured[i]["busy_ns"].get<std::int64_t>(), 0);
    held += predicted[i]["busy_ns"].get<std::int64_t>();
  }
  EXPECT_GT(held, 0) << "the link between the datacenters takes time";
  EXPECT_EQ(schedule["fits"], true) << "no capacity is given";
}

TEST_F(RunsTest, WithoutEmulationItSaysWhatIsCompared) {
  ASSERT_EQ(run(4, {"--schedule", "1f1b", "--iterations", "1", "--emulate", "off", "--set",
                    "link.sharing=datacenter", "--out", out()}),
            0)
      << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("emulation is off"), HasSubstr("ok")));
  EXPECT_EQ(record()["network"], "as it is");
  EXPECT_EQ(record()["predicted_for"], "the links of the scenario");
  EXPECT_THAT(trace::read_trace(out() + "/trace.h5").info.environment,
              AllOf(HasSubstr(R"("emulate":"off")"), HasSubstr(R"("text":"1 MiB sent whole")")));
}

/// Messages between stages and steps of collectives: all of them, or what was asked for.
TEST_F(RunsTest, WithoutEmulationItSendsWholeMessages) {
  const std::vector<std::string> options{
      "--schedule", "1f1b",  "--iterations", "1",     "--emulate",
      "off",        "--out", out(),          "--set", "parallel.replicas=2"};
  ASSERT_EQ(run(8, options), 0) << output();
  EXPECT_THAT(output(), HasSubstr("four: 8 ranks, 1 MiB sent whole; collectives: 512 KiB sent "
                                  "whole, time_scale 1"));
  EXPECT_EQ(record()["sent"]["whole"], true);
  EXPECT_EQ(record()["sent"]["collectives"]["sent_bytes"], 512 << 10) << "halves of the weights";
  EXPECT_EQ(record()["payload_bytes"], 1 << 20);
  EXPECT_EQ(record()["schedules"][0]["check"], "ok");
  std::filesystem::remove_all(out());
  std::vector<std::string> capped = options;
  capped.insert(capped.end(), {"--payload", "100KiB"});
  ASSERT_EQ(run(8, capped), 0) << output();
  EXPECT_THAT(output(), HasSubstr("sent 100 KiB of 1 MiB; collectives: sent 100 KiB of 512 KiB"));
  EXPECT_EQ(record()["schedules"][0]["check"], "ok");
}

TEST_F(RunsTest, PayloadsThatTakeTooMuchMemoryAreRefused) {
  EXPECT_EQ(run(4, {"--schedule", "1f1b", "--payload", "1GiB", "--set", "costs.message=1TiB"}), 2);
  EXPECT_THAT(output(), AllOf(HasSubstr("--payload 1 GiB: messages take"), HasSubstr("Give less")));
}

}  // namespace
}  // namespace longhaul::testing
