#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

const std::string kToy = (testing::kShippedScenarios / "centauri-toy.toml").string();

TEST(PartitionCommand, PrintsTheForest) {
  const Outcome run = longhaul_run({"partition", kToy, "--schedule", "gpipe", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json json = run.json();
  ASSERT_EQ(json["communications"].size(), 5U);
  const nlohmann::json& first = json["communications"][0];
  EXPECT_EQ(first["tier"], "operation");
  EXPECT_EQ(first["count"], 1);
  EXPECT_EQ(first["leaves"][0]["cost_ns"], 1'000'000);
  EXPECT_EQ(first["leaves"][first["choice"].get<std::size_t>()]["granularity"].size(), 4U);
  EXPECT_FALSE(first["pruned"].empty());
  EXPECT_FALSE(first["pruned"][0]["reason"].get<std::string>().empty());
  EXPECT_GT(json["layer"]["t1_ns"], 0);
  EXPECT_TRUE(json["model"].is_null());
  const Outcome text = longhaul_run({"partition", kToy, "--schedule", "gpipe", "--wide"});
  EXPECT_THAT(text.out, HasSubstr("all-gather"));
  EXPECT_THAT(text.out, HasSubstr("equation 1"));
}

TEST(PartitionCommand, RefusesWhatItCannotTake) {
  EXPECT_EQ(longhaul_run({"partition"}).code, 2);
  EXPECT_EQ(longhaul_run({"partition", kToy, "--schedule", "gpip"}).code, 2);
  EXPECT_EQ(longhaul_run({"partition", kToy, "--schedule", "gpipe", "--shedule", "x"}).code, 2);
}

TEST(PartitionCommand, SearchesHaveACertificate) {
  const Outcome run = longhaul_run({"simulate", kToy, "--schedule", "gpipe", "--overlap",
                                    "centauri-rules,centauri,best", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json rows = run.json()["schedules"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].contains("certificate"));
  for (const std::size_t row : {1U, 2U}) {
    const nlohmann::json& certificate = rows[row]["certificate"];
    EXPECT_EQ(certificate["baselines"].size(), 9U);
    for (const nlohmann::json& each : certificate["baselines"])
      EXPECT_LE(rows[row]["makespan_ns"], each["makespan_ns"]) << each["overlap"];
    EXPECT_FALSE(certificate["bound_reason"].get<std::string>().empty());
    EXPECT_GT(rows[row]["evaluated"], 9);
    EXPECT_GE(rows[row]["search_ns"], 0);
  }
}

}  // namespace
}  // namespace longhaul::test
