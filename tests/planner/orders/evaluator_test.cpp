// The incremental evaluator is held against the simulator, order by order.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/collectives/time_alone.hpp"
#include "planner/orders/starts.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/search_state.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

constexpr std::int64_t kAny = Evaluator::kNoLimit;

/// A random move, on the critical path or anywhere; false: that one is not possible.
bool propose(SearchState& walk, Random& random, Change& change) {
  const Moves moves{walk.orders()};
  const OrderProblem& problem = walk.orders().problem();
  const auto row =
      walk.orders().row(DeviceId{static_cast<int>(random.between(0, problem.devices() - 1))});
  const auto& path = walk.critical_path(random);
  const BlockId block =
      random.next() % 2 == 0 ? path[random.next() % path.size()] : row[random.next() % row.size()];
  if (random.between(0, 3) != 0)
    return moves.shift(block, static_cast<int>(random.between(-9, 9)), change);
  const BlockId gradient =
      problem.id(OrderProblem::Kind::G, problem.chunk_of(block), problem.microbatch_of(block));
  return walk.orders().is_fused(gradient) ? moves.split(gradient, random, change)
                                          : moves.fuse(gradient, random, change);
}

/// With collectives as one op, as the search knows them.
Duration makespan_for_search(const Schedule& schedule, const Scenario& scenario) {
  return try_makespan(schedule, scenario, Arrangement::decoupled, time_alone(scenario)).or_throw();
}

Simulation simulation_of(const Schedule& like, const Scenario& scenario) {
  return [&](const Orders& orders) -> std::optional<std::int64_t> {
    try {
      return makespan_for_search(orders.schedule(like), scenario).count();
    } catch (const Error&) {
      return std::nullopt;
    }
  };
}

/// Every replica has links of its own, every block takes time.
Scenario private_links(Random& random) {
  Scenario scenario = test::random_scenario(random);
  scenario.nodes.clear();
  for (Link& link : scenario.links) link.sharing = Sharing::pair;
  for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad, &scenario.costs.recompute}) {
    for (Duration& time : *times) time += Duration{4};  // a chunk gets a third at least
  }
  return scenario;
}

struct Tally {
  int orders = 0, refused = 0, inexact = 0, reduced = 0, replicas = 0;
  int refused_within_limit = 0;  ///< by the simulator
};

/// The makespan by the simulator of an order after a change that was refused; nullopt: not
/// possible.
std::optional<std::int64_t> refused_makespan(const SearchState& walk, Change change,
                                             const Simulation& simulation) {
  if (!walk.orders().fits(change)) return std::nullopt;
  Orders after = walk.orders();
  after.apply(change);
  return simulation(after);
}

/// Goes `steps` random moves from a schedule and compares every order on the way.
void walk_from(const std::string& name, const Scenario& scenario, Random& random, int steps,
               Tally& tally) {
  Schedule start;
  try {
    start = whole_blocks(schedule::generate(name, scenario));
  } catch (const Error&) {
    return;  // not defined here
  }
  if (schedule::first_violation(start, scenario)) return;
  const OrderProblem problem{start, scenario};
  tally.inexact += problem.is_exact() ? 0 : 1;
  tally.reduced += problem.reduces() ? 1 : 0;
  tally.replicas += problem.links().size() > 1 ? 1 : 0;
  SearchState walk{problem, start, simulation_of(start, scenario)};
  ASSERT_EQ(walk.makespan(), makespan_for_search(start, scenario).count()) << name;
  Change change;
  for (int step = 0; step < steps; ++step) {
    if (!propose(walk, random, change)) continue;
    const std::int64_t limit =
        random.next() % 2 == 0 ? kAny : walk.makespan() + random.between(-20, 60);
    if (!walk.attempt(change, limit)) {
      ++tally.refused;
      const auto makespan = refused_makespan(walk, change, simulation_of(start, scenario));
      if (makespan && *makespan <= limit) ++tally.refused_within_limit;
      continue;
    }
    ++tally.orders;
    const Schedule now = walk.orders().schedule(start);
    ASSERT_EQ(walk.makespan(), makespan_for_search(now, scenario).count())
        << name << " step " << step;
    const auto violation = schedule::first_violation(now, scenario);
    ASSERT_FALSE(violation) << name << " step " << step << ": " << violation->text;
  }
}

