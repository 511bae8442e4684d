// Operators below blocks, over random instances and all generators: a plan of blocks that share
// their lists of operators takes what the plan with an op for each operator takes, op by op to the
// nanosecond, and so do rows and reports.
#include "support/operators.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/timeline_granularity.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "plan/rows.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "sim/simulate.hpp"
#include "trace/report/report_rows.hpp"

namespace longhaul {
namespace {

Duration short_time(Random& random) { return Duration{10 * random.between(0, 9)}; }

/// Stages or replicas over up to three datacenters, links of pairs or shared, collectives of all
/// kinds; times are few and short, so that much begins in the same instants.
Scenario scenario_with_operators(Random& random) {
  const auto stages = static_cast<int>(random.between(1, 4));
  Scenario scenario = uniform_scenario(stages, stages * static_cast<int>(random.between(1, 3)));
  scenario.parallel.replicas = static_cast<int>(random.between(1, 3));
  scenario.parallel.chunks = static_cast<int>(random.between(1, 2));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 4));
  scenario.memory.recompute = random.between(0, 3) == 0;
  scenario.memory.budget = 3;
  for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad, &scenario.costs.recompute})
    for (Duration& time : *times) time = short_time(random);
  if (random.between(0, 1) == 0)
    for (int stage = 0; stage < stages; ++stage)
      scenario.costs.optimizer.push_back(short_time(random));
  const auto datacenters = static_cast<int>(random.between(1, std::min(stages, 3)));
  scenario = spread(scenario, datacenters, short_time(random), short_time(random));
  for (Link& link : scenario.links) link.sharing = static_cast<Sharing>(random.between(0, 1));
  if (random.between(0, 1) == 0) scenario.nodes.push_back({DatacenterId{0}, 2, 3_Gbps, 2_Gbps});
  std::vector<Operator> operators = testing::random_operators(scenario, random);
  if (random.between(0, 1) == 0)
    testing::cost_by(std::move(operators), scenario);
  else
    testing::cut_by(std::move(operators), scenario);
  return scenario;
}

/// Calls `each(schedule, plan with shared lists)` for whatever runs; says how many plans that are.
template <typename Each>
int for_each_operator_plan(const Scenario& scenario, Arrangement arrangement, Each each) {
  int plans = 0;
  for (const schedule::Generator& generator : schedule::generators()) {
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    const auto plan = plan::try_lower(*schedule, scenario, arrangement);
    if (!plan) continue;
    SCOPED_TRACE(fmt::format("{} {}", generator.name, longhaul::to_string(arrangement)));
    each(*schedule, *plan, plan::with_operators(*plan, *schedule, scenario).or_throw());
    ++plans;
  }
  return plans;
}

template <typename Each>
void for_random_plans(std::uint64_t seeds, Each each) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random{seed};
    const Scenario scenario = scenario_with_operators(random);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    for (const Arrangement arrangement : every<Arrangement>())
      plans += for_each_operator_plan(
          scenario, arrangement,
          [&](const Schedule& schedule, const Plan& plan, const Plan& shared) {
            each(scenario, schedule, plan, shared);
          });
  }
  EXPECT_GT(plans, 8 * static_cast<int>(seeds));
}

/// The first op whose blocks begin or end otherwise than their operators; empty: none.
std::string first_difference(const Plan& shared, const OpTimes& blocks, const OpTimes& operators) {
  const plan::OperatorIds ids{shared};
  for (std::size_t i = 0; i < shared.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const OpTime& first = operators[index(ids.first(id))];
    const OpTime& last = operators[index(ids.last(id))];
    if (first.ready != blocks[i].ready || first.start != blocks[i].start ||
        last.end != blocks[i].end)
      return to_text(shared, id);
  }
  return "";
}

