#include "planner/solver/solver_problem.hpp"

#include <map>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

using Json = nlohmann::json;

/// Every constraint of the model holds for the times of the warm start.
void expect_feasible(const SolverProblem& problem, const std::string& where) {
  const Json& json = problem.json;
  const auto begin = [&](const Json& i) {
    return json["blocks"][i.get<std::size_t>()]["start_ns"].get<std::int64_t>();
  };
  std::map<std::size_t, std::int64_t> fused;  // length of a B, by its D; 0 by its W
  for (const Json& fusion : json["fusions"]) {
    if (!fusion["fused"]) continue;
    fused[fusion["gradient"]] = fusion["duration_ns"];
    fused[fusion["weight"]] = 0;
  }
  const auto end = [&](const Json& i) {
    if (fused.contains(i.get<std::size_t>())) return begin(i) + fused[i.get<std::size_t>()];
    return begin(i) + json["blocks"][i.get<std::size_t>()]["duration_ns"].get<std::int64_t>();
  };
  const std::int64_t makespan = json["start_makespan_ns"];
  EXPECT_LE(json["lower_bound_ns"].get<std::int64_t>(), makespan) << where;
  for (std::size_t i = 0; i < json["blocks"].size(); ++i) {
    const Json& block = json["blocks"][i];
    std::int64_t start = block["start_ns"];
    EXPECT_LE(block["head_ns"].get<std::int64_t>(), start) << where << block;
    // A tail of a W counts from its end: one that is fused has no length.
    if (block["kind"] == "W") start = end(i) - block["duration_ns"].get<std::int64_t>();
    EXPECT_LE(start + block["tail_ns"].get<std::int64_t>(), makespan) << where << block;
  }
  for (const Json& pair : json["after"]) EXPECT_LE(end(pair[0]), begin(pair[1])) << where << pair;
  for (const Json& message : json["messages"]) {
    const std::int64_t takes =
        message["transfer_ns"].get<std::int64_t>() + message["latency_ns"].get<std::int64_t>();
    EXPECT_LE(end(message["from"]) + takes, begin(message["to"])) << where << message;
  }
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> change;  // by device and time
  for (const Json& held : json["held"]) {
    const std::size_t device = json["blocks"][held["from"].get<std::size_t>()]["device"];
    change[{device, begin(held["from"])}] += held["bytes"].get<std::int64_t>();
    change[{device, end(held["until"])}] -= held["bytes"].get<std::int64_t>();
  }
  std::map<std::size_t, std::int64_t> level;
  for (const auto& [when, bytes] : change) {
    level[when.first] += bytes;
    EXPECT_LE(level[when.first], json["memory_limits_bytes"][when.first].get<std::int64_t>())
        << where;
  }
  for (const auto& [device, left] : level) EXPECT_EQ(left, 0) << where << device;
}

TEST(SolverProblem, HoldsTheWarmStartOfRandomInstances) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    scenario.parallel.replicas = 1;
    scenario.placement.resize(static_cast<std::size_t>(scenario.parallel.stages));
    SolverOptions options;
    options.microbatch_order = random.between(0, 1) == 0;
    options.fuse = random.between(0, 1) == 0;
    for (const char* name : {"1f1b", "zb-h1", "cross-ud-sub", "cross-wave", "cross-bd"}) {
      Schedule start;
      try {
        start = schedule::generate(name, scenario);
      } catch (const Error&) {
        continue;  // not defined on this scenario
      }
      if (schedule::first_violation(start, scenario)) continue;
      const SolverProblem problem = make_problem(scenario, start, options);
      const auto violation = schedule::first_violation(problem.start, scenario);
      ASSERT_FALSE(violation.has_value()) << "seed " << seed << " " << name << violation->text;
      EXPECT_EQ(problem.exact, collectives_take_no_less(problem.start, scenario));
      EXPECT_EQ(problem.start_makespan,
                try_makespan(problem.start, scenario, Arrangement::decoupled, time_alone(scenario))
                    .or_throw());
      expect_feasible(problem, fmt::format("seed {} {} ", seed, name));
      ++held;
    }
  }
  EXPECT_GT(held, 300);
}

