// A rank of a run that serves clients is killed or frozen, a client is frozen, a server begins
// anew: no request is answered twice, none is left without a word where its controller can speak.
#include <ostream>

#include "prefill_runs_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

struct Fault {
  const char* name;
  std::size_t rank;
  int signal;

  friend void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
};

class ServiceFaults : public PrefillRuns, public ::testing::WithParamInterface<Fault> {
protected:
  /// Asks, hears some answers, does it to the rank and listens to the end of the run.
  void injure(Client& client) {
    for (int i = 0; i < 300; ++i) client.ask(i, 40);
    client.listen([&] { return client.count("done") >= 4; });
    (void)wait_for_iterations(2);
    const std::vector<int> pids = rank_pids();
    ASSERT_EQ(pids.size(), 6U) << output();
    kill(pids[GetParam().rank], GetParam().signal);
    client.listen_to_the_end();
    EXPECT_TRUE(client.is_over());
    const int code = finish();
    EXPECT_TRUE(code == 3 || code == 137) << code << ": " << output();
  }
};

TEST_P(ServiceFaults, AnswerNoRequestTwiceAndFailWhatWaits) {
  start_listening(6, {"--kv", "layerwise"});
  Client client{socket()};
  injure(client);
  const bool is_killed = GetParam().signal == SIGKILL;
  EXPECT_THAT(output(),
              HasSubstr(fmt::format("the run ends: rank {} is {}", GetParam().rank,
                                    is_killed ? "gone (killed or crashed)" : "stopped (frozen")));
  client.expect_no_second_answer();
  EXPECT_GE(client.count("done"), 4);
  EXPECT_EQ(client.count("refused") + client.count("cancelled"), 0);
  constexpr std::size_t kController = 4;
  if (GetParam().rank != kController) {
    // Requests that had a place on the rank fail by its name, others with the run. A frozen one is
    // awake again where another rank has ended the run first (mpirun wakes it).
    const std::string gone = fmt::format("rank {} is gone", GetParam().rank);
    const bool is_named = output().find(gone + ": its requests have failed: ") != std::string::npos;
    EXPECT_TRUE(is_named || !is_killed) << output();
    EXPECT_EQ(client.count_failed(gone) > 0, is_named);
    client.expect_one_answer_each();
    EXPECT_GT(client.count("failed"), 0);
  } else if (is_killed) {  // mpirun wakes a frozen one before it ends it
    EXPECT_EQ(client.count("failed"), 0) << "its connection ends: no one is left to say so";
  }
  expect_stretches(2);

  // A new server takes the address of the one that was killed.
  out_ = "again";
  start_listening(6, {"--kv", "layerwise"});
  Client next{socket()};
  for (int i = 0; i < 4; ++i) next.ask(i);
  next.listen([&] { return next.count("done") == 4; });
  EXPECT_EQ(next.count("done"), 4);
  kill(child_, SIGTERM);
  EXPECT_EQ(finish(), 143) << output();
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, ServiceFaults,
    ::testing::Values(Fault{"KilledTraining", 1, SIGKILL}, Fault{"FrozenTraining", 1, SIGSTOP},
                      Fault{"KilledController", 4, SIGKILL}, Fault{"FrozenController", 4, SIGSTOP},
                      Fault{"KilledDecodeRank", 5, SIGKILL}, Fault{"FrozenDecodeRank", 5, SIGSTOP}),
    [](const auto& tested) { return tested.param.name; });

class DeadController : public PrefillRuns {};

// The datacenter's controller dies in the second stretch, and the inference controller beside it
// goes on: what waits for a start fails by name, and so does what comes later. Training is played
// to its end, and the record has what clients were told.
TEST_F(DeadController, FailsWhatWaitsWhileTrainingGoesOn) {
  write_scenario(std::string{kServing} + kDecode);
  start_prefill(0, {"--controller", "live", "--listen", "unix:" + socket().string(), "--pairs", "4",
                    "--warmup", "0", "--kv", "layerwise", "--set", "run.time_scale=10", "--fault",
                    "controller@west:1s"});
  Client client{socket()};
  for (int i = 0; i < 300; ++i) client.ask(i, 40);
  client.listen([&] { return client.count("failed") > 0; });
  client.ask(1000, 40);
  client.listen_to_the_end();
  EXPECT_EQ(finish(), 0) << output();
  client.expect_one_answer_each();
  EXPECT_GT(client.count("done"), 0);
  const std::string gone = "the controller of west is gone";
  EXPECT_EQ(client.count_failed(gone), client.count("failed"));
  ASSERT_TRUE(client.answer_to("1000"));
  EXPECT_EQ(client.answer_to("1000")->reason, gone);
  const nlohmann::json made = record();
  EXPECT_EQ(made["wrong"], "");
  EXPECT_EQ(made["pairs"]["on_ns"].size(), 4U);
  const nlohmann::json& requests = made["schedules"][0]["requests"];
  EXPECT_EQ(requests["failed"], client.count("failed"));
  EXPECT_EQ(requests["done"], client.count("done"));
  EXPECT_EQ(made["roles"][1]["role"], "inference controller");
  EXPECT_EQ(made["roles"][2]["role"], "BubbleTea controller");
  EXPECT_EQ(made["roles"][2]["datacenter"], "west");
  EXPECT_EQ(made["roles"][3]["ranks"], nlohmann::json::array({5}));
}

class FrozenClient : public PrefillRuns {};

// One that is stopped reads nothing, and has more answers than its socket holds (about 280): others
// are served, and it gets its own when it goes on.
TEST_F(FrozenClient, HoldsNoOneUp) {
  start_listening(0);
  const pid_t frozen = fork();
  if (frozen == 0) {
    try {
      Client client{socket()};
      client.send_bad_lines(2000);
      for (int i = 0; i < 20; ++i) client.ask(i);
      raise(SIGSTOP);
      client.listen([&] { return client.count("done") == 20; });
      _exit(client.count("done") == 20 ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  waitpid(frozen, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status));
  Client client{socket()};
  for (int i = 0; i < 20; ++i) client.ask(i);
  client.listen([&] { return client.count("done") == 20; });
  EXPECT_EQ(client.count("done"), 20);
  kill(frozen, SIGCONT);
  waitpid(frozen, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  kill(child_, SIGTERM);
  EXPECT_EQ(finish(), 143) << output();
  EXPECT_EQ(record()["schedules"][0]["requests"]["done"], 40);
}

}  // namespace
}  // namespace longhaul::testing
