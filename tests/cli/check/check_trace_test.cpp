#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/four_rings.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A model in which rings hold no links carries 800 Gbps over a link of 200.
TEST(CheckTrace, RefusesFourRingsAtOnceOnOneLink) {
  const TempDir dir;
  trace::write_trace(
      dir.path("forged.h5"),
      testing::four_rings_at_once(testing::one_link_of_200_gbps(testing::kShippedScenarios)));
  const Outcome run = longhaul_run({"check", dir.path("forged.h5")});
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("not a valid trace"),
                    HasSubstr("predicted: link west>east carries 4000000000 bytes from 10000000 to "
                              "50000000 ns (schedule 0, iteration 0), which take 160000000 ns at "
                              "its 200 Gbps.")));
  const auto file = longhaul_run({"check", dir.path("forged.h5"), "--json"}).json()["files"][0];
  EXPECT_EQ(file["ok"], false);
  EXPECT_EQ(file["problems"].size(), 2U);  // the link, and the aggregate of the two sites
  EXPECT_EQ(file["links"]["messages"], 4);
}

TEST(CheckTrace, SaysWhatItHeldToTheRatesOfLinks) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  const Outcome made = longhaul_run(
      {"simulate", (testing::kShippedScenarios / "dp-2dc.toml").string(), "--schedule", "1f1b",
       "--set", "link.sharing=datacenter", "--set", "link.aggregate=200Gbps", "--out", trace});
  ASSERT_EQ(made.code, 0) << made.err;
  const Outcome run = longhaul_run({"check", trace});
  EXPECT_EQ(run.code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("16 messages: none of 4 links, interfaces and ports carries more "
                                 "than rate x time\n"));
  const auto file = longhaul_run({"check", trace, "--json"}).json()["files"][0];
  EXPECT_EQ(file["ok"], true);
  EXPECT_EQ(file["links"]["resources"], 4);
  EXPECT_EQ(file["links"]["not_checked"].size(), 0U);
}

TEST(CheckTrace, SaysWhichCollectivesAreNotInTheTrace) {
  const TempDir dir;
  const std::string trace = dir.path("t.h5");
  ASSERT_EQ(
      longhaul_run({"simulate", (testing::kShippedScenarios / "dp-2dc.toml").string(), "--schedule",
                    "1f1b", "--set", "parallel.gradient_sync=two-datacenter", "--out", trace})
          .code,
      0);
  EXPECT_THAT(longhaul_run({"check", trace}).out,
              HasSubstr("not checked: predicted: collectives that are one op, their messages are "
                        "not in the trace (8)\n"));
}

}  // namespace
}  // namespace longhaul::test
