// Placed prompts in the bubbles of training: ranks play them, and training beside them, in the
// times that the simulator gives, which are those of the placement.
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "played_plan.hpp"
#include "prefill/lowering/row_idle.hpp"
#include "prefill/lowering/row_memory.hpp"
#include "schedule/generators/registry.hpp"
#include "support/cells.hpp"
#include "support/filled_stretches.hpp"
#include "support/prefills/heterogeneous.hpp"

namespace longhaul {
namespace {

/// Ops whose times or outcomes ranks and simulator do not agree on.
int differences(const Plan& plan, const OpResults& played, const OpResults& simulated) {
  int count = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Outcome outcome = simulated.outcomes.empty() ? Outcome::ran : simulated.outcomes[i];
    const bool same = played.times[i].start == simulated.times[i].start &&
                      played.times[i].end == simulated.times[i].end &&
                      played.outcomes[i] == outcome;
    EXPECT_TRUE(same || count > 0) << to_text(plan, OpId{static_cast<std::uint32_t>(i)});
    count += same ? 0 : 1;
  }
  return count;
}

TEST(PlayedPrefills, TakeTheTimesOfThePlacementAndLeaveTrainingAlone) {
  std::size_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    const auto filled = stretch.fill(stretch.place(testing::random_requests(random)));
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      ASSERT_EQ(played.times[index(filled.training[i])].start, stretch.times[i].start);
    placed += filled.stages.size();
  }
  EXPECT_GT(placed, 400U);
}

// Keys and values go to a decode rank beside them, over interfaces that training's messages hold.
TEST(PlayedPrefills, SendKeysAndValuesAsSimulated) {
  std::size_t tokens = 0;
  int moved = 0;
  for (std::uint64_t seed = 200; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = testing::random_serving_scenario(random);
    testing::send_keys_and_values(scenario, Bytes{100}, random);
    scenario.add_services({RankRole::decode, DatacenterId{0}, 1});
    const testing::PlacedStretch stretch{scenario, "1f1b", 2};
    const auto sending = seed % 2 == 0 ? prefill::KvSending::whole : prefill::KvSending::layerwise;
    const auto filled =
        stretch.fill(stretch.place(testing::random_requests(random)), {.kv = sending});
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      moved += played.times[index(filled.training[i])].start != stretch.times[i].start ? 1 : 0;
    tokens += filled.tokens.size();
  }
  EXPECT_GT(tokens, 200U);
  EXPECT_GT(moved, 0) << "slices are there to be waited for";
}

// A DP-cell's ranks relay for each other while they compute prompts.
TEST(PlayedPrefills, BesideRelayedMessages) {
  Scenario scenario = testing::cell_of(3, Bytes{120});
  scenario.parallel.microbatches = 4;
  scenario.served.push_back(prefill::linear_model(1ns));
  const testing::PlacedStretch stretch{
      scenario, testing::in_cells(schedule::generate("1f1b", scenario), scenario, 3), 2};
  std::vector<prefill::Request> requests;
  for (std::int64_t i = 0; i < 30; ++i) requests.push_back({i, Duration{20 * i}, 1 + 7 * i % 60});
  const auto filled = stretch.fill(stretch.place(requests));
  EXPECT_GT(filled.stages.size(), 10U);
  const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
  ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
  for (std::size_t i = 0; i < stretch.times.size(); ++i)
    ASSERT_EQ(played.times[index(filled.training[i])].end, stretch.times[i].end);
}

