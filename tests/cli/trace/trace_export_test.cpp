// --granularity of `trace export`; its formats are tested in tests/trace/export.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(TraceExport, FoldsOperatorsAndCutsBlocks) {
  const TempDir dir;
  const std::string scenario = dir.write("s.toml", kOperators);
  const auto traced = [&](const std::string& granularity) {
    const std::string trace = dir.path(granularity + ".h5");
    EXPECT_EQ(longhaul_run({"simulate", scenario, "--schedule", "zb-h1", "--granularity",
                            granularity, "--out", trace})
                  .code,
              0);
    return trace;
  };
  const auto exported = [&](const std::string& trace, const std::string& granularity) {
    const std::string csv = trace + "." + granularity + ".csv";
    const Outcome run = longhaul_run(
        {"trace", "export", trace, "--format", "csv", "--out", csv, "--granularity", granularity});
    EXPECT_EQ(run.code, 0) << run.err;
    return file_text(csv);
  };
  const std::string blocks = traced("block");
  const std::string operators = traced("operator");
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  // The steps of the optimizer are there in the plan of operators alone.
  EXPECT_EQ(lines(exported(operators, "block")), lines(exported(blocks, "block")) + 2);
  const std::string cut = exported(blocks, "operator");
  EXPECT_EQ(lines(exported(operators, "operator")), lines(cut) + 2);
  EXPECT_THAT(cut, HasSubstr(",attention,"));
  const Outcome unknown = longhaul_run(
      {"trace", "export", blocks, "--granularity", "chunk", "--out", dir.path("no.json")});
  EXPECT_EQ(unknown.code, 2);
}

TEST(TraceExport, SaysWhyATraceHasNoOperators) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  ASSERT_EQ(longhaul_run(
                {"simulate", dir.write("s.toml", kUniform), "--schedule", "1f1b", "--out", trace})
                .code,
            0);
  const Outcome run = longhaul_run(
      {"trace", "export", trace, "--granularity", "operator", "--out", dir.path("no.json")});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("does not say which operators its blocks have"));
}

}  // namespace
}  // namespace longhaul::test
