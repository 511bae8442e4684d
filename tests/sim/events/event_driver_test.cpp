// Exact timestamps of small plans, worked out by hand.
#include "sim/events/event_driver.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan_draft.hpp"
#include "sim/simulate.hpp"
#include "support/exchanging_replicas.hpp"
#include "support/one_rank.hpp"
#include "support/optional_ops.hpp"

namespace longhaul::sim {
namespace {

using plan::PlanDraft;
using testing::ExchangingReplicas;
using testing::OneRank;

/// When each iteration starts, from `first` on.
std::vector<std::int64_t> starts_ms(const ExchangingReplicas& pair, int iterations, int first = 0) {
  std::vector<std::int64_t> starts;
  simulate_stream(pair.plan, {iterations, {}, first}, [&](const StreamedIteration& done) {
    EXPECT_EQ(done.iteration, first + std::ssize(starts));
    starts.push_back(done.results.times[index(pair.first)].start / 1ms);
  });
  return starts;
}
using Starts = std::vector<std::int64_t>;

// Part 2's B ends at 50, part 1's at 70, part 0's at 90. Each is on its link for 20 as it ends: the
// last arrives at 90 + 20 + 5.
TEST(EventDriver, ExchangesThatTheLinkKeepsUpWith) {
  for (const Serve serve : {Serve::arrival, Serve::deadline}) {
    EXPECT_EQ(starts_ms({20ms, 0, serve}, 5), (Starts{0, 115, 230, 345, 460}));
    // A step later nothing waits: 90 of work each.
    EXPECT_EQ(starts_ms({20ms, 1, serve}, 5), (Starts{0, 90, 180, 270, 360}));
  }
}

// Transfers of 40: part 2 is on the link from 50 to 90. At 90 part 1 (ready at 70) and part 0
// (ready at that very instant) wait. By arrival part 1 goes first, and part 0 arrives at 90 + 80 +
// 5. By deadline part 0 goes, and arrives at 135; F of part 1 waits until 175, which makes later
// iterations 165 long, the third still 165 after the second's 135.
TEST(EventDriver, ALinkThatCannotKeepUpChooses) {
  EXPECT_EQ(starts_ms({40ms, 0, Serve::arrival}, 5), (Starts{0, 175, 350, 525, 700}));
  EXPECT_EQ(starts_ms({40ms, 0, Serve::deadline}, 6), (Starts{0, 135, 300, 465, 630, 795}));
}

// The link is busy all the time in the end: 3 * 40 an iteration.
TEST(EventDriver, ALinkThatCannotKeepUpAStepLater) {
  const Starts deadline = starts_ms({40ms, 1, Serve::deadline}, 12);
  EXPECT_EQ(Starts(deadline.begin(), deadline.begin() + 6), (Starts{0, 90, 180, 270, 365, 485}));
  const Starts arrival = starts_ms({40ms, 1, Serve::arrival}, 12);
  EXPECT_EQ(Starts(arrival.begin(), arrival.begin() + 5), (Starts{0, 90, 180, 295, 415}));
  for (const Starts& starts : {deadline, arrival})
    for (std::size_t i = 7; i < starts.size(); ++i) EXPECT_EQ(starts[i] - starts[i - 1], 120);
}

TEST(EventDriver, ALaneThatChoosesGivesTheSame) {
  using enum ExchangingReplicas::Choice;
  for (const Serve serve : {Serve::arrival, Serve::deadline})
    for (const int stale : {0, 1})
      EXPECT_EQ(starts_ms({40ms, stale, serve, lane}, 12),
                starts_ms({40ms, stale, serve, link}, 12));
}

/// Two ranks, each with a block of 10 ms, and a message from 2 to 6 ms between them.
struct BlocksBesideAMessage : OneRank {
  explicit BlocksBesideAMessage(const plan::Overlap& overlap) {
    const Rank other = draft.add_rank("east", 1);
    const LaneId there = draft.add_lane(other, "compute", OpKind::compute,
                                        {draft.add_resource("device 1", ResourceKind::device)});
    blocks = {draft.add_block(compute, 10ms), draft.add_block(there, 10ms)};
    const LaneId host = draft.add_lane(rank, "host", OpKind::compute,
                                       {draft.add_resource("workers 0", ResourceKind::workers)});
    const LaneId sends = draft.add_lane(rank, "send>1", OpKind::send,
                                        {draft.add_resource("link 0>1", ResourceKind::link)});
    const LaneId receives = draft.add_lane(other, "recv<0", OpKind::recv);
    const auto task = draft.add_block(host, 2ms);
    const auto message = draft.add_message(sends, receives, 4ms, 3ms);
    draft.after(message.send, task);
    late_task = draft.add_block(host, 10ms);
    draft.overlap(overlap);
    plan = draft.make();
    times = simulate(plan);
  }
  [[nodiscard]] Duration end(PlanDraft::Handle op) const { return times[index(draft.id(op))].end; }
  std::vector<PlanDraft::Handle> blocks;
  PlanDraft::Handle late_task{};
  Plan plan;
  OpTimes times;
};

// 2 ms at full speed, 4 at half: 4 done at 6, the other 6 by 12. Host tasks do not slow.
TEST(EventDriver, ABlockSlowsBesideAMessage) {
  const BlocksBesideAMessage slow{plan::Overlap::of(1, 2, 1)};
  EXPECT_EQ(slow.end(slow.blocks[0]), 12ms);
  EXPECT_EQ(slow.end(slow.blocks[1]), 12ms);
  EXPECT_EQ(slow.end(slow.late_task), 12ms);  // 2 + 10
  const BlocksBesideAMessage other_level{plan::Overlap::of(2, 1, 2)};
  EXPECT_EQ(other_level.end(other_level.blocks[0]), 10ms);
  // 4 / 1.3 are done in the 4: what is left ends at 6 + 8 - 4 / 1.3, rounded up.
  const BlocksBesideAMessage odd{plan::Overlap::of(1, 1.3, 1)};
  EXPECT_EQ(odd.end(odd.blocks[0]), Duration{10'923'077});
}

// Ready at 0, not before 30, 20 long. A lane of its own on the device takes what is free.
struct OptionalOp : OneRank {
  OptionalOp(Duration deadline, Duration first_block) {
    const LaneId extra = draft.add_lane(rank, "prefill", OpKind::compute, {device});
    block = draft.add_block(compute, first_block);
    next = draft.add_block(compute, Duration{10});
    optional = draft.add_block(extra, Duration{20});
    dependent = draft.add_block(extra, Duration{5});
    draft.after(dependent, optional);
    draft.window(optional, Duration{30}, deadline);
    plan = draft.make();
    results = simulate_results(plan);
  }
  [[nodiscard]] Duration start(PlanDraft::Handle op) const {
    return results.times[index(draft.id(op))].start;
  }
  [[nodiscard]] Outcome outcome(PlanDraft::Handle op) const {
    return results.outcomes.empty() ? Outcome::ran : results.outcomes[index(draft.id(op))];
  }
  PlanDraft::Handle block{}, next{}, optional{}, dependent{};
  Plan plan;
  OpResults results;
};

TEST(EventDriver, AnOptionalOpStartsAtTheLatestOfAll) {
  const OptionalOp at_not_before{Duration{50}, Duration{10}};
  EXPECT_EQ(at_not_before.start(at_not_before.optional), Duration{30});
  EXPECT_EQ(at_not_before.start(at_not_before.dependent), Duration{50});
  const OptionalOp at_device{Duration{100}, Duration{60}};
  EXPECT_EQ(at_device.start(at_device.optional), Duration{70});
  EXPECT_EQ(at_device.outcome(at_device.optional), Outcome::ran);
}

TEST(EventDriver, AnOptionalOpThatWouldEndLateIsSkippedWithWhatNeedsIt) {
  for (const OptionalOp& late :
       {OptionalOp{Duration{49}, Duration{10}}, OptionalOp{Duration{89}, Duration{60}}}) {
    EXPECT_EQ(late.outcome(late.optional), Outcome::skipped);
    EXPECT_EQ(late.outcome(late.dependent), Outcome::skipped);
    EXPECT_EQ(late.outcome(late.next), Outcome::ran);
  }
}

// Four tasks of 10 on two workers: by arrival the one that is ready first, though listed last.
// It does not wait for the other op that it needs, nor its lane for it.
TEST(EventDriver, WhatNeedsASkippedOpIsSkippedAtOnce) {
  const testing::NeedsASkippedOp ranks;
  const OpResults results = simulate_results(ranks.plan);
  EXPECT_EQ(results.outcomes[index(ranks.first)], Outcome::skipped);
  EXPECT_EQ(results.times[index(ranks.second)].start, 0ms);
}

TEST(EventDriver, WorkersTakeTasksAsTheyArrive) {
  OneRank one;
  const LaneId host = one.draft.add_lane(
      one.rank, "host", OpKind::compute,
      {one.draft.add_resource("workers 0", ResourceKind::workers, 2)}, Serve::arrival);
  const auto block = one.draft.add_block(one.compute, Duration{5});
  const auto late = one.draft.add_block(host, Duration{10});
  one.draft.after(late, block);
  std::vector<PlanDraft::Handle> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(one.draft.add_block(host, Duration{10}));
  const Plan plan = one.draft.make();
  const OpTimes times = simulate(plan);
  const auto start = [&](PlanDraft::Handle op) { return times[index(one.draft.id(op))].start; };
  EXPECT_EQ(start(tasks[0]), Duration{0});
  EXPECT_EQ(start(tasks[1]), Duration{0});
  EXPECT_EQ(start(tasks[2]), Duration{10});
  EXPECT_EQ(start(late), Duration{10});
}

// One of low priority in four slices of 10; one of high priority is ready at 15 and waits for the
// slice that is under way, not for all of the message.
TEST(EventDriver, SlicesLetAnUrgentMessagePass) {
  OneRank one;
  const Rank other = one.draft.add_rank("west");
  const ResourceId link =
      one.draft.add_resource("link 0>1", ResourceKind::shared_link, 1, Serve::deadline);
  std::array<LaneId, 2> sends{}, receives{};
  for (std::size_t i = 0; i < 2; ++i) {
    sends[i] = one.draft.add_lane(one.rank, fmt::format("send>1/{}", i), OpKind::send, {link});
    receives[i] = one.draft.add_lane(other, fmt::format("recv<0/{}", i), OpKind::recv);
  }
  const auto slices = one.draft.add_slices(sends[0], receives[0], 4, Duration{40}, Duration{3});
  for (const auto& slice : slices) one.draft.priority(slice.send, 1);
  const auto block = one.draft.add_block(one.compute, Duration{15});
  const auto urgent = one.draft.add_message(sends[1], receives[1], Duration{5}, Duration{3});
  one.draft.after(urgent.send, block);
  const Plan plan = one.draft.make();
  const OpTimes times = simulate(plan);
  EXPECT_EQ(times[index(one.draft.id(urgent.send))].start, Duration{20});
  EXPECT_EQ(times[index(one.draft.id(slices[2].send))].start, Duration{25});
  EXPECT_EQ(times[index(one.draft.id(slices[3].recv))].end, Duration{48});
}

// The weights' update (25 long) falls further back: iteration n of the block (10 long) starts at
// 10 n, updates end at 10 + 25, 60, 85, ...
TEST(EventDriver, AWeakDependencyNotesWhichVersionItMet) {
  OneRank one;
  const LaneId host =
      one.draft.add_lane(one.rank, "host", OpKind::compute,
                         {one.draft.add_resource("workers 0", ResourceKind::workers)});
  const auto block = one.draft.add_block(one.compute, Duration{10});
  const auto update = one.draft.add_block(host, Duration{25});
  one.draft.after(update, block);
  one.draft.meets(block, update, 1);
  const Plan plan = one.draft.make();
  std::vector<std::int32_t> versions;
  simulate_stream(plan, {7, {}}, [&](const StreamedIteration& done) {
    versions.push_back(
        done.results.versions.empty() ? -1 : done.results.versions[index(one.draft.id(block))]);
    EXPECT_EQ(done.results.times[index(one.draft.id(block))].start, Duration{10 * done.iteration});
  });
  EXPECT_EQ(versions, (std::vector<std::int32_t>{-1, -1, -1, -1, 0, 0, 1}));
}

// Cut where nothing is under way it takes the same times; elsewhere it fills anew, and gets to the
// same time between iterations.
TEST(EventDriver, AStreamThatGoesOn) {
  EXPECT_EQ(starts_ms({20ms, 0, Serve::deadline}, 9, 5), (Starts{0, 115, 230, 345}));
  EXPECT_EQ(starts_ms({40ms, 1, Serve::deadline}, 9, 2), (Starts{0, 90, 180, 270, 365, 485, 605}));
}

// Iterations in memory: the one that runs, and those that dependencies reach back to.
TEST(EventDriver, AStreamsMemoryIsBoundedByItsReach) {
  const ExchangingReplicas pair{40ms, 1, Serve::deadline};
  int iterations = 0;
  const StreamFacts facts =
      simulate_stream(pair.plan, {100'000, {}}, [&](const StreamedIteration& done) {
        EXPECT_EQ(done.iteration, iterations);
        ++iterations;
      });
  EXPECT_EQ(iterations, 100'000);
  EXPECT_LE(facts.most_live_iterations, 5u);
}

/// Draws its first op once another has ended, then nothing before 70, then its third.
class WaitsForOne : public plan::OpSource {
public:
  WaitsForOne(std::vector<OpId> ops, OpId other) : ops_{std::move(ops)}, other_{other} {}
  plan::Decision next(const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended()) {
      EXPECT_LE(end.end, past.now());
      if (end.op == other_) heard_ = true;
    }
    switch (step_) {
      case 0:
        if (!heard_) return plan::WaitForEnd{};
        ++step_;
        return plan::Draw{ops_[0]};
      case 1: ++step_; return plan::WaitUntil{Duration{70}};
      case 2: ++step_; return plan::Draw{ops_[2]};
      default: return plan::LaneOver{};
    }
  }

private:
  std::vector<OpId> ops_;
  OpId other_;
  bool heard_ = false;
  int step_ = 0;
};

/// Draws its first op with another time and words, and hears them with its end.
class SaysWhatItTakes : public plan::OpSource {
public:
  explicit SaysWhatItTakes(std::vector<OpId> ops) : ops_{std::move(ops)} {}
  plan::Decision next(const plan::PastEvents& past) override {
    for (const plan::OpEnd& end : past.ended()) {
      const bool own = end.op == ops_[0];
      EXPECT_EQ(end.words, own ? (plan::DrawnWords{7, 8}) : plan::DrawnWords{});
      heard_ = heard_ || own;
    }
    switch (step_++) {
      case 0: return plan::WaitForEnd{Duration{15}};
      case 1:
        EXPECT_EQ(past.now(), Duration{15}) << "nothing ends before";
        return plan::Draw{ops_[0], Duration{12}, {7, 8}};
      case 2: EXPECT_TRUE(heard_); return plan::Draw{ops_[1]};
      default: return plan::LaneOver{};
    }
  }

private:
  std::vector<OpId> ops_;
  bool heard_ = false;
  int step_ = 0;
};

TEST(EventDriver, ASourceSaysWhatItsOpTakes) {
  OneRank one;
  const ResourceId workers = one.draft.add_resource("workers", ResourceKind::workers);
  const LaneId extra = one.draft.add_lane(one.rank, "extra", OpKind::compute, {workers});
  one.draft.add_block(one.compute, Duration{40});
  const auto first = one.draft.add_block(extra, Duration{5});
  const auto second = one.draft.add_block(extra, Duration{5});
  one.draft.source(
      extra, [](const std::vector<OpId>& own) { return std::make_unique<SaysWhatItTakes>(own); });
  const Plan plan = one.draft.make();
  const OpResults results = simulate_results(plan);
  const auto of = [&](PlanDraft::Handle op) { return results.times[index(one.draft.id(op))]; };
  EXPECT_EQ(of(first).start, Duration{15});
  EXPECT_EQ(of(first).end, Duration{27});
  EXPECT_EQ(of(second).end, Duration{32});
}

TEST(EventDriver, ASourceDrawsFromWhatHasHappened) {
  OneRank one;
  const LaneId extra = one.draft.add_lane(one.rank, "extra", OpKind::compute, {one.device});
  const auto first = one.draft.add_block(one.compute, Duration{40});
  std::vector<PlanDraft::Handle> ops;
  for (int i = 0; i < 3; ++i) ops.push_back(one.draft.add_block(extra, Duration{5}));
  one.draft.source(extra, [](const std::vector<OpId>& own) {
    return std::make_unique<WaitsForOne>(own, OpId{0});
  });
  const Plan plan = one.draft.make();
  const OpResults results = simulate_results(plan);
  const auto of = [&](PlanDraft::Handle op) { return results.times[index(one.draft.id(op))]; };
  EXPECT_EQ(one.draft.id(first), OpId{0});
  EXPECT_EQ(of(ops[0]).start, Duration{40});
  EXPECT_EQ(of(ops[2]).start, Duration{70});
  EXPECT_EQ(results.outcomes[index(one.draft.id(ops[1]))], Outcome::undrawn);
}

TEST(EventDriver, AFixedListIsASource) {
  OneRank plain, listed;
  for (OneRank* each : {&plain, &listed})
    for (int i = 1; i < 5; ++i) each->draft.add_block(each->compute, Duration{i});
  listed.draft.source(listed.compute, [](const std::vector<OpId>& ops) {
    return std::make_unique<plan::FixedList>(ops);
  });
  const OpTimes a = simulate(plain.draft.make());
  const OpTimes b = simulate(listed.draft.make());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].start, b[i].start);
}

