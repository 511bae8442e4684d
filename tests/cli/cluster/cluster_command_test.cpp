#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

class ClusterCommand : public ::testing::Test {
protected:
  [[nodiscard]] Outcome run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"cluster", jobs_});
    return longhaul_run(more);
  }

  TempDir directory_;
  std::string jobs_ = directory_.write("jobs.csv",
                                       "job,submit_s,model,global_batch,iterations,deadline_s\n"
                                       "a,0,m,8,300,400\nb,0,m,8,900,650\nc,10,m,8,50,\n");
  std::string rates_ = directory_.write("rates.csv",
                                        "model,global_batch,gpus,iterations_per_second\n"
                                        "m,8,1,1\nm,8,2,1.5\nm,8,4,1.2\n");
};

TEST_F(ClusterCommand, SaysWhatBecameOfEachJob) {
  const Outcome found = run({"--gpus", "2", "--throughput", rates_, "--slot", "100s", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json();
  EXPECT_EQ(json["jobs"][0]["allocations"][0], nlohmann::json::parse("[0.0, 2]"));
  EXPECT_EQ(json["jobs"][0]["allocations"].back()[1], 0);
  EXPECT_EQ(json["jobs"][0]["met"], true);
  EXPECT_EQ(json["jobs"][1]["admitted"], false);
  EXPECT_EQ(json["jobs"][1]["start_s"], nullptr);
  EXPECT_EQ(json["deadline_ratio"], 0.5);
  EXPECT_EQ(json["bound"]["deadlines"], 2);
  EXPECT_GE(json["makespan_s"], json["bound"]["makespan_s"]);
  EXPECT_TRUE(json["notes"].empty());  // 4 GPUs are no faster, and more than there are
  for (const char* const key : {"mean_jct_s", "gpu_utilisation", "seconds"})
    EXPECT_TRUE(json[key].is_number()) << key;
}

TEST_F(ClusterCommand, LeavesDeadlinesOutWhereAsked) {
  const Outcome found = run({"--gpus", "4", "--throughput", rates_, "--no-deadlines", "--policy",
                             "fifo", "--counts", "best", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto json = found.json();
  EXPECT_EQ(json["deadline_ratio"], nullptr);
  ASSERT_EQ(json["notes"].size(), 1U);
  EXPECT_EQ(json["bound"]["deadlines"], nullptr);
  ASSERT_FALSE(json["jobs"].empty());
  for (const auto& job : json["jobs"]) EXPECT_EQ(job["met"], true);
}

TEST_F(ClusterCommand, RefusesOptionsOfPlansWithoutThem) {
  for (const char* const option : {"--machine", "--memory", "--rates-out"}) {
    const Outcome found = run({"--gpus", "2", "--throughput", rates_, option, "x"});
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err, HasSubstr(std::string{option} + ": it has no effect"));
  }
}

TEST_F(ClusterCommand, SaysWhereNoPlanFits) {
  const std::string jobs =
      directory_.write("large.csv",
                       "job,submit_s,model,global_batch,iterations,deadline_s\n"
                       "a,0,175b,64,10,\n");
  const Outcome found = longhaul_run({"cluster", jobs, "--gpus", "8", "--plans", "best"});
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.err, HasSubstr("no layout of 175b with global batch 64 fits 8 GPUs"));
}

TEST_F(ClusterCommand, PrintsATable) {
  const Outcome found = run({"--gpus", "2", "--throughput", rates_});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("refused"));
  EXPECT_THAT(found.out, HasSubstr("no schedule meets more than 2"));
}

TEST_F(ClusterCommand, RefusesWhatIsMissingOrWrong) {
  EXPECT_THAT(run({"--throughput", rates_}).err, HasSubstr("--gpus is missing"));
  EXPECT_THAT(run({"--gpus", "2"}).err, HasSubstr("--throughput is missing"));
  const auto refused = [&](const std::string& option, const std::string& value) {
    const Outcome found = run({"--gpus", "2", "--throughput", rates_, option, value});
    EXPECT_EQ(found.code, 2);
    return found.err;
  };
  EXPECT_THAT(refused("--policy", "elastic-flow"), HasSubstr("elasticflow"));
  EXPECT_THAT(refused("--slot", "0s"), HasSubstr("--slot"));
  EXPECT_THAT(refused("--restart", "1"), HasSubstr("--restart"));
  EXPECT_THAT(refused("--counts", "all"), HasSubstr("--counts"));
}

}  // namespace
}  // namespace longhaul::test