// Blocks take longer or shorter than planned: deadlines move by what has ended, on ranks as in the
// simulator.
TEST(PlayedPrefills, GoByTrainingAsItIs) {
  std::size_t declined = 0, moved = 0;
  for (std::uint64_t seed = 300; seed < 340; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    auto filled = stretch.fill(stretch.place(testing::random_requests(random)));
    longhaul::Run run;
    run.noise = 0.1;
    run.seed = seed;
    for (const OpId id : filled.training) {
      Op& op = filled.plan.ops[index(id)];
      if (op.kind != OpKind::compute) continue;
      const DeviceId device = filled.plan.ranks[index(filled.plan.rank_of(id))].device;
      op.duration = scaled(op.duration, plan::block_time_factor(run, device, id, 0));
    }
    const OpResults simulated = sim::simulate_results(filled.plan);
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, simulated), 0);
    for (const prefill::FilledStage& stage : filled.stages) {
      const bool ran =
          simulated.outcomes.empty() || simulated.outcomes[index(stage.op)] == Outcome::ran;
      declined += ran ? 0 : 1;
      moved += ran && simulated.times[index(stage.op)].end > stage.placed.end() ? 1 : 0;
    }
  }
  EXPECT_GT(declined, 20U);
  EXPECT_GT(moved, 100U);
}

/// Two iterations of an instance whose capacities leave room for a few prompts.
struct LimitedStretch {
  explicit LimitedStretch(testing::Heterogeneous of) : instance{std::move(of)} {
    end = instance.bubbles.period;
    instance.bubbles = prefill::cut_at_ends(instance.bubbles);
    graph = std::make_shared<const prefill::TrainingGraph>(instance.plan, instance.times,
                                                           instance.bubbles.gpus);
    memory = std::make_shared<const prefill::MemoryBesideBlocks>(
        instance.schedule, instance.scenario, instance.plan, *graph, instance.served);
  }
  [[nodiscard]] prefill::FilledPlan fill(prefill::KvSending sending) {
    Duration held_after{1'000};
    for (const prefill::Served& each : instance.served)
      held_after = std::max(held_after, Duration{1'000} + each.model.guard);
    decisions =
        instance.place(prefill::PlacementPolicy::earliest, {false, 1, true}, sending, held_after);
    prefill::FillOptions options{.graph = graph, .memory = memory};
    if (instance.served.front().model.decode) options.kv = sending;
    return prefill::fill_plan(instance.plan, instance.times, end, instance.served, decisions,
                              options);
  }
  [[nodiscard]] std::vector<prefill::GpuMemory> measured(const prefill::FilledPlan& filled,
                                                         const OpResults& results) const {
    return prefill::memory_of_rows(*memory, *graph, instance.served, filled, decisions, results);
  }

  testing::Heterogeneous instance;
  Duration end{};
  std::shared_ptr<const prefill::TrainingGraph> graph;
  std::shared_ptr<const prefill::MemoryBesideBlocks> memory;
  std::vector<prefill::Decision> decisions;
};

/// Training's blocks take other times than planned.
void change_times(prefill::FilledPlan& filled, std::uint64_t seed) {
  longhaul::Run run;
  run.noise = 0.1;
  run.seed = seed;
  for (const OpId id : filled.training) {
    Op& op = filled.plan.ops[index(id)];
    if (op.kind != OpKind::compute) continue;
    const DeviceId device = filled.plan.ranks[index(filled.plan.rank_of(id))].device;
    op.duration = scaled(op.duration, plan::block_time_factor(run, device, id, 0));
  }
}

// Where blocks take their planned times memory holds what was placed; where they do not a prompt
// that finds none is declined. A block that comes earlier than anyone could know meets what has not
// left yet: that is measured, too.
TEST(PlayedPrefills, FitIntoMemoryAtEveryMoment) {
  std::size_t placed = 0, refused = 0, declined = 0, gpus = 0, over = 0;
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "varuna"})
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      auto instance = testing::heterogeneous(seed, *schedule::find_generator(name), 2);
      if (!instance || !prefill::limits_memory(instance->scenario)) continue;
      LimitedStretch stretch{std::move(*instance)};
      const bool is_calm = seed % 2 == 0;
      auto filled =
          stretch.fill(seed % 3 == 0 ? prefill::KvSending::whole : prefill::KvSending::layerwise);
      if (!is_calm) change_times(filled, seed);
      const OpResults simulated = sim::simulate_results(filled.plan);
      const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
      ASSERT_EQ(differences(filled.plan, played, simulated), 0);
      const auto measured = stretch.measured(filled, played);
      ASSERT_EQ(measured, stretch.measured(filled, simulated));
      ASSERT_EQ(measured.size(), to_size(stretch.instance.bubbles.gpus));
      for (const prefill::GpuMemory& each : measured) {
        ASSERT_TRUE(each.fits() || !is_calm)
            << "rank " << each.rank << " held " << each.peak.count() << " of "
            << each.capacity.count();
        over += each.fits() ? 0 : 1;
        ++gpus;
      }
      for (const prefill::Decision& each : stretch.decisions)
        refused += each.refused == prefill::RefusalReason::memory ? 1 : 0;
      for (const prefill::FilledStage& stage : filled.stages)
        if (!simulated.outcomes.empty() && !has_run(simulated.outcomes[index(stage.op)])) {
          // Slices of several prompts take turns on an interface, which placing does not foresee.
          ASSERT_FALSE(is_calm && !stretch.instance.served.front().model.decode)
              << to_text(filled.plan, stage.op);
          ++declined;
        }
      placed += filled.stages.size();
    }
  EXPECT_GT(placed, 500U);
  EXPECT_GT(refused, 100U);
  EXPECT_GT(declined, 20U);
  EXPECT_LT(500 * over, gpus);
}

