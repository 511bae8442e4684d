// The examples of docs/plan.md: each block of C++ there stands here, and runs.
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_draft.hpp"
#include "sim/simulate.hpp"
#include "support/shipped.hpp"

namespace longhaul {
namespace {

using plan::PlanDraft;

TEST(PlanPage, OpsLanesAndResources) {
  PlanDraft draft{"two ranks"};
  const Rank east = draft.add_rank("east");
  const Rank west = draft.add_rank("west");
  const LaneId here = draft.add_lane(east, "compute", OpKind::compute,
                                     {draft.add_resource("device 0", ResourceKind::device)});
  const LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                      {draft.add_resource("device 1", ResourceKind::device)});
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                      {draft.add_resource("link 0>1", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);

  const auto forward = draft.add_block(here, 10ms);
  const auto message = draft.add_message(sends, receives, 4ms, 20ms);  // transfer, latency
  const auto taker = draft.add_block(there, 10ms);
  draft.after(message.send, forward);
  draft.after(taker, message.recv);

  const Plan plan = draft.make();
  const OpTimes times = sim::simulate(plan);
  EXPECT_EQ(times[index(draft.id(taker))].start, 10ms + 4ms + 20ms);
}

struct Device {
  PlanDraft draft{"one device"};
  Rank rank = draft.add_rank("east");
  ResourceId device = draft.add_resource("device 0", ResourceKind::device);
  LaneId blocks = draft.add_lane(rank, "compute", OpKind::compute, {device});
};

TEST(PlanPage, SeveralLanesThatWork) {
  Device on;
  PlanDraft& draft = on.draft;
  const ResourceId workers = draft.add_resource("workers 0", ResourceKind::workers, 2);
  const LaneId host = draft.add_lane(on.rank, "host", OpKind::compute, {workers}, Serve::arrival);
  const auto block = draft.add_block(on.blocks, 5ms);
  const auto unpack = draft.add_block(host, 10ms);
  const auto log = draft.add_block(host, 10ms);
  const auto pack = draft.add_block(host, 10ms);
  draft.after(unpack, block);

  const OpTimes times = sim::simulate(draft.make());
  const auto start = [&](PlanDraft::Handle op) { return times[index(draft.id(op))].start; };
  EXPECT_EQ(start(log), 0ms);
  EXPECT_EQ(start(pack), 0ms);
  EXPECT_EQ(start(unpack), 10ms);  // ready at 5, both workers busy
}

TEST(PlanPage, LinksThatChoose) {
  Device on;
  PlanDraft& draft = on.draft;
  const Rank west = draft.add_rank("west");
  const ResourceId link =
      draft.add_resource("link 0>1", ResourceKind::shared_link, 1, Serve::deadline);
  const auto channel = [&](int number) {
    return std::pair{
        draft.add_lane(on.rank, fmt::format("send>1/{}", number), OpKind::send, {link}),
        draft.add_lane(west, fmt::format("recv<0/{}", number), OpKind::recv)};
  };
  const auto [large_out, large_in] = channel(0);
  const auto [urgent_out, urgent_in] = channel(1);
  const auto slices = draft.add_slices(large_out, large_in, 4, 40ms, 3ms);
  for (const auto& slice : slices) draft.priority(slice.send, 1);
  const auto block = draft.add_block(on.blocks, 15ms);
  const auto urgent = draft.add_message(urgent_out, urgent_in, 5ms, 3ms);
  draft.after(urgent.send, block);

  const OpTimes times = sim::simulate(draft.make());
  EXPECT_EQ(times[index(draft.id(urgent.send))].start, 20ms);  // after the second slice of 10 ms
}

TEST(PlanPage, OptionalOps) {
  Device on;
  PlanDraft& draft = on.draft;
  const LaneId extra = draft.add_lane(on.rank, "prefill", OpKind::compute, {on.device});
  draft.add_block(on.blocks, 30ms);
  const auto fits = draft.add_block(extra, 10ms);
  const auto misses = draft.add_block(extra, 10ms);
  const auto needs_it = draft.add_block(extra, 1ms);
  draft.window(fits, 20ms, 40ms);    // not before, deadline
  draft.window(misses, 20ms, 45ms);  // the device is free from 40 on
  draft.after(needs_it, misses);

  const OpResults results = sim::simulate_results(draft.make());
  EXPECT_EQ(results.times[index(draft.id(fits))].start, 30ms);
  EXPECT_EQ(results.outcomes[index(draft.id(misses))], Outcome::skipped);
  EXPECT_EQ(results.outcomes[index(draft.id(needs_it))], Outcome::skipped);
}

/// Draws its only op when the first block has ended.
class AfterTheFirst : public plan::OpSource {
public:
  explicit AfterTheFirst(OpId op) : op_{op} {}
  plan::Decision next(const plan::PastEvents& past) override {
    if (drawn_) return plan::LaneOver{};
    if (past.ended().empty()) return plan::WaitForEnd{};
    drawn_ = true;
    return plan::Draw{op_};
  }

private:
  OpId op_;
  bool drawn_ = false;
};

TEST(PlanPage, Sources) {
  Device on;
  PlanDraft& draft = on.draft;
  const LaneId extra = draft.add_lane(on.rank, "extra", OpKind::compute, {on.device});
  draft.add_block(on.blocks, 30ms);
  const auto drawn = draft.add_block(extra, 10ms);
  const auto left = draft.add_block(extra, 10ms);
  draft.source(extra, [](const std::vector<OpId>& ops) {
    return std::make_unique<AfterTheFirst>(ops.front());
  });

  const OpResults results = sim::simulate_results(draft.make());
  EXPECT_EQ(results.times[index(draft.id(drawn))].start, 30ms);
  EXPECT_EQ(results.outcomes[index(draft.id(left))], Outcome::undrawn);
}

TEST(PlanPage, Streams) {
  Device on;
  PlanDraft& draft = on.draft;
  const ResourceId workers = draft.add_resource("workers 0", ResourceKind::workers);
  const LaneId host = draft.add_lane(on.rank, "host", OpKind::compute, {workers});
  const auto block = draft.add_block(on.blocks, 10ms);
  const auto update = draft.add_block(host, 15ms);
  draft.after(update, block);
  draft.after(block, update, 2);  // a block waits for the update two iterations before its own
  draft.meets(block, update, 1);  // and notes the newest that is there

  const Plan plan = draft.make();
  std::vector<Duration> starts;
  std::vector<int> versions;
  sim::simulate_stream(plan, {4, {}}, [&](const sim::StreamedIteration& done) {
    const std::size_t op = index(draft.id(block));
    starts.push_back(done.results.times[op].start);
    versions.push_back(done.results.versions.empty() ? -1 : done.results.versions[op]);
  });
  EXPECT_EQ(starts, (std::vector<Duration>{0ms, 10ms, 25ms, 40ms}));
  EXPECT_EQ(versions, (std::vector<int>{-1, -1, 0, 1}));
}

TEST(PlanPage, ComputationBesideCommunication) {
  Device on;
  PlanDraft& draft = on.draft;
  const Rank west = draft.add_rank("west");
  const LaneId sends = draft.add_lane(on.rank, "send>1", OpKind::send,
                                      {draft.add_resource("link 0>1", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  const auto block = draft.add_block(on.blocks, 10ms);
  draft.add_message(sends, receives, 4ms, 20ms);
  draft.overlap(plan::Overlap::of(1, 1, 2));  // inside a node, between nodes, over the WAN

  const OpTimes times = sim::simulate(draft.make());
  EXPECT_EQ(times[index(draft.id(block))].end, 12ms);  // 4 ms at half the speed, 8 at full speed
}

std::string text_of(const std::string& path) {
  std::ifstream file{testing::in_checkout(path)};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Without spaces and ends of lines: a page is wider than a source file.
std::string squeezed(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

TEST(PlanPage, ShowsWhatRunsHere) {
  const std::string page = text_of("docs/plan.md");
  const std::string here = squeezed(text_of("tests/integration/sim/plan_page_test.cpp"));
  const std::string open = "```cpp\n";
  int blocks = 0;
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const std::size_t begin = at + open.size();
    const std::string block = squeezed(page.substr(begin, page.find("```", begin) - begin));
    EXPECT_NE(here.find(block), std::string::npos) << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 9);
}

}  // namespace
}  // namespace longhaul
