#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::string toy_within_limits(const TempDir& directory) {
  std::string file = directory.path("limits.h5");
  const Outcome run = longhaul_run(
      {"simulate", (testing::kShippedScenarios / "centauri-toy.toml").string(), "--schedule",
       "gpipe", "--overlap", "centauri", "--allow", "workload,operation", "--out", file});
  EXPECT_EQ(run.code, 0) << run.err;
  return file;
}

/// Without the layer tier dgrads stay before wgrads: gather 1 is hidden beside D 2, not W 2.
TEST(TraceOverlap, SearchesWithinTheLimitsOfTheTrace) {
  const TempDir directory;
  const Outcome run = longhaul_run({"trace", "overlap", toy_within_limits(directory), "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  std::vector<std::string> beside;
  for (const auto& each : json["schedules"][0]["predicted"]["collectives"])
    if (each["block"] == "D")
      for (const auto& hidden : each["beside"])
        beside.push_back(hidden["operator"].get<std::string>() + " " +
                         hidden["block"].get<std::string>());
  EXPECT_THAT(beside, UnorderedElementsAre("second D"));
}

/// The unlimited plan has as many ops of the same kinds.
TEST(TraceOverlap, RefusesAPlanOfOtherOps) {
  const TempDir directory;
  trace::Trace trace = trace::read_trace(toy_within_limits(directory));
  trace.info.environment = "{}";
  const std::string file = directory.path("unlimited.h5");
  trace::write_trace(file, trace);
  const Outcome run = longhaul_run({"trace", "overlap", file});
  EXPECT_EQ(run.code, 2) << run.out;
  EXPECT_THAT(run.err, HasSubstr("the ops of gpipe+centauri are not those"));
  EXPECT_THAT(run.err, HasSubstr("--allow or --rules"));
}

/// benchmarks/profiles/tiny-f32.csv, which the trace's scenario holds, begins with a comment.
TEST(TraceOverlap, ReadsAScenarioWhoseProfileHasAComment) {
  const TempDir directory;
  const std::string file = directory.path("profile.h5");
  const auto scenario = testing::kShippedScenarios.parent_path() / "profiles" / "tiny.toml";
  const Outcome simulated = longhaul_run(
      {"simulate", scenario.string(), "--schedule", "gpipe", "--overlap", "ddp", "--out", file});
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  const Outcome run = longhaul_run({"trace", "overlap", file});
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace longhaul::test
