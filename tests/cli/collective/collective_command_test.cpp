#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFourInTwoNodes = R"([costs]
forward = "1ms"
message = "1MB"
[parallel]
stages = 4
microbatches = 1
[[datacenter]]
name = "west"
stages = [0, 1, 2, 3]
[[node]]
datacenter = "west"
gpus = 2
device = "4GB/s"
internal = "1GB/s"
internal_latency = "1ms"
)";

class CollectiveCommand : public ::testing::Test {
protected:
  Outcome run(std::vector<std::string> options) const {
    options.insert(options.begin(), {"collective", scenario_});
    return longhaul_run(options);
  }
  TempDir dir_;
  std::string scenario_ = dir_.write("four.toml", kFourInTwoNodes);
};

TEST_F(CollectiveCommand, SaysWhatAMeshTakes) {
  const Outcome run = this->run({"--kind", "all-gather", "--bytes", "4MB", "--algorithm",
                                 "hierarchical", "--mesh", "2x2", "--order", "0,1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  EXPECT_EQ(json["numbers"], "simulated");
  ASSERT_EQ(json["collectives"].size(), 1U);
  const auto& one = json["collectives"][0];
  EXPECT_EQ(one["kind"], "all-gather");
  EXPECT_EQ(one["algorithm"], "hierarchical");
  EXPECT_EQ(one["mesh"], (std::vector{2, 2}));
  EXPECT_EQ(one["order"], (std::vector{0, 1}));
  EXPECT_EQ(one["pieces"], 1);
  EXPECT_EQ(one["size_bytes"], 4'000'000);
  EXPECT_EQ(one["duration_ns"], 3'500'000);
  EXPECT_EQ(one["messages"], 8);
  EXPECT_EQ(one["critical_messages"], 3) << "two share an interface, then one inside the node";
  EXPECT_EQ(one["bytes_by_level"]["node"], 8'000'000);
  EXPECT_EQ(one["bytes_by_level"]["datacenter"], 4'000'000);
  EXPECT_EQ(one["bytes_by_level"]["wan"], 0);
  EXPECT_EQ(one["busiest"]["resource"], "internal-out west/0");
  EXPECT_EQ(one["busiest"]["busy_ns"], 2'000'000);
  EXPECT_EQ(one["lower_bound_ns"], 3'000'000);
  EXPECT_EQ(one["bound_reason"], "1.907 MiB out of the node of rank 0 at 8 Gbps");
}

TEST_F(CollectiveCommand, ListsEveryAlgorithmAndChoosesTheBest) {
  const Outcome all =
      run({"--kind", "all_gather", "--bytes", "4000000", "--algorithm", "all", "--json"});
  ASSERT_EQ(all.code, 0) << all.err;
  std::vector<std::string> names;
  std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
  const auto json = all.json();
  for (const auto& each : json["collectives"]) {
    names.push_back(each["algorithm"]);
    fastest = std::min(fastest, each["duration_ns"].get<std::int64_t>());
  }
  EXPECT_THAT(names, ElementsAre("ring", "halving", "direct", "hierarchical"));
  const Outcome best = run({"--kind", "all-gather", "--bytes", "4MB", "--json"});
  ASSERT_EQ(best.code, 0) << best.err;
  EXPECT_LE(best.json()["collectives"][0]["duration_ns"].get<std::int64_t>(), fastest);
  const Outcome text = run({"--kind", "all-gather", "--bytes", "4MB", "--algorithm", "ring"});
  EXPECT_THAT(text.out, HasSubstr("all-gather of 3.815 MiB among 4 ranks of 4; simulated"));
  EXPECT_THAT(text.out, HasSubstr("ring"));
  EXPECT_THAT(text.out, HasSubstr("4.25 ms"));
  EXPECT_THAT(text.out, HasSubstr("No algorithm ends before 3 ms"));
}

TEST_F(CollectiveCommand, TakesGroupsAsRangesAndLists) {
  const auto members = [&](const std::string& group) {
    const Outcome run = this->run(
        {"--kind", "reduce", "--bytes", "1KiB", "--algorithm", "tree", "--group", group, "--json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return run.json()["collectives"][0]["members"].get<int>();
  };
  EXPECT_EQ(members("0-3"), 4);
  EXPECT_EQ(members("0,2,3"), 3);
  EXPECT_EQ(members("0-1,3"), 3);
}

TEST_F(CollectiveCommand, RefusesInOneLine) {
  const auto refused = [&](std::vector<std::string> options, const std::string& text) {
    const Outcome run = this->run(std::move(options));
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  };
  refused({"--bytes", "4MB"}, "--kind: none is given.");
  refused({"--kind", "all-reduce"}, "--bytes: no size is given.");
  refused({"--kind", "all-redce", "--bytes", "4MB"}, "Did you mean \"all-reduce\"?");
  refused({"--kind", "all-reduce", "--bytes", "4 MBit"}, "--bytes:");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--algorithm", "rnig"},
          "--algorithm: there is no \"rnig\". Did you mean \"ring\"?");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--mesh", "2x3"},
          "a mesh of 2x3 has 6 places and the group 4 members.");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--group", "0-2", "--algorithm", "halving"},
          "3 members are no power of 2");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--group", "0,0", "--algorithm", "ring"},
          "rank 0 stands twice in the group.");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--group", "0-9"}, "--group: \"9\"");
  refused({"--kind", "all-reduce", "--bytes", "2B", "--algorithm", "ring", "--pieces", "3"},
          "3 pieces are more than 2 bytes.");
  refused({"--kind", "all-reduce", "--bytes", "4MB", "--algorithm", "ring", "--order", "0"},
          "--order: it has no effect here");
}

}  // namespace
}  // namespace longhaul::test
