#include "plan/critical_messages.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_draft.hpp"

namespace longhaul::plan {
namespace {

using namespace std::chrono_literals;

/// A block, then two messages over one link, then a block: 10 ms each, 1 ms of latency.
class TwoMessages : public ::testing::Test {
protected:
  TwoMessages() {
    const Rank west = draft_.add_rank("west"), east = draft_.add_rank("east");
    const auto device = [&](Rank rank) {
      return draft_.add_lane(rank, "compute", OpKind::compute,
                             {draft_.add_resource("device", ResourceKind::device)});
    };
    const LaneId receives = draft_.add_lane(east, "recv", OpKind::recv);
    const LaneId sends = draft_.add_lane(west, "send", OpKind::send,
                                         {draft_.add_resource("link", ResourceKind::shared_link)});
    made_ = draft_.add_block(device(west), 10ms);
    first_ = draft_.add_message(sends, receives, 10ms, 1ms);
    second_ = draft_.add_message(sends, receives, 10ms, 1ms);
    used_ = draft_.add_block(device(east), 10ms);
    for (const auto& message : {first_, second_}) draft_.after(message.send, made_);
    draft_.after(used_, second_.recv);
    plan_ = draft_.make();
    times_ = at(0ms);
  }
  /// Of an iteration that begins then: the second message waits for the link, not for its data.
  OpTimes at(Duration begin) {
    OpTimes times(plan_.ops.size());
    const auto put = [&](PlanDraft::Handle op, Duration start, Duration end, OpId by) {
      times[index(draft_.id(op))] = {begin + start, begin + start, begin + end, by};
    };
    put(made_, 0ms, 10ms, begin == 0ms ? kNone<OpId> : draft_.id(used_));
    put(first_.send, 10ms, 20ms, draft_.id(made_));
    put(first_.recv, 10ms, 21ms, draft_.id(first_.send));
    put(second_.send, 20ms, 30ms, draft_.id(first_.send));
    put(second_.recv, 20ms, 31ms, draft_.id(second_.send));
    put(used_, 31ms, 41ms, draft_.id(second_.recv));
    return times;
  }

  PlanDraft draft_{"two messages"};
  PlanDraft::Handle made_{}, used_{};
  PlanDraft::Message first_, second_;
  Plan plan_;
  OpTimes times_;
};

// The first one's receive is not on the path, its send is.
TEST_F(TwoMessages, CountWhereOneWaitsForTheOther) {
  EXPECT_EQ(messages_on_critical_path(plan_, times_), 2);
  EXPECT_EQ(messages_on_critical_path(plan_, times_, draft_.id(first_.recv)), 1);
  EXPECT_EQ(messages_on_critical_path(plan_, times_, draft_.id(used_), 20ms), 1);
  EXPECT_EQ(messages_on_critical_path(plan_, times_, draft_.id(made_)), 0);
  EXPECT_EQ(messages_on_critical_path(plan_, OpTimes{}), 0);
}

// A receive that was posted late waits for its own lane, not for its send.
TEST_F(TwoMessages, CountWhereTheReceiveAloneIsOnThePath) {
  times_[index(draft_.id(second_.recv))].bound_by = draft_.id(first_.recv);
  EXPECT_EQ(messages_on_critical_path(plan_, times_), 2);
}

// Each iteration begins with the end of the one before.
TEST_F(TwoMessages, CountPerIterationOfAStream) {
  const std::vector<OpTimes> iterations{at(0ms), at(41ms), at(82ms), at(123ms)};
  EXPECT_DOUBLE_EQ(messages_on_critical_path(plan_, iterations, draft_.id(made_)), 2);
  EXPECT_DOUBLE_EQ(messages_on_critical_path(plan_, iterations, draft_.id(used_)), 2);
  const auto one = std::span{iterations}.first(1);
  EXPECT_DOUBLE_EQ(messages_on_critical_path(plan_, one, draft_.id(used_)), 0);
}

TEST(LatePerMessage, IsWhatTheMedianIsAboveThePrediction) {
  EXPECT_EQ(late_per_message(102e6, 100ms, 14), Duration{142'857});
  EXPECT_EQ(late_per_message(99e6, 100ms, 2.5), Duration{-400'000});
  EXPECT_EQ(late_per_message(102e6, 100ms, 0), std::nullopt);
  EXPECT_EQ(late_text(Duration{142'857}), "142.9");
  EXPECT_EQ(late_text(std::nullopt), "-");
}

}  // namespace
}  // namespace longhaul::plan
