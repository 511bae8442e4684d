// [overlap] in the commands that predict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two stages in two sites: blocks of 100 ns, messages of 40 that take 100 ns more to arrive.
const std::string kSlowed = scenario_text("slowed", R"([[datacenter]]
name = "west"
stages = [0, 1]
[[datacenter]]
name = "east"
stages = [2, 3]
[[link]]
between = ["west", "east"]
latency = "100ns"
transfer_ratio = 0.4
[overlap]
slowdown = {wan = 2}
)");

/// The same, of operators: every block is one of 60 and one of 40 ns.
const std::string kSlowedOperators = R"([[operator]]
name = "up"
kind = "matmul"
weights = "1MiB"
forward = "60ns"
dgrad = "60ns"
wgrad = "60ns"
[[operator]]
name = "down"
kind = "matmul"
weights = "1MiB"
forward = "40ns"
dgrad = "40ns"
wgrad = "40ns"
)";

class SlowedBlocks : public ::testing::Test {
protected:
  /// `operators` a stage.
  [[nodiscard]] std::string file() const { return dir_.write("s.toml", kSlowed); }
  [[nodiscard]] std::string file_of_operators() const {
    std::string text = "[parallel]\nstages = 4\nmicrobatches = 8\n[costs]\nmessage = \"1MiB\"\n";
    for (int stage = 0; stage < 4; ++stage) text += kSlowedOperators;
    return dir_.write("o.toml", text + kSlowed.substr(kSlowed.find("[[datacenter]]")));
  }
  [[nodiscard]] static std::int64_t makespan(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = arguments;
    all.emplace_back("--json");
    const Outcome run = longhaul_run(all);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["schedules"][0]["makespan_ns"];
  }
  TempDir dir_;
};

TEST_F(SlowedBlocks, AllPredictionsHaveThem) {
  const std::string s = file();
  const std::string steady = "overlap.slowdown=1";
  for (const char* name : {"1f1b", "zb-h1", "zbv", "cross-ud"}) {
    const std::int64_t slow = makespan({"simulate", s, "--schedule", name});
    EXPECT_GT(slow, makespan({"simulate", s, "--schedule", name, "--set", steady})) << name;
    EXPECT_EQ(slow, makespan({"schedule", s, "--schedule", name})) << name;
    EXPECT_EQ(slow, makespan({"simulate", s, "--schedule", name, "--iterations", "2"})) << name;
  }
  const Outcome best = longhaul_run({"simulate", s, "--schedule", "static,best", "--search-moves",
                                     "500", "--search-threads", "1", "--bounds", "--json"});
  ASSERT_EQ(best.code, 0) << best.err;
  const auto records = best.json()["schedules"];
  for (const auto& record : records) {
    if (record["over_budget"].empty()) {
      EXPECT_LE(records.back()["makespan_ns"], record["makespan_ns"]) << record["schedule"];
    }
    EXPECT_GE(record["gap"].get<double>(), 0) << record["schedule"];
  }
}

TEST_F(SlowedBlocks, TablesSaySo) {
  const std::string line = "x1 inside a node, x1 between nodes, x2 between datacenters";
  EXPECT_THAT(longhaul_run({"simulate", file(), "--schedule", "1f1b"}).out,
              ::testing::AllOf(HasSubstr(line), Not(HasSubstr("--granularity"))));
  EXPECT_THAT(longhaul_run({"schedule", file(), "--schedule", "1f1b"}).out, HasSubstr(line));
  EXPECT_THAT(longhaul_run({"check", file()}).out, HasSubstr(line));
  EXPECT_EQ(longhaul_run({"check", file(), "--json"}).json()["files"][0]["overlap_slowdown"].dump(),
            R"({"datacenter":1.0,"node":1.0,"wan":2.0})");
  EXPECT_THAT(longhaul_run({"simulate", file_of_operators(), "--schedule", "1f1b"}).out,
              HasSubstr("--granularity operator tells"));
  EXPECT_THAT(longhaul_run({"check", file(), "--set", "overlap.slowdown=1"}).out,
              Not(HasSubstr("beside messages")));
}