TEST(EventDriver, ASourceThatDrawsTwiceIsRefused) {
  OneRank one;
  one.draft.add_block(one.compute, Duration{1});
  one.draft.source(one.compute, [](const std::vector<OpId>& ops) {
    return std::make_unique<plan::FixedList>(std::vector{ops[0], ops[0]});
  });
  const Plan plan = one.draft.make();
  EXPECT_THROW((void)simulate(plan), Error);
}

TEST(EventDriver, NamesTheCycleOfADeadlock) {
  OneRank one;
  const LaneId other =
      one.draft.add_lane(one.rank, "other", OpKind::compute,
                         {one.draft.add_resource("workers", ResourceKind::workers)});
  const auto a = one.draft.add_block(one.compute, Duration{1});
  const auto b = one.draft.add_block(other, Duration{1});
  one.draft.after(a, b, 0);
  one.draft.after(b, a, 0);
  const Plan plan = one.draft.make();
  const Result<OpResults> results = simulate_in_order_of_time(plan);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.refusal().code, ExitCode::run_failed);
  EXPECT_NE(results.refusal().reason.find("which waits for"), std::string::npos);
}

// a waits for c, which waits for b, which comes after a on its lane.
TEST(EventDriver, NamesTheLaneInADeadlock) {
  OneRank one;
  const LaneId other =
      one.draft.add_lane(one.rank, "other", OpKind::compute,
                         {one.draft.add_resource("workers", ResourceKind::workers)});
  const auto a = one.draft.add_block(one.compute, Duration{1});
  const auto b = one.draft.add_block(one.compute, Duration{1});
  const auto c = one.draft.add_block(other, Duration{1});
  one.draft.after(a, c, 0);
  one.draft.after(c, b, 0);
  const Plan plan = one.draft.make();
  const Result<OpResults> results = simulate_in_order_of_time(plan);
  ASSERT_FALSE(results);
  const std::string& reason = results.refusal().reason;
  std::size_t from = 0;
  for (const char* op :
       {"(op 0, lane \"compute\"), which waits for ", "(op 2, lane \"other\"), which waits for ",
        "(op 1, lane \"compute\"), which waits for ", "(op 0, lane "}) {
    from = reason.find(op, from);
    ASSERT_NE(from, std::string::npos) << op << " in " << reason;
  }
}

}  // namespace
}  // namespace longhaul::sim
