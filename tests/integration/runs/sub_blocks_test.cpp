// Schedules whose blocks are split, on ranks: each part runs by itself, in the schedule's order,
// and a message leaves when its last part is over.
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "integration/runs/bench_pipeline_fixture.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

/// Device 0 leaves W0 between its parts for a D, and F1 in the middle.
constexpr const char* kParts = R"(# longhaul schedule 1
# name = "parts"
# devices = 2
# chunks = 2
# microbatches = 2
# replicas = 1
# device_of_chunk = 0,1
0F0.0/2,0F0.1/2,0F1.0/3,0F1.1/3,0F1.2/3,0I0,0W0.0/2,0I1.0/2,0I1.1/2,0W0.1/2,0W1
1F0,1I0.0/4,1I0.1/4,1I0.2/4,1I0.3/4,1F1.0/2,1W0.0/2,1F1.1/2,1I1,1W0.1/2,1W1
)";

class SubBlocksTest : public BenchPipeline {
protected:
  using Row = TimelineRow;
  static std::string text(const Row& row) {
    return fmt::format("{}{}.{} {}/{}", to_string(row.kind), row.chunk, row.microbatch, row.part,
                       row.parts);
  }
  /// Blocks of a device in the order in which they started (predicted: the schedule's own).
  static std::vector<std::string> blocks(const Timeline& timeline, int iteration, int device) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::string> by_start;
    for (const Row& row : timeline.rows)
      if (row.iteration == iteration && row.device == device && is_compute(row.kind))
        by_start[{row.start_ns, row.op}] = text(row);
    std::vector<std::string> texts;
    for (const auto& [start, block] : by_start) texts.push_back(block);
    return texts;
  }
  /// Every send of an iteration starts after the last part of its producer, as this rank saw it.
  static int sends_after_their_last_part(const Timeline& timeline, int iteration) {
    using Producer = std::tuple<int, int, int, bool>;  // rank, chunk, microbatch, forward
    std::map<Producer, std::int64_t> ends;
    for (const Row& row : timeline.rows) {
      if (row.iteration != iteration || !is_compute(row.kind) || row.kind == RowKind::W) continue;
      if (row.part + 1 != row.parts) continue;
      ends[{row.rank, row.chunk, row.microbatch, row.kind == RowKind::F}] = row.end_ns;
    }
    int sends = 0;
    for (const Row& row : timeline.rows) {
      if (row.iteration != iteration || row.kind != RowKind::send) continue;
      ++sends;
      const bool forward = row.peer > row.rank;
      EXPECT_EQ(row.part + 1, row.parts) << text(row);
      EXPECT_GE(row.start_ns, ends.at({row.rank, row.chunk, row.microbatch, forward}))
          << "rank " << row.rank << ": " << text(row);
    }
    return sends;
  }
};

TEST_F(SubBlocksTest, APartRunsByItselfAndAMessageLeavesBehindTheLast) {
  const std::string file = (scratch_.path() / "parts.csv").string();
  std::ofstream{file} << kParts;
  const std::vector<std::vector<std::string>> rows{
      {"F0.0 0/2", "F0.0 1/2", "F0.1 0/3", "F0.1 1/3", "F0.1 2/3", "D0.0 0/1", "W0.0 0/2",
       "D0.1 0/2", "D0.1 1/2", "W0.0 1/2", "W0.1 0/1"},
      {"F1.0 0/1", "D1.0 0/4", "D1.0 1/4", "D1.0 2/4", "D1.0 3/4", "F1.1 0/2", "W1.0 0/2",
       "F1.1 1/2", "D1.1 0/1", "W1.0 1/2", "W1.1 0/1"}};
  for (const char* comm : {"decoupled", "grouped"}) {
    std::filesystem::remove_all(out());
    ASSERT_EQ(run(2, {"--schedule", file, "--comm", comm, "--iterations", "2", "--set",
                      "parallel.stages=2", "--set", "parallel.microbatches=2", "--set",
                      "datacenter.west.stages=[0]", "--set", "datacenter.east.stages=[1]", "--out",
                      out()}),
              0)
        << output();
    EXPECT_EQ(record()["schedules"][0]["check"], "ok");
    EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
    const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
    for (int device = 0; device < 2; ++device) {
      const auto& expected = rows[static_cast<std::size_t>(device)];
      EXPECT_THAT(blocks(trace.predicted, 0, device), ElementsAreArray(expected));
      for (int iteration = 0; iteration < 2; ++iteration)
        EXPECT_THAT(blocks(trace.measured, iteration, device), ElementsAreArray(expected));
    }
    for (int iteration = 0; iteration < 2; ++iteration)
      EXPECT_EQ(sends_after_their_last_part(trace.measured, iteration), 4);
  }
}

/// CrossPipe's own sub-blocks (4.2.1): the ranks play what the greedy decided, part by part.
TEST_F(SubBlocksTest, CrossUdSubRunsInItsOrder) {
  ASSERT_EQ(
      run(4, {"--schedule", "cross-ud-sub", "--iterations", "1", "--set", "parallel.microbatches=8",
              "--set", "costs.forward=3ms", "--set", "link.latency=3ms", "--out", out()}),
      0)
      << output();
  const trace::Trace trace = trace::read_trace(out() + "/trace.h5");
  EXPECT_THAT(trace::validate_trace(out() + "/trace.h5"), IsEmpty());
  int parts = 0;
  for (const Row& row : trace.measured.rows) parts += is_compute(row.kind) && row.parts > 1 ? 1 : 0;
  EXPECT_GT(parts, 0) << "some block is left between its parts";
  for (int device = 0; device < 4; ++device)
    EXPECT_THAT(blocks(trace.measured, 0, device),
                ElementsAreArray(blocks(trace.predicted, 0, device)));
  EXPECT_GT(sends_after_their_last_part(trace.measured, 0), 0);
}

}  // namespace
}  // namespace longhaul::testing
