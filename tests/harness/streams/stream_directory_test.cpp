#include "harness/streams/stream_directory.hpp"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"
#include "support/ranks/ranks_fixture.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::harness {
namespace {

using ::testing::IsEmpty;

constexpr int kIterations = 4;

/// A block of each rank.
Plan one_block_each(int ranks) {
  plan::PlanDraft draft{"blocks"};
  for (int r = 0; r < ranks; ++r) {
    const LaneId lane =
        draft.add_lane(draft.add_rank("west"), "compute", OpKind::compute,
                       {draft.add_resource(fmt::format("device {}", r), ResourceKind::device)});
    (void)draft.add_block(lane, 10ms);
  }
  return draft.make();
}

class StreamDirectoryTest : public testing::RanksTest {
protected:
  StreamDirectoryTest() {
    if (ranks().is_first()) scratch_.emplace();
    request_.out =
        ranks().world().broadcast(scratch_ ? (scratch_->path() / "out").string() : std::string{});
    request_.asked = {{"--rates", "10Gbps"}};
  }
  /// Of this rank.
  void keep(StreamDirectory& directory, int iteration) const {
    engine::IterationResult result;
    result.iteration = iteration;
    result.times.resize(plan_.ops.size());
    OpTime& own = result.times[to_size(self())];
    own.ready = own.start = 5s + 20ms * iteration;
    own.end = own.start + 10ms;
    directory.keep(0, plan_, result);
  }
  [[nodiscard]] StreamDirectory open() const {
    return {ranks(), request_, 1, [&] { return predicted(); }, 1ms};
  }
  [[nodiscard]] Timeline predicted() const {
    Timeline timeline;
    OpTimes times(plan_.ops.size());
    for (OpTime& time : times) time.end = 10ms;
    for (int i = 0; i < kIterations; ++i) plan::append_rows(timeline, plan_, times, i);
    return timeline;
  }

  std::optional<testing::ScratchDirectory> scratch_;
  StreamRequest request_;
  Plan plan_ = one_block_each(ranks().count());
};

TEST_F(StreamDirectoryTest, GoesOnWithTheFirstIterationThatSomeRankLacks) {
  {
    StreamDirectory directory = open();
    EXPECT_EQ(directory.finished(0), 0);
    for (int i = 0; i < 2; ++i) keep(directory, i);
    if (ranks().is_first()) keep(directory, 2);
  }
  ranks().world().barrier();
  EXPECT_THROW((void)open(), Error) << "it is not overwritten";
  request_.resume = true;
  {
    StreamDirectory directory = open();
    const int first = directory.finished(0);
    EXPECT_EQ(first, ranks().count() == 1 ? 3 : 2);
    for (int i = first; i < kIterations; ++i) keep(directory, i);
    directory.finish({}, nlohmann::json::object());
  }
  EXPECT_TRUE(is_complete_stream(request_.out));
  if (!ranks().is_first()) return;
  EXPECT_THAT(trace::validate_trace(request_.out / "trace.h5"), IsEmpty());
  const trace::Trace trace = trace::read_trace(request_.out / "trace.h5");
  EXPECT_EQ(trace.measured.rows.size(), trace.predicted.rows.size());
  for (const TimelineRow& row : trace.measured.rows) EXPECT_EQ(row.start_ns, 0);
}

TEST_F(StreamDirectoryTest, RefusesToGoOnWithAnotherRequest) {
  { (void)open(); }
  request_.resume = true;
  request_.asked["--rates"] = "20Gbps";
  EXPECT_THROW((void)open(), Error);
}

}  // namespace
}  // namespace longhaul::harness