/// Rows of rank 0's blocks: (start, end) of each, or of each operator.
std::vector<std::pair<std::int64_t, std::int64_t>> times_of(const std::string& csv, int rank) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  std::istringstream lines{file_text(csv)};
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> names;
  const auto cells_of = [](const std::string& text) {
    std::vector<std::string> cells;
    std::istringstream in{text};
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    return cells;
  };
  const auto header = cells_of(line);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
  };
  while (std::getline(lines, line)) {
    const auto cells = cells_of(line);
    if (cells[column("kind")] == "F" && cells[column("rank")] == std::to_string(rank))
      times.emplace_back(std::stoll(cells[column("start_ns")]),
                         std::stoll(cells[column("end_ns")]));
  }
  return times;
}

// F(1) of stage 1 begins at 200, when F(0)'s message of 40 ns leaves for the other site: 20 ns of
// its first operator's 60 are done at 240, and 40 are left.
TEST_F(SlowedBlocks, OperatorsHaveTheirOwnTimes) {
  const std::string trace = dir_.path("t.h5");
  const std::string csv = dir_.path("t.csv");
  const Outcome run = longhaul_run({"simulate", file_of_operators(), "--schedule", "gpipe",
                                    "--granularity", "operator", "--out", trace});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("of blocks \\[%\\] +operators +lists +up +up.dgrad"));
  ASSERT_EQ(longhaul_run({"check", trace}).code, 0);
  ASSERT_EQ(longhaul_run({"trace", "export", trace, "--format", "csv", "--out", csv}).code, 0);
  const auto times = times_of(csv, 1);
  ASSERT_GE(times.size(), 4U);
  EXPECT_EQ(times[0], std::pair(std::int64_t{100}, std::int64_t{160}));
  EXPECT_EQ(times[1], std::pair(std::int64_t{160}, std::int64_t{200}));
  EXPECT_EQ(times[2], std::pair(std::int64_t{200}, std::int64_t{280}));
  EXPECT_EQ(times[3], std::pair(std::int64_t{280}, std::int64_t{320}));
}

TEST_F(SlowedBlocks, ATraceOfBlocksIsNotCutIntoOperators) {
  const std::string trace = dir_.path("t.h5");
  ASSERT_EQ(
      longhaul_run({"simulate", file_of_operators(), "--schedule", "1f1b", "--out", trace}).code,
      0);
  const Outcome run = longhaul_run({"trace", "export", trace, "--granularity", "operator",
                                    "--format", "csv", "--out", dir_.path("t.csv")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("slow beside messages ([overlap])"));
}

TEST_F(SlowedBlocks, ExportsSayThatTheyDoNotHaveThem) {
  for (const std::string format : {"goal", "chakra"}) {
    const Outcome run = longhaul_run({"schedule", file(), "--schedule", "1f1b", "--format", format,
                                      "--out", dir_.path("x." + format), "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.json()["remarks"].dump(), HasSubstr("([overlap])")) << format;
  }
}

TEST_F(SlowedBlocks, WhatKnowsBlocksOfOneLengthRefusesByName) {
  const auto said = [&](const std::vector<std::string>& arguments) {
    const Outcome run = longhaul_run(arguments);
    EXPECT_EQ(run.code, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(said({"simulate", file(), "--schedule", "cross-ud-opt"}),
              HasSubstr("cross-ud-opt is found by a solver"));
  EXPECT_THAT(said({"simulate", file(), "--schedule", "cross-wave-opt"}),
              HasSubstr("cross-wave-opt is found by a solver"));
  EXPECT_THAT(said({"plan", file(), "--set", "datacenter.gpus=8"}),
              HasSubstr("the scenario has an [overlap]"));
}

}  // namespace
}  // namespace longhaul::test