TEST(Operators, SharedAndExpandedTakeTheSameTimes) {
  for_random_plans(60, [](const Scenario&, const Schedule&, const Plan&, const Plan& shared) {
    const Plan inside = plan::expand(shared);
    EXPECT_EQ(first_difference(shared, sim::simulate(shared), sim::simulate(inside)), "");
  });
}

TEST(Operators, PlansOfBlocksTakeWhatTheyTookWithoutThem) {
  for_random_plans(30, [](const Scenario&, const Schedule&, const Plan& plan, const Plan& shared) {
    const OpTimes plain = sim::simulate(plan);
    const OpTimes times = sim::simulate(shared);
    std::size_t next = 0;
    for (std::size_t i = 0; i < shared.ops.size(); ++i) {
      // Steps that take no time are there at operator granularity alone.
      if (is_optimizer_step(shared.ops[i]) &&
          !(next < plan.ops.size() && is_optimizer_step(plan.ops[next])))
        continue;
      ASSERT_EQ(times[i].start, plain[next].start) << to_text(shared, OpId{std::uint32_t(i)});
      ASSERT_EQ(times[i].end, plain[next].end);
      ++next;
    }
    EXPECT_EQ(next, plan.ops.size());
  });
}

TEST(Operators, RowsOutOfBlocksAreThoseOfTheLargePlan) {
  for_random_plans(20, [](const Scenario&, const Schedule&, const Plan&, const Plan& shared) {
    const Plan inside = plan::expand(shared);
    Timeline lazy;
    plan::append_operator_rows(lazy, shared, sim::simulate(shared), 0);
    Timeline whole;
    plan::append_rows(whole, inside, sim::simulate(inside), 0);
    ASSERT_EQ(lazy.rows.size(), whole.rows.size());
    EXPECT_EQ(lazy.operators, whole.operators);
    for (std::size_t i = 0; i < lazy.rows.size(); ++i)
      ASSERT_EQ(lazy.rows[i], whole.rows[i]) << to_text(inside, OpId{std::uint32_t(i)});
  });
}

TEST(Operators, ReportsSayTheSameAtBothGranularities) {
  for_random_plans(
      20, [](const Scenario& scenario, const Schedule&, const Plan& plan, const Plan& shared) {
        const std::int64_t budget = scenario.activation_budget().count();
        const auto report_of = [&](const Plan& of) {
          const OpTimes times = sim::simulate(of);
          return trace::report_rows(plan::PlanRows{of, times}, budget, of.datacenters);
        };
        const trace::IterationReport blocks = report_of(plan);
        const trace::IterationReport inside = report_of(plan::expand(shared));
        EXPECT_EQ(inside.makespan_ns, blocks.makespan_ns);
        EXPECT_EQ(inside.device_span_ns, blocks.device_span_ns);
        EXPECT_EQ(inside.bubble_ratio, blocks.bubble_ratio);
        EXPECT_EQ(inside.peak_activation_bytes, blocks.peak_activation_bytes);
        EXPECT_EQ(inside.idle.total(), blocks.idle.total());
        EXPECT_EQ(inside.dp_overlap, blocks.dp_overlap);
      });
}

TEST(Operators, TimelinesFoldToBlocksAndUnfoldAgain) {
  for_random_plans(20,
                   [](const Scenario& scenario, const Schedule&, const Plan&, const Plan& shared) {
                     const OpTimes times = sim::simulate(shared);
                     Timeline blocks;
                     plan::append_rows(blocks, shared, times, 0);
                     Timeline operators;
                     plan::append_operator_rows(operators, shared, times, 0);
                     const Timeline folded = plan::folded(operators).or_throw();
                     ASSERT_EQ(folded.rows.size(), blocks.rows.size());
                     for (std::size_t i = 0; i < blocks.rows.size(); ++i)
                       ASSERT_EQ(folded.rows[i], blocks.rows[i]);
                     const Timeline unfolded = plan::unfolded(blocks, scenario).or_throw();
                     ASSERT_EQ(unfolded.rows.size(), operators.rows.size());
                     for (std::size_t i = 0; i < operators.rows.size(); ++i) {
                       EXPECT_EQ(unfolded.rows[i].start_ns, operators.rows[i].start_ns);
                       EXPECT_EQ(unfolded.rows[i].end_ns, operators.rows[i].end_ns);
                       EXPECT_EQ(unfolded.rows[i].bound_by, operators.rows[i].bound_by);
                     }
                   });
}