// Whatever blocks take, what stays idle has a cause, to the nanosecond; where they take what was
// planned those are the causes of the placement.
TEST(PlayedPrefills, LeaveIdleTimeOfKnownCauses) {
  Duration declined{};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    auto instance = testing::heterogeneous(seed, *schedule::find_generator("1f1b"), 2);
    if (!instance) continue;
    LimitedStretch stretch{std::move(*instance)};
    auto filled = stretch.fill(prefill::KvSending::layerwise);
    const bool is_calm = seed % 2 == 0;
    if (!is_calm) change_times(filled, seed);
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    const testing::Heterogeneous& of = stretch.instance;
    const prefill::IdleTimes idle = prefill::idle_of_rows(
        {of.plan, filled, of.served, stretch.decisions, played, of.bubbles.gpus}, {});
    Duration wall{}, taken{};
    std::set<std::size_t> counted;  // prompts share passes
    for (std::size_t i = 0; i < of.plan.ops.size(); ++i) {
      const OpTime& time = played.times[index(filled.training[i])];
      wall = std::max(wall, time.end);
      if (of.plan.ops[i].kind == OpKind::compute) taken += time.end - time.start;
    }
    for (const prefill::FilledStage& stage : filled.stages)
      for (std::size_t op = index(stage.first); op <= index(stage.op); ++op)
        if (counted.insert(op).second) taken += played.times[op].end - played.times[op].start;
    EXPECT_EQ(std::accumulate(idle.begin(), idle.end(), Duration{}),
              of.bubbles.gpus * wall - taken);
    const auto of_cause = [&](prefill::IdleCause cause) {
      return idle[static_cast<std::size_t>(cause)];
    };
    EXPECT_EQ(of_cause(prefill::IdleCause::signal), Duration{}) << "the virtual clock loses none";
    declined += of_cause(prefill::IdleCause::declined);
    if (is_calm && of_cause(prefill::IdleCause::declined) == Duration{}) {
      EXPECT_EQ(idle, prefill::idle_by_cause(of.bubbles, of.served, stretch.decisions, 1, false));
    }
  }
  EXPECT_GT(declined, Duration{});
}

// What takes longer than estimated, and what does not give way.
TEST(PlayedPrefills, HarmTrainingAsPredicted) {
  int late = 0;
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    auto filled = stretch.fill(stretch.place(testing::random_requests(random)),
                               {.manners = prefill::Manners::careless});
    const OpResults simulated = sim::simulate_results(filled.plan);
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, simulated), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      late += simulated.times[index(filled.training[i])].end > stretch.times[i].end ? 1 : 0;
  }
  EXPECT_GT(late, 100);
}

}  // namespace
}  // namespace longhaul
