#include <fmt/format.h>
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

/// Two sites of two GPUs: a spans both, then b and c have one each.
TEST_F(ClusterCommand, PlacesJobsInSites) {
  const std::string sites = directory_.write(
      "sites.toml",
      "[parallel]\nstages = 1\nmicrobatches = 1\n[costs]\nforward = \"1ms\"\nweights = \"1MB\"\n"
      "[[datacenter]]\nname = \"east\"\ngpus = 2\n[[datacenter]]\nname = \"west\"\ngpus = 2\n"
      "[[link]]\nbetween = [\"east\", \"west\"]\nlatency = \"1ms\"\n");
  const std::string rates = directory_.write("placed.csv",
                                             "model,global_batch,gpus,sites,iterations_per_second\n"
                                             "m,8,2,,1\nm,8,4,east:2+west:2,3\n");
  const auto words = [&](const char* policy) {
    return std::vector<std::string>{"--gpus", sites,      "--throughput", rates,   "--slot",
                                    "100s",   "--policy", policy,         "--json"};
  };
  const Outcome found = run(words("edf"));
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json();
  EXPECT_EQ(json["gpus"], 4);
  EXPECT_EQ(json["sites"], nlohmann::json::parse(R"({"east": 2, "west": 2})"));
  EXPECT_EQ(json["jobs"][0]["allocations"], nlohmann::json::parse("[[0.0, 4], [100.0, 0]]"));
  EXPECT_EQ(json["jobs"][0]["places"], nlohmann::json::parse(R"(["east:2+west:2", ""])"));
  EXPECT_EQ(json["jobs"][0]["end_s"], 100);
  const Outcome elastic = run(words("elasticflow"));
  ASSERT_EQ(elastic.code, 0) << elastic.err;
  const nlohmann::json shared = elastic.json();  // each a site, until a is done
  EXPECT_EQ(shared["jobs"][0]["places"][0], "east:2");
  EXPECT_EQ(shared["jobs"][1]["places"][0], "west:2");
  EXPECT_EQ(shared["deadline_ratio"], 1.0);
}

/// The rates of --plans over sites are those of the layouts that `plan` finds.
TEST_F(ClusterCommand, MakesRatesOverSitesByPlans) {
  const std::string sites = directory_.write(
      "sites.toml",
      "[model]\npreset = \"gpt-3.6b\"\n[parallel]\nglobal_batch = 64\n"
      "[[datacenter]]\nname = \"east\"\ngpus = 8\n[[datacenter]]\nname = \"west\"\ngpus = 8\n"
      "[[link]]\nbetween = [\"east\", \"west\"]\nlatency = \"5ms\"\nbandwidth = \"10Gbps\"\n");
  const std::string jobs =
      directory_.write("gpt.csv",
                       "job,submit_s,model,global_batch,iterations,deadline_s\n"
                       "a,0,gpt-3.6b,64,10,\n");
  const std::string table = directory_.path("made.csv");
  const Outcome found = longhaul_run({"cluster", jobs, "--gpus", sites, "--policy", "fifo",
                                      "--plans", "best", "--rates-out", table});
  ASSERT_EQ(found.code, 0) << found.err;
  const Outcome plan = longhaul_run({"plan", sites, "--search", "parallel", "--gpus", "16",
                                     "--machine", "vtrain-a100-512", "--schedule", "1f1b,cross-ud",
                                     "--sharding", "none", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const auto json = plan.json();
  const auto& fastest = json["plans"][json["best"]["time"].get<std::size_t>()];
  ASSERT_EQ(fastest["gpus_used"], 16);
  const double rate = 1e9 / fastest["iteration_ns"].get<double>();
  EXPECT_THAT(file_text(table), HasSubstr(fmt::format("gpt-3.6b,64,16,{},east:8+west:8\n", rate)));
  const Outcome baseline =
      longhaul_run({"cluster", jobs, "--gpus", sites, "--policy", "fifo", "--plans", "baseline"});
  EXPECT_EQ(baseline.code, 2);
  EXPECT_THAT(baseline.err, HasSubstr("--plans baseline: d alone grows, in one pool"));
}

TEST_F(ClusterCommand, RefusesSitesOfMoreGpusThanItCounts) {
  const std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\n[costs]\nforward = \"1ms\"\nweights = \"1MB\"\n"
      "[[datacenter]]\nname = \"east\"\ngpus = {0}\n[[datacenter]]\nname = \"west\"\ngpus = {0}\n"
      "[[link]]\nbetween = \"all\"\nlatency = \"1ms\"\n";
  for (const std::int64_t gpus : {std::int64_t{0}, std::int64_t{1} << 20, std::int64_t{1} << 30}) {
    const std::string sites = directory_.write("sites.toml", fmt::format(fmt::runtime(text), gpus));
    const Outcome found = run({"--gpus", sites, "--throughput", rates_, "--policy", "fifo"});
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err,
                HasSubstr(fmt::format("its datacenters have {} GPUs together", 2 * gpus)));
  }
}

TEST_F(ClusterCommand, RefusesASiteWithoutGpus) {
  const std::string sites = directory_.write(
      "sites.toml",
      "[parallel]\nstages = 1\nmicrobatches = 1\n[costs]\nforward = \"1ms\"\nweights = \"1MB\"\n"
      "[[datacenter]]\nname = \"east\"\n");
  const Outcome found = run({"--gpus", sites, "--throughput", rates_, "--policy", "fifo"});
  EXPECT_EQ(found.code, 2);
  EXPECT_THAT(found.err, HasSubstr("datacenter east does not say how many GPUs"));
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