/// Other names in another alphabetical order, some of them shared: the same times, op by op.
TEST(Operators, TheirNamesDecideNothing) {
  Random random{11};
  int plans = 0;
  for (int instance = 0; instance < 60; ++instance) {
    const Scenario scenario = scenario_with_operators(random);
    Scenario renamed = scenario;
    std::vector<Operator> operators = *scenario.operators.all;
    for (Operator& each : operators) each.name = fmt::format("{:x}", random.between(0, 20));
    renamed.operators.all = std::make_shared<const std::vector<Operator>>(std::move(operators));
    for_each_operator_plan(scenario, Arrangement::decoupled,
                           [&](const Schedule& schedule, const Plan& plan, const Plan& shared) {
                             const Plan other =
                                 plan::with_operators(plan, schedule, renamed).or_throw();
                             const auto spans = [](const Plan& of) {
                               std::vector<std::pair<Duration, Duration>> all;
                               for (const OpTime& time : sim::simulate(plan::expand(of)))
                                 all.emplace_back(time.start, time.end);
                               return all;
                             };
                             EXPECT_EQ(spans(other), spans(shared)) << "instance " << instance;
                             ++plans;
                           });
  }
  EXPECT_GT(plans, 480);
}

/// Gives most operators some tasks in each pass; some take no time.
void add_random_tasks(Scenario& scenario, Random& random) {
  std::vector<Operator> operators = *scenario.operators.all;
  auto tasks = std::make_shared<std::vector<OperatorTasks>>();
  for (Operator& each : operators) {
    if (random.between(0, 3) == 0) continue;
    each.tasks = static_cast<int>(tasks->size());
    OperatorTasks& own = tasks->emplace_back();
    for (const BlockKind work : {BlockKind::F, BlockKind::D, BlockKind::W, BlockKind::R})
      for (std::int64_t i = random.between(0, 3); i > 0; --i)
        own[index(work)].push_back(
            {"kernel" + std::to_string(i), Duration{random.between(0, 2) * random.between(0, 50)}});
  }
  scenario.operators.all = std::make_shared<const std::vector<Operator>>(std::move(operators));
  scenario.operators.tasks = std::move(tasks);
}

/// Block by block, operator by operator and kernel by kernel: the same nanosecond.
TEST(Granularities, AllGiveTheSameTime) {
  Random random{4};
  std::size_t more_tasks = 0;
  for (int instance = 0; instance < 60; ++instance) {
    Scenario scenario = scenario_with_operators(random);
    add_random_tasks(scenario, random);
    for (const schedule::Generator& generator : schedule::generators()) {
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule || !plan::try_lower(*schedule, scenario, Arrangement::decoupled)) continue;
      std::vector<Duration> ends;
      std::vector<std::size_t> ops;
      for (const Granularity granularity : every<Granularity>()) {
        const Plan plan = plan::lower_at(granularity, *schedule, scenario, Arrangement::decoupled);
        Duration end{};
        for (const OpTime& time : sim::simulate(plan)) end = std::max(end, time.end);
        ends.push_back(end);
        ops.push_back(plan.ops.size());
      }
      EXPECT_EQ(ends[0], ends[1]) << generator.name << ", instance " << instance;
      EXPECT_EQ(ends[0], ends[2]) << generator.name << ", instance " << instance;
      if (ops[2] > ops[1]) ++more_tasks;
    }
  }
  EXPECT_GT(more_tasks, 100U);
}

}  // namespace
}  // namespace longhaul
