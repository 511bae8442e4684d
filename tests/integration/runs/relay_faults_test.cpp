// Whole runs of three pipelines that share the WAN, on 12 ranks: what relays do right, and what is
// said when one is faulty on purpose.
#include "integration/runs/bench_pipeline_fixture.hpp"
#include "integration/runs/three_pipelines.hpp"

namespace longhaul::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RelayFaults : public BenchPipeline {
protected:
  RelayFaults() { write_scenario(kThreePipelines); }
  /// Runs with a fault; small payloads, so that a copy without a receive leaves all the same.
  int run_with_fault(const std::string& fault, int iterations = 2) {
    return run(12, {"--schedule", "atlas", "--iterations", std::to_string(iterations), "--warmup",
                    "0", "--payload", "1KiB", "--deadline", "2s", "--fault", fault});
  }
};

TEST_F(RelayFaults, EveryPieceArrivesOnEveryLeg) {
  ASSERT_EQ(run(12, {"--schedule", "atlas", "--iterations", "20", "--warmup", "0", "--out", out()}),
            0)
      << output();
  EXPECT_THAT(output(), HasSubstr("payloads relayed"));
  const auto schedule = record()["schedules"][0];
  EXPECT_EQ(schedule["check"], "ok");
  const auto& checks = schedule["checks"];
  // 2 boundaries, 4 microbatches, 3 replicas, both ways; 2 of 3 pieces are another's to take.
  constexpr int kMessages = 20 * 2 * 4 * 3 * 2;
  EXPECT_EQ(checks["messages_of_leg"]["wan"], 3 * kMessages);
  EXPECT_EQ(checks["messages_of_leg"]["scatter"], 2 * kMessages);
  EXPECT_EQ(checks["messages_of_leg"]["gather"], 2 * kMessages);
  EXPECT_EQ(checks["messages_of_leg"]["whole"], kMessages / 2) << "between the stages of dc2";
  EXPECT_EQ(checks["relayed"], 4 * kMessages);
  EXPECT_EQ(checks["relayed_bytes"], 4 * 2'000'000LL * kMessages);
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), ::testing::IsEmpty());
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  std::int64_t gathered = 0;
  for (const TimelineRow& row : trace.measured.rows)
    if (row.kind == RowKind::recv && row.leg == MessageLeg::gather) ++gathered;
  EXPECT_EQ(gathered, 2 * kMessages) << "the trace counts them too";
}

/// Rank 4 is stage 0 of replica 1; it takes pieces to rank 5, in the datacenter dc2.
TEST_F(RelayFaults, WhatARelayHurtsIsNamedByTheNextReceiver) {
  struct Case {
    const char* fault;
    const char* check;
    const char* found;
  };
  for (const auto& [fault, check, found] :
       {Case{"corrupt@4:relay0:1", "2 corrupted", "(wan): corrupted"},
        Case{"mixup@4:relay0:1", "2 mixed up", " came instead"},
        Case{"twice@4:relay0:1", "2 unclaimed", "unclaimed"}}) {
    EXPECT_EQ(run_with_fault(fault), 1) << fault << "\n" << output();
    EXPECT_THAT(output(), AllOf(HasSubstr(check), HasSubstr(found))) << fault;
    if (std::string{check} == "2 unclaimed") continue;
    EXPECT_THAT(output(), HasSubstr("iteration 1, rank 5 (dc2, stage 1, replica 1): receive of "
                                    "piece 1 of replica "))
        << fault;
    EXPECT_THAT(output(), HasSubstr("from rank 4 (wan)")) << fault;
    EXPECT_THAT(output(), HasSubstr("had come so to rank 5")) << "whose it is gets it wrong, too";
  }
}

TEST_F(RelayFaults, WhatTheFarRelayHurtsIsNamedByTheOwnersReceiver) {
  EXPECT_EQ(run_with_fault("corrupt@5:gather0"), 1) << output();
  EXPECT_THAT(output(),
              AllOf(HasSubstr("1 corrupted"), HasSubstr("from rank 5 (gather): corrupted"),
                    Not(HasSubstr("had come so"))));
}

TEST_F(RelayFaults, APieceThatIsLostIsTracedToItsLeg) {
  EXPECT_EQ(run_with_fault("lose@4:relay1:1"), 3) << output();
  EXPECT_LT(seconds_, 2 + 15);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("no progress"),
                    HasSubstr("held up by: rank 5 (dc2, stage 1, replica 1): receive of piece 1 of "
                              "replica "),
                    HasSubstr("from rank 4 (wan): sent, and never received")));
}

TEST_F(RelayFaults, ARelayThatDoesNotReceiveIsNamed) {
  EXPECT_EQ(run_with_fault("norecv@5:relay0:1"), 3) << output();
  EXPECT_THAT(output(), AllOf(HasSubstr("held up by: rank 5 (dc2, stage 1, replica 1): receive of "
                                        "piece 1 of replica "),
                              HasSubstr("from rank 1 (scatter): not posted")));
}

TEST_F(RelayFaults, ARelayThatDiesEndsTheRunWithItsName) {
  EXPECT_NE(run_with_fault("kill@4:relay2:1", 100), 0);
  EXPECT_LT(seconds_, 2 + 15);
  EXPECT_THAT(output(),
              HasSubstr("the run ends: rank 4 is gone (killed or crashed), last started: "
                        "rank 4 (dc1, stage 0, replica 1): relaying piece 1 of replica "));
  EXPECT_THAT(output(), HasSubstr(" to rank 5 (wan)"));
  EXPECT_EQ(output().find("the run ends"), output().rfind("the run ends")) << "one report";
}

TEST_F(RelayFaults, ARelayThatStopsIsNamed) {
  EXPECT_NE(run_with_fault("freeze@5:gather1:1", 100), 0);
  EXPECT_THAT(output(), AllOf(HasSubstr("rank 5 is stopped (frozen, SIGSTOP), last started: rank 5 "
                                        "(dc2, stage 1, replica 1): relaying piece 1 of replica "),
                              HasSubstr("(gather)")));
}

}  // namespace
}  // namespace longhaul::testing