/// Estimates and tails may be too high, but seldom so that it matters.
void count_refusals(const Tally& tally) {
  ::testing::Test::RecordProperty("refused", tally.refused);
  ::testing::Test::RecordProperty("refused_within_limit", tally.refused_within_limit);
  EXPECT_LT(20 * tally.refused_within_limit, tally.refused);
}

TEST(Evaluator, EqualsTheSimulatorOnThousandsOfRandomOrders) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Random random{seed};
    const Scenario scenario = private_links(random);
    for (const char* name :
         {"1f1b", "zb-h1", "interleaved-1f1b", "zbv", "cross-ud", "cross-wave"}) {
      walk_from(name, scenario, random, 60, tally);
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
  EXPECT_GT(tally.orders, 8000);
  EXPECT_GT(tally.refused, 1000);
  EXPECT_GT(tally.reduced, 50);
  EXPECT_GT(tally.replicas, 20);
  EXPECT_EQ(tally.inexact, 0);
  count_refusals(tally);
}

TEST(Evaluator, LeavesSharedLinksAndCopiesToTheSimulator) {
  Tally tally;
  for (std::uint64_t seed = 500; seed < 540; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    for (const char* name : {"zb-h1", "zbv", "cross-bd"}) {
      walk_from(name, scenario, random, 25, tally);
      if (::testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
  EXPECT_GT(tally.orders, 500);
  EXPECT_GT(tally.inexact, 30);
  count_refusals(tally);
}

/// Moves after which an iteration takes longer, and those of them with an exact estimate.
struct Estimates {
  int longer = 0, exact = 0;
};

Estimates estimates_from(const char* name, const Scenario& scenario, Random& random) {
  const Schedule start = whole_blocks(schedule::generate(name, scenario));
  const OrderProblem problem{start, scenario};
  Estimates result;
  for (int move = 0; move < 600; ++move) {
    Orders orders{problem, start};
    Evaluator evaluator{orders, problem.links().front()};
    const std::int64_t before = evaluator.makespan();
    const auto row =
        orders.row(DeviceId{static_cast<int>(random.between(0, problem.devices() - 1))});
    Change change;
    if (!Moves{orders}.shift(row[random.next() % row.size()],
                             static_cast<int>(random.between(-6, 6)), change))
      continue;
    const std::int64_t estimate = evaluator.estimate(change);
    orders.apply(change);
    if (!evaluator.apply(change, kAny) || evaluator.makespan() <= before) continue;
    ++result.longer;
    result.exact += estimate == evaluator.makespan() ? 1 : 0;
  }
  return result;
}

// Blocks of 100. Messages of 80 never wait for each other; those of 250 and 900 do, before a moved
// block, within the stretch that moves, and after it.
TEST(Evaluator, EstimatesMovesExactlyThatMakeAnIterationLonger) {
  Random random{1};
  for (const char* name : {"1f1b", "zb-h1", "zbv", "cross-wave"}) {
    for (const Duration transfer : {80ns, 250ns, 900ns}) {
      const int stages = transfer == 900ns ? 2 : 4;
      const Scenario scenario = spread(uniform_scenario(stages, 8), stages, 130ns, transfer);
      const Estimates found = estimates_from(name, scenario, random);
      EXPECT_GT(found.longer, 50) << name;
      EXPECT_EQ(found.exact, found.longer) << name << " " << transfer.count();
    }
  }
}

// F and B of 100 on two devices 50 apart: 100 + 50 + 100 + 100 + 50 + 100.
TEST(Evaluator, AddsUpOneMicrobatchAndItsWayBack) {
  const Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{50}, Duration{});
  Schedule schedule = schedule::generate("zb-h1", scenario);
  const OrderProblem problem{schedule, scenario};
  SearchState walk{problem, schedule, nullptr};
  EXPECT_EQ(walk.makespan(), 600);  // and W of device 0, 100
  Change change;
  Random random{1};
  const Moves moves{walk.orders()};
  ASSERT_TRUE(
      moves.fuse(problem.id(OrderProblem::Kind::G, ChunkId{1}, MicrobatchId{0}), random, change));
  EXPECT_FALSE(walk.attempt(change, 699));  // its gradient leaves 100 later
  ASSERT_TRUE(
      moves.fuse(problem.id(OrderProblem::Kind::G, ChunkId{0}, MicrobatchId{0}), random, change));
  EXPECT_TRUE(walk.attempt(change, 600));
  EXPECT_EQ(walk.makespan(), 600);
  ASSERT_TRUE(
      moves.fuse(problem.id(OrderProblem::Kind::G, ChunkId{1}, MicrobatchId{0}), random, change));
  EXPECT_TRUE(walk.attempt(change, 700));
  EXPECT_EQ(walk.makespan(), 700);
}

// Device 0: F0 D0 W0 F1 D1 W1, blocks of 100. W0 after D1 lets F1 begin at 400 instead of 500, and
// D1 at 700 instead of 800 since device 1 answers earlier. The estimate has D1 begin at 800 still:
// 1100 in place of 1000.
TEST(Evaluator, EstimatesTooMuchWhereAnInputComesEarlier) {
  const Scenario scenario = uniform_scenario(2, 2);
  Schedule schedule = schedule::generate("zb-h1", scenario);
  for (int device = 0; device < 2; ++device) {
    auto& row = schedule.rows[static_cast<std::size_t>(device)];
    row.clear();
    for (int m = 0; m < 2; ++m) {
      for (const BlockKind kind : {BlockKind::F, BlockKind::D, BlockKind::W})
        row.push_back({kind, 0, 1, ChunkId{device}, MicrobatchId{m}});
    }
  }
  const OrderProblem problem{schedule, scenario};
  SearchState walk{problem, schedule, nullptr};
  ASSERT_EQ(walk.makespan(), 1000);
  Change change;
  const Moves moves{walk.orders()};
  ASSERT_TRUE(
      moves.shift(problem.id(OrderProblem::Kind::W, ChunkId{0}, MicrobatchId{0}), 2, change));
  EXPECT_EQ(refused_makespan(walk, change, simulation_of(schedule, scenario)), 1000);
  EXPECT_FALSE(walk.attempt(change, 1099));
  EXPECT_TRUE(walk.attempt(change, 1100));
  EXPECT_EQ(walk.makespan(), 1000);
}

// A block must not wait for one that waits for it: D of the last device for F of the same
// microbatch, F of the first for its D.
TEST(Evaluator, RefusesOrdersThatDeadlock) {
  const Scenario scenario = uniform_scenario(2, 4);
  Tally tally;
  Random random{7};
  walk_from("gpipe", scenario, random, 400, tally);
  Schedule start = schedule::generate("1f1b", scenario);
  const OrderProblem problem{start, scenario};
  SearchState walk{problem, start, nullptr};
  const Moves moves{walk.orders()};
  // Device 0 holds F0 F1 B0 F2 ...: F1 may go after B0, but F0 may not.
  Change change;
  EXPECT_FALSE(
      moves.shift(problem.id(OrderProblem::Kind::F, ChunkId{0}, MicrobatchId{0}), 5, change));
  ASSERT_TRUE(
      moves.shift(problem.id(OrderProblem::Kind::F, ChunkId{0}, MicrobatchId{1}), 1, change));
  EXPECT_TRUE(walk.attempt(change, kAny));
}

}  // namespace
}  // namespace longhaul::planner