TEST(SolverProblem, LimitsEachDeviceByItsBudgetAndCapacity) {
  Scenario scenario = uniform_scenario(2, 4);
  scenario.memory.budget = 2;
  const std::int64_t of_microbatch = scenario.costs.activation[0].count();
  SolverOptions options;
  const auto limits = [&](const Schedule& start) {
    return make_problem(scenario, start, options).json["memory_limits_bytes"];
  };
  const Schedule start = schedule::generate("zb-h1", scenario);
  EXPECT_EQ(limits(start), Json({4 * of_microbatch, 4 * of_microbatch}));
  const schedule::DeviceNeed second = schedule::device_memory(start, scenario)[1];
  const Bytes others = second.total() - second.activations;
  scenario.memory.capacity = {std::nullopt, others + scenario.costs.activation[1] * 3};
  EXPECT_EQ(limits(start), Json({4 * of_microbatch, 3 * of_microbatch}));
}

// A B of 150 becomes D 100 and W 100; parts become whole; the second F of a chunk is microbatch 1.
TEST(SolverProblem, BringsSchedulesIntoTheModel) {
  Scenario scenario = uniform_scenario(1, 2);
  scenario.costs.backward[0] = 150ns;
  Schedule schedule = schedule::generate("gpipe", scenario);
  schedule.rows[0] = {{BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{1}},
                      {BlockKind::F, 0, 2, ChunkId{0}, MicrobatchId{0}},
                      {BlockKind::F, 1, 2, ChunkId{0}, MicrobatchId{0}},
                      {BlockKind::B, 0, 1, ChunkId{0}, MicrobatchId{1}},
                      {BlockKind::D, 0, 1, ChunkId{0}, MicrobatchId{0}},
                      {BlockKind::W, 0, 2, ChunkId{0}, MicrobatchId{0}},
                      {BlockKind::W, 1, 2, ChunkId{0}, MicrobatchId{0}}};
  SolverOptions split;
  split.fuse = false;
  const Schedule in_order = in_model(schedule, scenario, split);
  const std::vector<Block> expected{{BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{0}},
                                    {BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{1}},
                                    {BlockKind::D, 0, 1, ChunkId{0}, MicrobatchId{0}},
                                    {BlockKind::W, 0, 1, ChunkId{0}, MicrobatchId{0}},
                                    {BlockKind::D, 0, 1, ChunkId{0}, MicrobatchId{1}},
                                    {BlockKind::W, 0, 1, ChunkId{0}, MicrobatchId{1}}};
  EXPECT_EQ(in_order.rows[0], expected);
  SolverOptions any = split;
  any.microbatch_order = false;
  EXPECT_EQ(in_model(schedule, scenario, any).rows[0][0].microbatch, 1);
  const Schedule fused = in_model(schedule, scenario, {});
  EXPECT_EQ(fused.rows[0][2], (Block{BlockKind::B, 0, 1, ChunkId{0}, MicrobatchId{0}}));
  EXPECT_EQ(fused.rows[0][4], (Block{BlockKind::W, 0, 1, ChunkId{0}, MicrobatchId{1}}));
}

TEST(SolverProblem, LeavesDataParallelCommunicationOutWhereAsked) {
  Scenario scenario = spread(uniform_scenario(2, 4), 2, Duration{100}, Duration::zero());
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 2, Duration{100}, Duration::zero());
  const Schedule start = schedule::generate("zb-h1", scenario);
  SolverOptions options;
  const SolverProblem with = make_problem(scenario, start, options);
  options.include_dp = false;
  const SolverProblem without = make_problem(scenario, start, options);
  EXPECT_EQ(with.json["collectives"].size(), 4U);  // a gather and a scatter for each stage
  EXPECT_EQ(without.json["collectives"].size(), 0U);
  EXPECT_LE(without.start_makespan, with.start_makespan);
}

}  // namespace
}  // namespace longhaul::planner
