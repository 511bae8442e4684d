#include "planner/cluster/cluster_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTable =
    "model,global_batch,gpus,iterations_per_second\n"
    "m,8,1,1.5\nm,8,2,2.5\nm,8,4,2.0\nm,8,8,0\nn,8,4,1\n";

ClusterInput read(const std::string& jobs, const std::string& table = kTable) {
  return read_cluster_input(jobs, "jobs.csv", table, "rates.csv", {4, {}});
}

/// What the reader says of the jobs, or of the table.
std::string refusal(const std::string& jobs, const std::string& table = kTable) {
  try {
    (void)read(jobs, table);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string jobs(const std::string& line) {
  return "job,submit_s,model,global_batch,iterations,deadline_s\n" + line + '\n';
}

TEST(ReadClusterInput, TakesColumnsInAnyOrder) {
  const ClusterInput input = read(
      "# a remark\ndeadline_s,job,model,iterations,submit_s,global_batch\r\n,a,m,100,1.5,8\r\n"
      "20,b,m,1,2,8\r\n");
  ASSERT_EQ(input.jobs.size(), 2u);
  EXPECT_EQ(input.jobs[0].name, "a");
  EXPECT_EQ(input.jobs[0].submit, 1500ms);
  EXPECT_EQ(input.jobs[0].deadline, std::nullopt);
  EXPECT_EQ(input.jobs[1].deadline, 20s);
  ASSERT_EQ(input.jobs[0].rates.size(), 3u);  // 8 GPUs do not run
  EXPECT_EQ(input.jobs[0].rates[1].gpus, 2);
  EXPECT_THAT(input.notes, ElementsAre("m at batch 8: 4 GPUs are no faster than fewer ones"));
  EXPECT_EQ(read("job,submit_s,model,global_batch,iterations\na,0,m,8,1\n").jobs.size(), 1u);
}

TEST(ReadClusterInput, RefusesWithTheLine) {
  EXPECT_THAT(refusal(jobs("a,0,o,8,1,")), HasSubstr("jobs.csv:2: there is no model \"o\""));
  EXPECT_THAT(refusal(jobs("a,0,m,16,1,")), HasSubstr("it has batches 8"));
  EXPECT_THAT(refusal(jobs("a,5,m,8,1,5")), HasSubstr("is not after the submission"));
  EXPECT_THAT(refusal(jobs("a,x,m,8,1,5")), HasSubstr("submit_s \"x\" is no number"));
  EXPECT_THAT(refusal(jobs("a,0,m,8,0,5")), HasSubstr("0 iterations"));
  EXPECT_THAT(refusal(jobs("a,0,m,8,1,5\na,0,m,8,1,5")), HasSubstr("jobs.csv:3: job \"a\" stands"));
  EXPECT_THAT(refusal(jobs("a,0,m,8,1")), HasSubstr("5 values"));
  EXPECT_THAT(refusal("job,submit_s\n"), HasSubstr("there is no column \"model\""));
  EXPECT_THAT(refusal(""), HasSubstr("it is empty"));
  EXPECT_THAT(refusal("job,submit_s,model,global_batch,iterations\n"), HasSubstr("no jobs"));
}

TEST(ReadClusterInput, RefusesTablesThatDoNotServe) {
  const std::string head = "model,global_batch,gpus,iterations_per_second\n";
  const std::string one = jobs("a,0,m,8,1,");
  EXPECT_THAT(refusal(one, head + "m,8,1,1\nm,8,1,2\n"),
              HasSubstr("rates.csv:3: m at batch 8 on 1"));
  EXPECT_THAT(refusal(one, head + "m,8,0,1\n"), HasSubstr("0 gpus"));
  EXPECT_THAT(refusal(one, head + "m,8,1,0\n"), HasSubstr("runs on no number of GPUs"));
  EXPECT_THAT(refusal(one, head + "m,8,8,1\n"),
              HasSubstr("needs 8 GPUs at least (the cluster has 4)"));
}

const ClusterGpus kTwoSites{12, {{"east", 4}, {"west", 8}}};

ClusterInput read_over_sites(const std::string& table) {
  return read_cluster_input(jobs("a,0,m,8,1,"), "jobs.csv",
                            "model,global_batch,gpus,sites,iterations_per_second\n" + table,
                            "rates.csv", kTwoSites);
}

std::string refusal_of_sites(const std::string& table) {
  try {
    (void)read_over_sites(table);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ReadClusterInput, TakesPlacesOfSites) {
  const ClusterInput input =
      read_over_sites("m,8,4,,1\nm,8,8,west:8,1.5\nm,8,12,east:4+west:8,2\nm,8,5,east:5,9\n");
  ASSERT_EQ(input.jobs.size(), 1U);
  std::vector<std::string> places;
  for (const SiteGpus& place : input.jobs[0].places)
    places.push_back(place_text(place, kTwoSites.sites));
  // Four GPUs of any one site; five of the east are more than it has.
  EXPECT_THAT(places, ElementsAre("east:4", "west:4", "west:8", "east:4+west:8"));
  ASSERT_EQ(input.jobs[0].rates.size(), 4U);
  EXPECT_EQ(input.jobs[0].rates[1].rate, 1);
  EXPECT_EQ(input.jobs[0].rates[3].gpus, 12);
}

TEST(ReadClusterInput, RefusesPlacesThatAreNone) {
  EXPECT_THAT(refusal_of_sites("m,8,4,est:4,1\n"),
              HasSubstr("rates.csv:2: sites: there is no \"est\". Did you mean \"east\"?"));
  EXPECT_THAT(refusal_of_sites("m,8,4,east,1\n"), HasSubstr("\"east\" is no site with its GPUs"));
  EXPECT_THAT(refusal_of_sites("m,8,4,east:2+east:2,1\n"), HasSubstr("with its GPUs, once"));
  EXPECT_THAT(refusal_of_sites("m,8,4,east:4+,1\n"), HasSubstr("there is no \"\""));
  EXPECT_THAT(refusal_of_sites("m,8,5,east:4,1\n"), HasSubstr("4 GPUs together, and gpus is 5"));
  EXPECT_THAT(refusal_of_sites("m,8,5,east:5,1\n"), HasSubstr("fits none of the sites"));
  EXPECT_THAT(refusal(jobs("a,0,m,8,1,"),
                      "model,global_batch,gpus,sites,iterations_per_second\n"
                      "m,8,4,east:4,1\n"),
              HasSubstr("the cluster is one pool of GPUs"));
}

}  // namespace
}  // namespace longhaul::planner
