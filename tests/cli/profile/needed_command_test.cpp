// `profile needed`, and scenarios whose times come from a profile: the known values of the issue's
// layer, MHA 100, all-reduce 30, FFN 200, all-reduce 30 us.
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

/// Two layers between embedding and head, two tensor ranks, M = 3.
std::string layered(int stages) {
  return fmt::format(R"([model]
layers = 4
hidden = 64
intermediate = 96
heads = 4
vocabulary = 10
sequence_length = 3
precision = "fp16"
[parallel]
stages = {}
tensor = 2
microbatches = 3
[costs]
profile = "profile.csv"
)",
                     stages);
}

/// Sums of a block of a part, in us; all-reduces take 30 each beside.
const std::map<std::pair<std::string, std::string>, int> kSums{
    {{"layer", "F"}, 300},         {{"layer", "D"}, 350},    {{"layer", "W"}, 250},
    {{"embedding", "F"}, 10},      {{"embedding", "W"}, 20}, {{"head", "F"}, 40},
    {{"head", "D"}, 50},           {{"head", "W"}, 30},      {{"layer", "update"}, 50},
    {{"embedding", "update"}, 10}, {{"head", "update"}, 20}};

/// A profile of what `profile needed` lists: of each block the first operator takes the sum.
std::string profile_of(const std::string& scenario, const std::string& but = "") {
  const Outcome run = longhaul_run({"profile", "needed", scenario, "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  std::string csv = "part,block,operator,shape,type,calls,median_ns\n";
  std::set<std::pair<std::string, std::string>> given;
  for (const auto& each : operators_of(run)) {
    const std::pair<std::string, std::string> block{each["part"], each["block"]};
    int ns = 0;
    if (each["operator"] == "all_reduce")
      ns = 30'000;
    else if (given.insert(block).second)
      ns = kSums.at(block) * 1000 / each["calls"].get<int>();
    if (each["operator"] == but) continue;
    csv += fmt::format("{},{},{},{},{},{},{}\n", block.first, block.second,
                       each["operator"].get<std::string>(), each["shape"].get<std::string>(),
                       each["type"].get<std::string>(), each["calls"].get<int>(), ns);
  }
  return csv;
}

nlohmann::json simulated(const std::string& scenario, const std::string& schedule,
                         const std::string& granularity) {
  const Outcome run = longhaul_run(
      {"simulate", scenario, "--schedule", schedule, "--granularity", granularity, "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  return run.json()["schedules"][0];
}

TEST(Profile, GivesBlocksTheSumsOfItsOperators) {
  for (const int stages : {1, 2}) {
    const TempDir dir;
    const std::string scenario = dir.write("s.toml", layered(stages));
    dir.write("profile.csv", profile_of(scenario));
    for (const char* granularity : {"block", "operator", "task"}) {
      const auto record = simulated(scenario, "1f1b", granularity);
      EXPECT_EQ(record["makespan_ns"], stages == 1 ? 6'570'000 : 4'470'000) << granularity;
      EXPECT_EQ(record["iteration_ns"], stages == 1 ? 6'700'000 : 4'530'000) << granularity;
    }
  }
}

TEST(Profile, HasCollectivesOfATableOfTheirOwn) {
  const TempDir dir;
  const std::string scenario =
      dir.write("s.toml", layered(1) + "collectives = \"collectives.csv\"\n");
  dir.write("profile.csv", profile_of(scenario, "all_reduce"));
  // 3 tokens x 64 numbers x 2 bytes: half way between two measured sizes.
  const std::string header = "operation,ranks,nodes,size_bytes,median_ns\n";
  dir.write("collectives.csv",
            header + "all_reduce,2,1,320,25000\nall_reduce,2,1,448,35000\nall_reduce,4,1,384,1\n");
  EXPECT_EQ(simulated(scenario, "1f1b", "block")["makespan_ns"], 6'570'000);
  dir.write("collectives.csv", header + "all_reduce,2,1,64,5000\n");
  const Outcome far = longhaul_run({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_EQ(far.code, 2);
  EXPECT_THAT(far.err, HasSubstr("there is no all_reduce of bytes=384 ranks=2 nodes=1 in f16"));
}

TEST(Profile, OfOverlapsCountsCollectivesOnce) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", layered(1));
  dir.write("profile.csv", profile_of(scenario));
  const Outcome run =
      longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--overlap", "serial", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  // Links are free, so that nothing is left of 3 x 2 x 4 x 30 us.
  const auto json = run.json();
  EXPECT_THAT(json.dump(), HasSubstr("5980000"));
}

TEST(Profile, OfSelectiveRecomputationHasTheScoresInTheBackward) {
  const TempDir dir;
  const std::string plain = "[model]\nattention = \"plain\"\n" + layered(1).substr(8);
  const std::string scenario = dir.write("s.toml", plain);
  const std::string profile = profile_of(scenario);
  dir.write("profile.csv", profile);
  EXPECT_EQ(simulated(scenario, "1f1b", "block")["makespan_ns"], 6'570'000);
  dir.write("s.toml", plain + "[memory]\nrecompute = \"selective\"\n");
  const Outcome missing = longhaul_run({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("there is no softmax of rows=6 width=3 in f16 (block D"));
  dir.write("profile.csv", profile + "layer,D,softmax,rows=6 width=3,f16,1,5000\n");
  for (const char* granularity : {"block", "operator", "task"})  // 2 layers, 3 microbatches
    EXPECT_EQ(simulated(scenario, "1f1b", granularity)["makespan_ns"], 6'570'000 + 6 * 5'000);
}

TEST(Profile, ThatMissesAnOperatorIsRefusedWithTheNearestShapes) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", layered(1));
  dir.write("profile.csv", profile_of(scenario, "swiglu"));
  Outcome run = longhaul_run({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("profile.csv: there is no swiglu of rows=3 width=48 in f16 (block "
                                 "F of part layer"));
  dir.write("profile.csv", profile_of(scenario));
  run = longhaul_run(
      {"simulate", scenario, "--schedule", "1f1b", "--set", "model.sequence_length=4"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("The nearest that it has: rows=3 width=64"));
  run = longhaul_run({"simulate", scenario, "--schedule", "1f1b", "--set", "model.precision=bf16"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("the profile is of f16, model.precision = \"bf16\" needs bf16"));
}

TEST(Profile, OfWrongColumnsIsRefusedWithTheLine) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", layered(1));
  dir.write("profile.csv", "part,block,operator,shape,type,calls\n");
  Outcome run = longhaul_run({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("profile.csv:1: the column \"median_ns\" is missing"));
  dir.write("profile.csv",
            "part,block,operator,shape,type,calls,median_ns\nlayer,F,gemm,m=1,f16,1,-3\n");
  run = longhaul_run({"simulate", scenario, "--schedule", "1f1b"});
  EXPECT_THAT(run.err, HasSubstr("profile.csv:2: median_ns \"-3\" is no whole number"));
}

TEST(ProfileNeeded, NeedsAModelAndWritesATable) {
  const TempDir dir;
  Outcome run = longhaul_run({"profile", "needed", dir.write("u.toml", kUniform)});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("has no [model]"));
  const std::string scenario = dir.write("s.toml", layered(2));
  run = longhaul_run({"profile", "needed", scenario, "--out", dir.path("needed.csv")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(file_text(dir.path("needed.csv")),
              HasSubstr("layer,F,all_reduce,bytes=384 ranks=2 nodes=1,f16,2\n"));
}

/// Four layers of B = 100 ns on two replicas, a byte a ns between them: the gradients of two layers
/// take 150 ns, those of all four 300. A nanosecond of F stands before.
std::string four_layers(const std::string& bucket) {
  std::string text =
      "[parallel]\nstages = 1\nreplicas = 2\nmicrobatches = 1\n"
      "gradient_sync = \"all-reduce\"\nbucket = \"" +
      bucket +
      "\"\n[[datacenter]]\nname = \"here\"\n[[link]]\n"
      "between = [\"here\", \"here\"]\nbandwidth = \"8Gbps\"\n";
  for (int layer = 0; layer < 4; ++layer)
    text += fmt::format(
        "[[operator]]\nname = \"layer\"\nkind = \"matmul\"\nweights = \"75B\"\n"
        "forward = \"{}ns\"\ndgrad = \"40ns\"\nwgrad = \"60ns\"\n",
        layer == 0 ? 1 : 0);
  return text;
}

TEST(Buckets, LeaveAsSoonAsTheirLastGradientIsThere) {
  const TempDir dir;
  for (const auto& [bucket, end] : {std::pair{"150B", 551}, std::pair{"none", 701}}) {
    const Outcome run = longhaul_run({"simulate", dir.write("s.toml", four_layers(bucket)),
                                      "--schedule", "1f1b", "--overlap", "ddp", "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.json().dump(), HasSubstr(fmt::format("\"makespan_ns\":{}", end))) << bucket;
  }
}

}  // namespace
}  // namespace longhaul::test
