// `simulate --iterations N --rows FILE`: what each rank does in a stream, as CSV.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/file_text.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// Two replicas apart: F 10 ms, B 20, then a set of 1 MB to the other over 400 Mbps, which takes
/// 20 ms and 5 to arrive. The step takes no time, so that an iteration ends after 55.
constexpr const char* kTwoApart = R"([scenario]
name = "two apart"
[parallel]
stages = 1
microbatches = 1
replicas = 2
gradient_sync = "compressed"
[costs]
forward = "10ms"
backward = "20ms"
message = "1MB"
weights = "1MB"
[train]
parts = 1
message = "1MB"
[train.compress]
exchange = "direct"
[[datacenter]]
name = "east"
replicas = "0"
[[datacenter]]
name = "west"
replicas = "1"
[[link]]
between = "all"
latency = "5ms"
bandwidth = "400Mbps"
)";

class StreamRows : public ::testing::Test {
protected:
  [[nodiscard]] Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"simulate", scenario_, "--rows", file_};
    words.insert(words.end(), more.begin(), more.end());
    return longhaul_run(words);
  }
  /// The run writes no file and says why.
  [[nodiscard]] std::string refused(const std::vector<std::string>& more) const {
    const Outcome refusal = run(more);
    EXPECT_EQ(refusal.code, 2) << refusal.out;
    EXPECT_EQ(dir_.files(), 1U) << "the scenario";
    return refusal.err;
  }
  TempDir dir_;
  std::string scenario_ = dir_.write("s.toml", kTwoApart), file_ = dir_.path("rows.csv");
};

TEST_F(StreamRows, SayWhatEachRankDoes) {
  const Outcome done = run({"--schedule", "stella", "--iterations", "2"});
  ASSERT_EQ(done.code, 0) << done.err;
  std::string expected = "iteration,rank,lane,kind,chunk,microbatch,part,peer,start_ns,end_ns\n";
  for (const int iteration : {0, 1})
    for (const int rank : {0, 1}) {
      const int peer = 1 - rank;
      const auto line = [&](const std::string& lane, const char* kind, int other, int from,
                            int until) {
        expected +=
            fmt::format("{},{},{},{},0,0,0,{},{},{}\n", iteration, rank, lane, kind, other,
                        (55 * iteration + from) * 1'000'000, (55 * iteration + until) * 1'000'000);
      };
      line("compute", "F", -1, 0, 10);
      line("compute", "B", -1, 10, 30);
      line("host:update", "optimize", -1, 55, 55);
      line(fmt::format("send>{}/0", peer), "send", peer, 30, 50);
      line(fmt::format("recv<{}/0", peer), "recv", peer, 30, 55);
    }
  EXPECT_EQ(testing::file_text(file_), expected);
}

TEST_F(StreamRows, AreRefusedWhereThereIsNoStreamOrMoreThanOne) {
  EXPECT_THAT(refused({"--schedule", "stella"}), HasSubstr("there is no stream. Add --iterations"));
  EXPECT_THAT(refused({"--schedule", "stella,gpipe", "--iterations", "2"}),
              HasSubstr("2 schedules (a file has one). Name one with --schedule"));
  EXPECT_THAT(refused({"--schedule", "gpipe", "--iterations", "2", "--set",
                       "parallel.gradient_sync=all-reduce"}),
              HasSubstr("two apart: --rows is of replicas that train together"));
}

TEST_F(StreamRows, NeverTakeThePlaceOfAFile) {
  dir_.write("rows.csv", "kept");
  const Outcome there = run({"--schedule", "stella", "--iterations", "2"});
  EXPECT_EQ(there.code, 2);
  EXPECT_THAT(there.err, HasSubstr("rows.csv: not written (it exists"));
  EXPECT_EQ(testing::file_text(file_), "kept");
  file_ = dir_.path("nowhere/rows.csv");
  EXPECT_THAT(run({"--schedule", "stella", "--iterations", "2"}).err,
              HasSubstr("rows.csv: cannot be created (there is no directory"));
}

}  // namespace
}  // namespace longhaul::test
