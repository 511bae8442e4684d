// SIGTERM drains a run of bench_prefill: nothing new begins, what runs ends, and what was done is
// written.
#include "prefill_runs_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// All requests of a record have one answer, and its counts are theirs.
void expect_sound(const json& record) {
  EXPECT_EQ(record["wrong"], "");
  const json& schedule = record["schedules"][0];
  std::map<std::string, std::int64_t> counts;
  std::set<std::int64_t> ids;
  for (const json& each : schedule["requests_detail"]) {
    ++counts[each["answer"]];
    EXPECT_TRUE(ids.insert(each["id"].get<std::int64_t>()).second) << each;
  }
  std::int64_t refused = 0;
  for (const json& each : schedule["requests"]["refused"]) refused += each.get<std::int64_t>();
  EXPECT_EQ(schedule["requests"]["offered"], ids.size());
  EXPECT_EQ(schedule["requests"]["done"], counts["done"]);
  EXPECT_EQ(refused, counts["refused"]);
}

class Drain : public PrefillRuns, public ::testing::WithParamInterface<int> {};  // processes

// The part that was stopped has record and trace; --resume goes on to the end.
TEST_P(Drain, APlannedRunEndsWithItsStretchAndGoesOn) {
  const std::vector<std::string> options{"--pairs", "24", "--resume"};
  start_planned(GetParam(), options);
  (void)wait_for_iterations(4);  // two pairs
  kill(child_, SIGTERM);
  ASSERT_EQ(finish(), 143) << output();
  EXPECT_THAT(output(), HasSubstr("stopped by SIGTERM after "));
  EXPECT_THAT(output(), HasSubstr("; --resume goes on"));
  EXPECT_EQ(output().find("the run ends"), std::string::npos) << output();
  const json stopped = record();
  const int pairs = stopped["stopped"]["pairs"];
  EXPECT_GE(pairs, 2);
  EXPECT_LT(pairs, 24);
  EXPECT_EQ(stopped["pairs"]["on_ns"].size(), pairs);
  EXPECT_GT(stopped["schedules"][0]["requests"]["done"], 0);
  expect_sound(stopped);
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());

  start_planned(GetParam(), options);
  ASSERT_EQ(finish(), 0) << output();
  const json whole = record();
  EXPECT_FALSE(whole.contains("stopped"));
  EXPECT_EQ(whole["pairs"]["on_ns"].size(), 24);
  EXPECT_EQ(whole["environment"]["parts"].back()["finished_before"], pairs);
  for (int i = 0; i < pairs; ++i)
    EXPECT_EQ(whole["pairs"]["on_ns"][i], stopped["pairs"]["on_ns"][i]) << "played once";
  expect_sound(whole);
  EXPECT_THAT(answer_of_tool("check " + out()), ::testing::StartsWith("0: "));
  EXPECT_TRUE(std::filesystem::exists(out() + "/unfinished-1/record.json"));
}

// Without a backlog each request of the file has an answer: those of later stretches are refused.
TEST_P(Drain, RefusesWhatItsPlanHasLater) {
  std::ofstream requests{requests_file()};
  for (int i = 0; i < 400; ++i)
    requests << "{\"timestamp\": " << 20 * i << ", \"input_length\": 9}\n";
  requests.close();
  start_prefill(GetParam(), {"--pairs", "60", "--requests", requests_file()});
  (void)wait_for_iterations(2);
  kill(child_, SIGTERM);
  ASSERT_EQ(finish(), 143) << output();
  const json stopped = record();
  expect_sound(stopped);
  const json& counts = stopped["schedules"][0]["requests"];
  EXPECT_EQ(counts["offered"], 400);
  EXPECT_GT(counts["done"], 0);
  EXPECT_GT(counts["refused"]["closed"], 200) << "160 come after the last stretch";
  EXPECT_EQ(counts["refused"]["closed"],
            stopped["schedules"][0]["predicted_requests"]["refused"]["closed"]);
}

