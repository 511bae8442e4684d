#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

class LayoutCommand : public ::testing::Test {
protected:
  [[nodiscard]] Outcome plan(std::vector<std::string> more) const {
    more.insert(more.begin(), {"plan", scenario_, "--search", "parallel", "--tensor", "2,8",
                               "--micro-batch", "1,2", "--gpus", "16"});
    return longhaul_run(more);
  }

  TempDir directory_;
  std::string scenario_ = directory_.write("gpt.toml",
                                           "[model]\npreset = \"gpt-3.6b\"\n[parallel]\n"
                                           "global_batch = 64\n[search]\ndata = [1, 2, 4]\n"
                                           "pipeline = \"1:4\"\n");
};

TEST_F(LayoutCommand, GivesTheFrontAndTheBest) {
  const Outcome found = plan({"--tokens", "1e9", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json();
  EXPECT_EQ(json["search_kind"], "parallel");
  EXPECT_EQ(json["machine"], "selene");
  ASSERT_FALSE(json["plans"].empty());
  const auto& plan = json["plans"][json["best"]["time"].get<std::size_t>()];
  EXPECT_EQ(plan["gpus_used"], 16);
  EXPECT_EQ(plan["dollars_per_hour"], 80.0);
  EXPECT_EQ(plan["pareto"], true);
  EXPECT_EQ(plan["fits"], true);
  EXPECT_LE(plan["bound_ns"], plan["iteration_ns"]);
  EXPECT_LT(plan["low_ns"], plan["iteration_ns"]);
  EXPECT_TRUE(plan["dollars"].is_number());
  EXPECT_GT(json["space"]["refused"]["number of GPUs"], 0);
  EXPECT_EQ(json["gap"]["time"], 0.0);
}

TEST_F(LayoutCommand, CountsThePriceOfEachDatacenter) {
  const auto two = [&](const std::string& west, const std::string& east) {
    return directory_.write(
        "two.toml",
        "[model]\npreset = \"gpt-3.6b\"\n[parallel]\nglobal_batch = 64\n[search]\n"
        "data = [1, 2, 4]\npipeline = \"1:4\"\n[[datacenter]]\nname = \"west\"\n" +
            west + "\n[[datacenter]]\nname = \"east\"\n" + east +
            "\n[[link]]\nbetween = [\"west\", \"east\"]\nlatency = \"10ms\"\nbandwidth = "
            "\"20Gbps\"\n");
  };
  scenario_ = two("price = 4", "price = 1");
  const Outcome found = plan({"--objective", "cost", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = found.json();
  EXPECT_EQ(json["dollars_per_gpu_hour"], (nlohmann::json{{"west", 4.0}, {"east", 1.0}}));
  EXPECT_FALSE(json["best"].contains("utilisation"));
  for (const auto& each : json["plans"]) {
    const auto& placed = each["placement"]["datacenters"];
    const double whole = each["placement"]["split"] == "stages" ? each["pipeline"] : each["data"];
    const double of_part = each["gpus_used"].get<double>() / whole;
    EXPECT_DOUBLE_EQ(each["dollars_per_hour"],
                     of_part * (4 * placed.value("west", 0.0) + placed.value("east", 0.0)));
  }
  const auto& cheapest = json["plans"][json["best"]["cost"].get<std::size_t>()];
  EXPECT_FALSE(cheapest["placement"]["datacenters"].contains("west"));
  EXPECT_THAT(plan({"--objective", "utilisation"}).err, HasSubstr("different prices"));
  EXPECT_EQ(plan({"--objective", "utilisation", "--price", "2"}).code, 0);
  scenario_ = two("price = 4", "");
  EXPECT_EQ(plan({}).code, 0) << "one price is everybody's";
  scenario_ = two("price = 4", "price = 0");
  EXPECT_EQ(plan({"--objective", "cost"}).code, 0);
}

TEST_F(LayoutCommand, TakesADeadlineThatNothingReaches) {
  const Outcome found = plan({"--iterations", "1", "--deadline", "1e15d", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_FALSE(found.json()["plans"].empty());
}

TEST_F(LayoutCommand, TakesWhatSetWrites) {
  const Outcome found = plan({"--set", "search.machine=mpt-a100-40gb", "--set", "search.data=2",
                              "--set", "parallel.global_batch=32", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto answer = found.json();
  EXPECT_EQ(answer["machine"], "mpt-a100-40gb");
  EXPECT_EQ(answer["global_batch"], 32);
  for (const auto& each : answer["plans"]) EXPECT_EQ(each["data"], 2);
  EXPECT_THAT(plan({"--set", "search.machine=x"}).err, HasSubstr("\"x\""));
  EXPECT_THAT(plan({"--set", "search.nonsense=1"}).err, HasSubstr("nonsense"));
}

TEST_F(LayoutCommand, EmitsScenariosOfTheSameMakespan) {
  const std::string plans = directory_.path("plans");
  const Outcome found = plan({"--emit", plans, "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto json = found.json();
  for (std::size_t i = 0; i < json["plans"].size(); ++i) {
    const Outcome simulated =
        longhaul_run({"simulate", plans + "/plan-" + std::to_string(i) + ".toml", "--schedule",
                      json["plans"][i]["schedule"].get<std::string>(), "--json"});
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_EQ(simulated.json()["schedules"][0]["iteration_ns"], json["plans"][i]["iteration_ns"]);
  }
  EXPECT_EQ(plan({"--emit", plans}).code, 2);  // it exists
}

// Orders that know the links are made again of the scenario; that of `best` stands beside it.
TEST_F(LayoutCommand, EmitsOrdersThatKnowTheLinks) {
  scenario_ =
      directory_.write("far.toml",
                       "[model]\npreset = \"gpt-3.6b\"\n[parallel]\nglobal_batch = 16\n[search]\n"
                       "data = [1, 2]\npipeline = [2, 4]\n[[datacenter]]\nname = \"west\"\n"
                       "[[datacenter]]\nname = \"east\"\n[[link]]\nbetween = [\"west\", \"east\"]\n"
                       "latency = \"20ms\"\nbandwidth = \"20Gbps\"\n");
  const std::string plans = directory_.path("aware");
  const Outcome found = plan({"--schedule", "cross-ud,cross-wave,atlas,best", "--recompute", "full",
                              "--sharding", "none", "--keep", "all", "--emit", plans, "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto json = found.json()["plans"];
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string order = json[i]["schedule"].get<std::string>();
    ++seen[order];
    const std::string own = plans + "/plan-" + std::to_string(i);
    const Outcome simulated = longhaul_run({"simulate", own + ".toml", "--schedule",
                                            order == "best" ? own + ".csv" : order, "--json"});
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    EXPECT_EQ(simulated.json()["schedules"][0]["iteration_ns"], json[i]["iteration_ns"]) << order;
    EXPECT_LT(json[i]["low_ns"], json[i]["iteration_ns"]);
    EXPECT_TRUE(json[i]["rings"].contains("data"));
  }
  EXPECT_GT(seen["best"], 0);
  EXPECT_GT(seen["cross-ud"] + seen["cross-wave"], 0);
}

// (2, 2, 2) is one node's 8 GPUs, and leaves it where it lies in two datacenters.
TEST_F(LayoutCommand, ShowsWhichRingsLeaveTheirDatacenter) {
  scenario_ = directory_.write(
      "far.toml",
      "[model]\npreset = \"gpt-3.6b\"\n[parallel]\nglobal_batch = 16\n[[datacenter]]\n"
      "name = \"west\"\n[[datacenter]]\nname = \"east\"\n[[link]]\n"
      "between = [\"west\", \"east\"]\nlatency = \"20ms\"\nbandwidth = \"20Gbps\"\n");
  const auto json =
      longhaul_run({"plan",       scenario_, "--search",     "parallel", "--tensor",      "2",
                    "--data",     "2",       "--pipeline",   "2",        "--micro-batch", "1",
                    "--schedule", "1f1b",    "--recompute",  "none",     "--sharding",    "none",
                    "--keep",     "all",     "--exhaustive", "--json"})
          .json()["plans"];
  ASSERT_EQ(json.size(), 4U);  // each datacenter, both by stages, both by replicas
  for (const auto& plan : json) {
    const auto &place = plan["placement"], &rings = plan["rings"];
    const bool apart = place["datacenters"].size() > 1, by_stages = place["split"] == "stages";
    EXPECT_EQ(rings["pipeline"]["leave_node"], apart && by_stages ? 1 : 0);
    EXPECT_EQ(rings["data"]["leaves_node"], apart && !by_stages);
    EXPECT_EQ(rings["data"]["share_node"], apart && !by_stages ? 2 : 1);
    EXPECT_EQ(rings["tensor"]["leaves_node"], false);
  }
}

TEST_F(LayoutCommand, PrintsATable) {
  const Outcome found = plan({});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("time, cost, utilisation"));
  EXPECT_THAT(found.out, HasSubstr("number of GPUs"));
}

TEST_F(LayoutCommand, RefusesWhatIsWrong) {
  const auto refused = [&](std::vector<std::string> more, const char* what) {
    const Outcome found = plan(std::move(more));
    EXPECT_EQ(found.code, 2);
    EXPECT_THAT(found.err, HasSubstr(what));
  };
  refused({"--machine", "selen"}, "Did you mean \"selene\"?");
  refused({"--schedule", "1f1c"}, "1f1b");
  refused({"--deadline", "30d"}, "--tokens");
  refused({"--memory", "1GB"}, "memory");
  refused({"--tokens", "1e9", "--deadline", "1s"}, "deadline");
  refused({"--data", "4:1"}, "backwards");
  refused({"--limit", "3"}, "--limit");
  refused({"--threads", "3"}, "--threads");
  refused({"--memory", "-4GB"}, "--memory");
  refused({"--memory", "0GB"}, "holds nothing");
  const Outcome other = longhaul_run({"plan", scenario_, "--gpus", "8"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--search parallel"));
}

TEST(SizeCommand, RefusesWhatIsTooLarge) {
  const auto err = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"size", "--days", "30"});
    const Outcome found = longhaul_run(more);
    EXPECT_EQ(found.code, 2);
    return found.err;
  };
  EXPECT_THAT(err({"--gpus", "512", "--model-grid", "h=8192,L=1:1048576"}),
              HasSubstr("more than 1024 models"));
  EXPECT_THAT(err({"--gpus", "512", "--data", "1:100000", "--model-grid", "h=8192,L=96"}),
              HasSubstr("points"));
  EXPECT_THAT(err({"--gpus", "8:16"}), HasSubstr("--gpus"));
  EXPECT_THAT(err({"--gpus", "7", "--model-grid", "h=8192,L=96"}),
              HasSubstr("no model of the grid has a plan on 7 GPUs (h = 8192, L = 96: "));
  EXPECT_THAT(err({"--gpus", "8", "--price", "3"}), HasSubstr("--price"));
  EXPECT_THAT(longhaul_run({"size", "--help"}).out, ::testing::Not(HasSubstr("LOW:HIGH")));
}

TEST_F(LayoutCommand, SizesAndRates) {
  const Outcome sized =
      longhaul_run({"size", "--gpus", "64", "--days", "30", "--model-grid", "h=2048,4096,L=24",
                    "--global-batch", "256", "--schedule", "1f1b", "--loss", "hoffmann", "--json"});
  ASSERT_EQ(sized.code, 0) << sized.err;
  const auto json = sized.json();
  EXPECT_EQ(json["models"].size(), 2U);
  EXPECT_EQ(json["models"][0]["hidden"], 4096);
  EXPECT_EQ(json["best"], 0);
  EXPECT_TRUE(json["loss"]["best"].is_number());
  EXPECT_NEAR(json["naive"]["flops"].get<double>(), 64 * 30 * 86400 * 312e12, 1e18);
  const std::string jobs = directory_.write(
      "jobs.csv", "job,submit_s,model,global_batch,iterations,deadline_s\na,0,18.4b,64,10,\n");
  const Outcome played =
      longhaul_run({"cluster", jobs, "--gpus", "32", "--plans", "best", "--json"});
  ASSERT_EQ(played.code, 0) << played.err;
  EXPECT_EQ(played.json()["jobs"][0]["met"], true);
  EXPECT_THAT(longhaul_run({"cluster", jobs, "--gpus", "32"}).err, HasSubstr("--plans best"));
}

}  // namespace
}  // namespace longhaul::test
