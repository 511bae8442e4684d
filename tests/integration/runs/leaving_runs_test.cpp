// Runs of bench_pipeline that a datacenter leaves between two iterations.
#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

class LeavingRuns : public BenchPipeline {
protected:
  /// What `stages` of kFourStages in one datacenter go on with.
  std::string write_rest(const std::string& site, int stages = 2) const {
    const std::string path = (scratch_.path() / "rest.toml").string();
    std::ofstream{path} << "[scenario]\nname = \"rest\"\n[costs]\nforward = \"4ms\"\n"
                           "dgrad = \"4ms\"\nwgrad = \"4ms\"\nmessage = \"1MiB\"\n"
                           "[parallel]\nstages = "
                        << stages << "\nmicrobatches = 4\n[[datacenter]]\nname = \"" << site
                        << "\"\n";
    return path;
  }
  Words leaving(const std::string& site, const std::string& rest) const {
    return {"--schedule", "zbv", "--iterations",    "5",    "--leave", site + "@3",
            "--rest",     rest,  "--rest-schedule", "1f1b", "--out",   out()};
  }
  static nlohmann::json read(const std::string& path) {
    return nlohmann::json::parse(std::ifstream{path});
  }
  static std::string page(const std::string& directory) {
    std::ifstream file{directory + "/report.html"};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  void expect_parts(const std::string& site, int idle) const {
    const nlohmann::json before = record(), after = read(out() + "/rest/record.json");
    EXPECT_FALSE(before.contains("left"));
    EXPECT_EQ(before["schedules"][0]["schedule"], "zbv");
    EXPECT_EQ(before["schedules"][0]["n"], 3);
    EXPECT_EQ(after["schedules"][0]["schedule"], "1f1b");
    EXPECT_EQ(after["schedules"][0]["n"], 2);
    // 1F1B of 2 stages, 4 microbatches: (4 + 1) of F, D and W together.
    EXPECT_EQ(after["schedules"][0]["predicted_ns"], 60'000'000);
    for (const auto& part : {before, after}) EXPECT_EQ(part["schedules"][0]["check"], "ok");
    EXPECT_EQ(after["left"]["site"], site);
    EXPECT_EQ(after["left"]["iteration"], 3);
    EXPECT_EQ(after["left"]["ranks"], 2);
    EXPECT_EQ(after["left"]["idle"], idle);
    EXPECT_GT(after["left"]["gap_ns"], 0);
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
    EXPECT_THAT(trace::validate_trace(out() + "/rest/trace.h5"), IsEmpty());
    EXPECT_THAT(output(), HasSubstr(site + " left after 3 iterations (2 ranks"));
    EXPECT_THAT(page(out() + "/rest"), HasSubstr("after " + site + " had left"));
    EXPECT_THAT(page(out()), Not(HasSubstr("had left")));
  }
};

TEST_F(LeavingRuns, TheOthersGoOn) {
  ASSERT_EQ(run(4, leaving("east", write_rest("west"))), 0) << output();
  expect_parts("east", 0);
}

TEST_F(LeavingRuns, TheFirstRankMayLeave) {
  ASSERT_EQ(run(4, leaving("west", write_rest("east"))), 0) << output();
  expect_parts("west", 0);
}

TEST_F(LeavingRuns, ThreadsLeaveToo) {
  Words options = leaving("west", write_rest("east"));
  options.insert(options.end(), {"--ranks-per-process", "4"});
  ASSERT_EQ(run(0, options), 0) << output();
  expect_parts("west", 0);
}

TEST_F(LeavingRuns, WhoHasNoPlaceSleeps) {
  Words options = leaving("east", write_rest("west", 1));
  ASSERT_EQ(run(4, options), 0) << output();
  const nlohmann::json after = read(out() + "/rest/record.json");
  EXPECT_EQ(after["left"]["idle"], 1);
  EXPECT_EQ(after["schedules"][0]["check"], "ok");
}

/// The values of one part are not the other's.
TEST_F(LeavingRuns, TheRestHasValuesOfItsOwn) {
  Words options = leaving("east", write_rest("west"));
  options.insert(options.end(),
                 {"--rest-set", "parallel.microbatches=2", "--rest-overlap", "none"});
  ASSERT_EQ(run(4, options), 0) << output();
  const nlohmann::json before = record(), after = read(out() + "/rest/record.json");
  EXPECT_EQ(after["schedules"][0]["predicted_ns"], 36'000'000) << "(2 + 1) of F, D and W";
  EXPECT_EQ(before["schedules"][0]["n"], 3);
}

/// What is wrong is said once, before the first iteration, and no rank waits for another.
TEST_F(LeavingRuns, WhatIsWrongIsSaidBeforeTheFirstIteration) {
  const auto refused = [&](Words options, int code) {
    EXPECT_EQ(run(4, std::move(options)), code) << output();
    EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
    const std::string said = output();
    EXPECT_EQ(said.find("longhaul:"), said.rfind("longhaul:")) << said;
    return said;
  };
  const std::string rest = write_rest("west");
  Words options = leaving("south", rest);
  EXPECT_THAT(refused(options, 2), HasSubstr("no datacenter south (west, east)"));
  EXPECT_THAT(refused(leaving("west", rest), 2), HasSubstr("which leaves"));
  options = leaving("east", rest);
  options[9] = "nonsense";  // --rest-schedule
  EXPECT_THAT(refused(options, 2), HasSubstr("nonsense"));
  options = leaving("east", rest);
  options[1] = "1f1b,zbv";
  EXPECT_THAT(refused(options, 2), HasSubstr("each part of the run is of one"));
  options = leaving("east", rest);
  options[3] = "3";  // --iterations
  EXPECT_THAT(refused(options, 2), HasSubstr("Give an iteration from 1 to 2"));
  options = leaving("east", (scratch_.path() / "nowhere.toml").string());
  EXPECT_THAT(refused(options, 2), HasSubstr("nowhere.toml"));
  options = leaving("east", rest);
  options.push_back("--adaptive");
  EXPECT_THAT(refused(options, 2), HasSubstr("--adaptive and --leave"));
  options = leaving("east", rest);
  options.insert(options.end(), {"--rest-set", "parallel.microbatchs=2"});
  EXPECT_THAT(refused(options, 2),
              AllOf(HasSubstr("--rest-set parallel.microbatchs=2: "),
                    HasSubstr("Did you mean \"microbatches\"?"), Not(HasSubstr(" --set"))));
  options.back() = "microbatches";
  EXPECT_THAT(refused(options, 2), HasSubstr("--rest-set microbatches: there is no \"=\""));
  options.back() = "parallel=2";
  EXPECT_THAT(refused(options, 2), HasSubstr("Write --rest-set parallel.KEY=VALUE."));
  // Values of both parts are of --set.
  options.back() = "parallel.microbatchs=2";
  *(options.end() - 2) = "--set";
  EXPECT_THAT(refused(options, 2), HasSubstr(": --set parallel.microbatchs=2: "));
  options = leaving("east", rest);
  options.insert(options.end(), {"--rest-overlap", "zero33"});
  EXPECT_THAT(refused(options, 2), HasSubstr("--rest-overlap: there is no overlap \"zero33\". "
                                             "Did you mean \"zero3\"?"));
  options = {"--rest-overlap", "zero3", "--out", out()};
  EXPECT_THAT(refused(options, 2), HasSubstr("--leave and --rest belong together"));
}

/// Found by the rest alone, when the others have left: all ranks end.
TEST_F(LeavingRuns, WhatTheRestFindsWrongEndsAll) {
  Words options = leaving("west", write_rest("east"));
  options[3] = "80";
  options[5] = "west@60";
  start(4, options);
  ASSERT_GE(wait_for_iterations(1), 1u) << output();
  std::ofstream{scratch_.path() / "rest.toml"} << "nonsense";
  EXPECT_EQ(finish(), 2) << output();
  EXPECT_THAT(output(), HasSubstr("rest.toml:1"));
  EXPECT_EQ(record()["schedules"][0]["n"], 60);
}

TEST_F(LeavingRuns, ARestThatIsKilledEndsAll) {
  Words options = leaving("east", write_rest("west"));
  options[3] = "400";
  start(4, options);
  for (int i = 0; i < 2000 && !std::filesystem::exists(out() + "/rest/run.h5"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  ASSERT_TRUE(std::filesystem::exists(out() + "/rest/run.h5")) << output();
  kill(rank_pids().front(), SIGKILL);
  EXPECT_NE(finish(), 0);
}

}  // namespace
}  // namespace longhaul::testing