// Prompts that wait are refused as the signal comes, those that run end, and what a client was told
// is what the record says.
TEST_P(Drain, ALiveRunAnswersAllItsClients) {
  start_listening(GetParam());
  Client silent{socket()}, client{socket()};
  std::optional<Client> goes{std::in_place, socket()};
  std::int64_t asked = 0;
  for (; asked < 60; ++asked) client.ask(asked, 40);
  for (int i = 0; i < 60; ++i) goes->ask(i, 40);
  silent.ask(1);
  client.listen([&] { return client.count("done") >= 2; });
  EXPECT_EQ(client.count("refused"), 0);
  goes.reset();
  for (; asked < 400; ++asked) client.ask(asked, 40);
  client.listen([&] { return client.count("done") >= 8; });
  kill(child_, SIGTERM);
  for (; asked < 420; ++asked) client.ask(asked, 40);
  client.listen_to_the_end();
  EXPECT_EQ(finish(), 143) << output();
  client.expect_no_second_answer();
  for (int id = 0; id < 400; ++id)
    EXPECT_TRUE(client.answer_to(std::to_string(id))) << "request " << id;
  EXPECT_GE(client.count("done"), 8);
  EXPECT_GT(client.count("refused"), 100);
  EXPECT_EQ(client.count("failed"), 0);
  EXPECT_EQ(client.answer_to("399")->reason, "closed");
  const json stopped = record();
  expect_sound(stopped);
  const json& counts = stopped["schedules"][0]["requests"];
  EXPECT_GT(counts["cancelled"], 0) << "of the client that went";
  EXPECT_GE(counts["refused"]["closed"], client.count("refused"));
  EXPECT_GE(counts["done"], client.count("done"));
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());
  EXPECT_THAT(answer_of_tool("check " + out()), ::testing::StartsWith("0: "));
}

// Stretches of 16 s.
TEST_P(Drain, ASecondSignalEndsTheRunAtOnce) {
  start_planned(GetParam(), {"--pairs", "2", "--warmup", "0", "--stretch", "400"});
  for (int i = 0; i < 6000 && !std::filesystem::exists(out() + "/run.h5"); ++i)
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(2s);
  kill(child_, SIGTERM);
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(waitpid(child_, nullptr, WNOHANG), 0) << "it drains: " << output();
  const TimePoint asked = now();
  kill(child_, SIGTERM);
  EXPECT_EQ(finish(), 143) << output();
  EXPECT_LT(now() - asked, 12s);
  EXPECT_THAT(output(), HasSubstr("was told to end (signal 15, SIGTERM). What the ranks did last"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Drain, ::testing::Values(0, 6), [](const auto& tested) {
  return tested.param == 0 ? "threads" : "mpirun";
});

class DrainOfThreads : public PrefillRuns {};

// Before a stretch is measured there is nothing to write.
TEST_F(DrainOfThreads, InTheWarmUpEndsAsBySignal) {
  start_planned(0, {"--pairs", "2", "--warmup", "100"});
  for (int i = 0; i < 6000 && !std::filesystem::exists(out() + "/run.h5"); ++i)
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(2s);
  kill(child_, SIGTERM);
  EXPECT_EQ(finish(), 143) << output();
  EXPECT_THAT(output(), HasSubstr("was told to end (signal 15, SIGTERM). What the ranks did last"));
  EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
}

// A terminal's Ctrl-C is no SIGTERM.
TEST_F(DrainOfThreads, IsOfSigtermAlone) {
  start_listening(0);
  Client client{socket()};
  for (int i = 0; i < 200; ++i) client.ask(i, 40);
  client.listen([&] { return client.count("done") >= 2; });
  kill(child_, SIGINT);
  client.listen_to_the_end();
  EXPECT_EQ(finish(), 130) << output();
  client.expect_one_answer_each();
  EXPECT_GT(client.count("failed"), 100);
  EXPECT_FALSE(std::filesystem::exists(out() + "/record.json"));
}

}  // namespace
}  // namespace longhaul::testing
