// Random heterogeneous instances: stage times, links, datacenters, replicas, both kinds of sharing.
// The sweep is held against a simulator too simple to be wrong: it looks at every op each time and
// runs the one that is ready first.
#include <algorithm>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/order_of_time.hpp"
#include "support/report_of_plan.hpp"

namespace longhaul {
namespace {

Bandwidth random_rate(Random& random) {
  return Bandwidth{1e14 / static_cast<double>(random.between(1, 9))};
}

/// Either the stages or the replicas lie in several datacenters; every pair of them is linked, some
/// also within, each direction with its own latency, rate and sharing.
Scenario random_scenario(Random& random) {
  const auto stages = static_cast<int>(random.between(1, 6));
  const auto rounds = static_cast<int>(random.between(1, 4));
  Scenario scenario = uniform_scenario(stages, stages * rounds);
  scenario.parallel.replicas = static_cast<int>(random.between(1, 3));
  scenario.parallel.chunks = static_cast<int>(random.between(1, 3));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 3));
  scenario.memory.recompute = random.between(0, 3) == 0;
  const auto datacenters = static_cast<int>(random.between(1, 4));
  const bool by_stage = random.between(0, 1) == 0;
  scenario.datacenters.clear();
  scenario.placement.clear();
  scenario.links.clear();
  for (int d = 0; d < datacenters; ++d) {
    scenario.datacenters.push_back({fmt::format("dc{}", d), {}});
    if (random.between(0, 1) == 0)
      scenario.nodes.push_back({DatacenterId{d}, static_cast<int>(random.between(1, 3)),
                                random_rate(random), random_rate(random)});
    for (int to = 0; to < datacenters; ++to) {
      if (d == to && random.between(0, 1) == 0) continue;
      scenario.links.push_back({DatacenterId{d}, DatacenterId{to}, Duration{random.between(0, 300)},
                                random_rate(random), static_cast<Sharing>(random.between(0, 1))});
    }
  }
  for (int rank = 0; rank < scenario.ranks(); ++rank) {
    const int at = by_stage ? rank % stages * datacenters / stages : rank / stages % datacenters;
    scenario.placement.push_back(DatacenterId{at});
  }
  for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad, &scenario.costs.recompute}) {
    for (Duration& time : *times) time = Duration{random.between(0, 200)};
  }
  for (Bytes& message : scenario.costs.message) message = Bytes{random.between(0, 2'000'000)};
  for (Bytes& weights : scenario.costs.weights) weights = Bytes{random.between(0, 9'000'000)};
  return scenario;
}

/// Runs one op (or message, or collective) after the other, always the one with the smallest
/// (readiness, op id) among those that can run.
class Reference {
public:
  explicit Reference(const Plan& plan) : plan_{plan}, end_(plan.ops.size(), -1), start_(end_) {}

  std::vector<std::int64_t> run() {
    for (;;) {
      std::int64_t best_ready = 0;
      std::int64_t best = -1;
      for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
        const std::int64_t ready = ready_of(i);
        if (ready < 0 || (best >= 0 && ready >= best_ready)) continue;
        best_ready = ready;
        best = static_cast<std::int64_t>(i);
      }
      if (best < 0) return end_;
      run_one(static_cast<std::size_t>(best), best_ready);
    }
  }

private:
  [[nodiscard]] OpId id(std::size_t i) const { return OpId{static_cast<std::uint32_t>(i)}; }

  /// When everything before it is done; -1: not yet, or done already.
  [[nodiscard]] std::int64_t own_ready(std::size_t i) const {
    if (end_[i] >= 0) return -1;
    std::int64_t ready = 0;
    const std::size_t first = index(plan_.lane_of(id(i)).first);
    if (i > first && end_[i - 1] < 0) return -1;
    for (const OpId before : plan_.after_of(id(i))) {
      if (end_[index(before)] < 0) return -1;
      ready = std::max(ready, end_[index(before)]);
    }
    return ready;
  }

  [[nodiscard]] std::int64_t ready_of(std::size_t i) const {
    const Op& op = plan_.ops[i];
    if (op.kind == OpKind::recv) return -1;  // runs with its send
    std::int64_t ready = own_ready(i);
    if (ready >= 0 && op.kind == OpKind::send) {
      const std::int64_t other = own_ready(op.match);
      return other < 0 ? -1 : std::max(ready, other);
    }
    if (ready >= 0 && op.kind == OpKind::collective) {
      for (const OpId member : plan_.collectives[op.match]) {
        const std::int64_t other = own_ready(index(member));
        if (other < 0) return -1;
        ready = std::max(ready, other);
      }
    }
    return ready;
  }

  [[nodiscard]] std::int64_t in_turn(std::size_t i) const {
    return i > index(plan_.lane_of(id(i)).first) ? start_[i - 1] : 0;
  }

  void run_one(std::size_t i, std::int64_t begin) {
    const Op& op = plan_.ops[i];
    std::vector<std::size_t> together{i};
    if (op.kind == OpKind::send) together.push_back(op.match);
    if (op.kind == OpKind::collective) {
      together.clear();
      for (const OpId member : plan_.collectives[op.match]) together.push_back(index(member));
    }
    for (const std::size_t one : together) {
      begin = std::max(begin, in_turn(one));
      if (plan_.ops[one].kind == OpKind::recv) continue;
      for (const ResourceId resource : plan_.resources_of(id(one)))
        begin = std::max(begin, free_[resource]);
    }
    const std::int64_t end = begin + op.duration.count();
    for (const std::size_t one : together) {
      start_[one] = begin;
      end_[one] = end;
      if (plan_.ops[one].kind == OpKind::recv) {
        end_[one] += plan_.ops[one].duration.count();
        continue;
      }
      for (const ResourceId resource : plan_.resources_of(id(one))) free_[resource] = end;
    }
  }

  const Plan& plan_;
  std::vector<std::int64_t> end_, start_;
  std::map<ResourceId, std::int64_t> free_;
};

std::int64_t makespan_ns(const OpTimes& times) {
  std::int64_t last = 0;
  for (const OpTime& time : times) last = std::max(last, time.end.count());
  return last;
}

/// The instant at which what bound an op let it go.
Duration released(const Plan& plan, const OpTimes& times, OpId id) {
  const OpTime& time = times[index(id)];
  const Op& op = plan.op(id);
  if (time.bound_kind == BoundKind::start) return Duration::zero();
  const OpTime& cause = times[index(time.bound_by)];
  const bool own_send = op.kind == OpKind::recv && op.match == index(time.bound_by);
  if (own_send) return cause.start;
  if (time.bound_kind == BoundKind::rendezvous)
    return plan.op(time.bound_by).kind == OpKind::recv ? cause.ready : cause.start;
  if (time.bound_kind == BoundKind::lane && op.kind == OpKind::send) return cause.start;
  return cause.end;
}

void expect_sound(const Plan& plan, const OpTimes& times) {
  std::map<ResourceId, std::vector<std::pair<Duration, Duration>>> held;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const OpTime& time = times[i];
    EXPECT_LE(time.ready, time.start);
    EXPECT_LE(time.start, time.end);
    for (const OpId before : plan.after_of(id)) EXPECT_LE(times[index(before)].end, time.start);
    const bool first_of_lane = i == index(plan.lane_of(id).first);
    EXPECT_TRUE(first_of_lane || time.start >= times[i - 1].start) << to_text(plan, id);
    // The last that it waited for lets it go at the very nanosecond it starts.
    EXPECT_EQ(released(plan, times, id), time.start)
        << to_text(plan, id) << " " << to_string(time.bound_kind);
    if (plan.op(id).kind == OpKind::recv) continue;
    for (const ResourceId resource : plan.resources_of(id))
      held[resource].emplace_back(time.start, time.end);
  }
  for (auto& [resource, holds] : held) {
    std::ranges::sort(holds);
    for (std::size_t k = 1; k < holds.size(); ++k)
      EXPECT_LE(holds[k - 1].second, holds[k].first) << plan.resources[index(resource)].name;
  }
}

TEST(SimulateProperties, EqualsTheReferenceOnRandomInstances) {
  int simulated = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    for (const std::string& name : schedule::static_schedule_names()) {
      for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
        const Plan plan = plan::lower(schedule::generate(name, scenario), scenario, arrangement);
        const OpTimes times = sim::simulate(plan);
        const std::vector<std::int64_t> expected = Reference{plan}.run();
        for (std::size_t i = 0; i < times.size(); ++i)
          ASSERT_EQ(times[i].end.count(), expected[i])
              << name << " seed " << seed << " "
              << to_text(plan, OpId{static_cast<std::uint32_t>(i)});
        expect_sound(plan, times);
        ASSERT_EQ(testing::difference_in_order_of_time(plan, times), "")
            << name << " seed " << seed;
        ++simulated;
      }
    }
  }
  EXPECT_EQ(simulated, 150 * 7 * 2);
}

// Each collective one op of each member, on links that messages share; and orders that greedy
// generators decide.
TEST(SimulateProperties, EqualsOrderOfTimeWithWholeCollectivesAndEveryGenerator) {
  int simulated = 0;
  for (std::uint64_t seed = 5000; seed < 5060; ++seed) {
    Random random{seed};
    Scenario scenario = random_scenario(random);
    scenario.memory.budget = 2;
    for (const schedule::Generator& generator : schedule::generators()) {
      const Result<Schedule> schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      const auto alone = [](const plan::Collective& collective) {
        return Duration{std::ssize(collective.members) * 37};
      };
      const Result<Plan> plan = plan::try_lower(*schedule, scenario, Arrangement::decoupled, alone);
      if (!plan) continue;
      const Result<OpTimes> times = sim::try_simulate(*plan);
      if (!times) continue;
      ASSERT_EQ(testing::difference_in_order_of_time(*plan, *times), "")
          << schedule->name << " seed " << seed;
      ++simulated;
    }
  }
  EXPECT_GT(simulated, 400);
}

// With a link per pair, waiting for the other side can only add time.
TEST(SimulateProperties, GroupedIsNeverFasterThanDecoupledOnLinksOfPairs) {
  int slower = 0;
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    Random random{seed};
    Scenario scenario = random_scenario(random);
    scenario.nodes.clear();
    for (Link& link : scenario.links) link.sharing = Sharing::pair;
    for (const char* name : {"gpipe", "1f1b", "zb-h1", "zbv"}) {
      const Schedule schedule = schedule::generate(name, scenario);
      const auto time = [&](Arrangement arrangement) {
        return makespan_ns(sim::simulate(plan::lower(schedule, scenario, arrangement)));
      };
      const std::int64_t decoupled = time(Arrangement::decoupled);
      const std::int64_t grouped = time(Arrangement::grouped);
      EXPECT_GE(grouped, decoupled) << name << " seed " << seed;
      slower += grouped > decoupled ? 1 : 0;
    }
  }
  EXPECT_GT(slower, 100);
}

/// States, for every link and interface, the order in which `times` served it.
void state_served_orders(Plan& plan, const OpTimes& times) {
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind != OpKind::send || !keeps_order(plan.op(id))) continue;
    for (const ResourceId resource : plan.resources_of(id))
      plan.resources[index(resource)].order.push_back(id);
  }
  // Messages that start together take no time; the one that was ready first, by id, was served
  // first.
  const auto served = [&](OpId a, OpId b) {
    const auto key = [&](OpId id) {
      const Duration other = times[plan.op(id).match].ready;
      return std::tuple{times[index(id)].start, std::max(times[index(id)].ready, other), id};
    };
    return key(a) < key(b);
  };
  for (Resource& resource : plan.resources) std::ranges::sort(resource.order, served);
}

// Orders on several resources at once, as Atlas states them.
TEST(SimulateProperties, StatingTheServedOrderOnEveryLinkChangesNothing) {
  int orders = 0;
  for (std::uint64_t seed = 3000; seed < 3150; ++seed) {
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    Plan plan = plan::lower(schedule::generate("zbv", scenario), scenario);
    const OpTimes free = sim::simulate(plan);
    state_served_orders(plan, free);
    for (const Resource& resource : plan.resources) orders += resource.order.size() > 1 ? 1 : 0;
    const OpTimes ordered = sim::simulate(plan);
    ASSERT_EQ(testing::difference_in_order_of_time(plan, ordered), "") << "seed " << seed;
    for (std::size_t i = 0; i < free.size(); ++i) {
      ASSERT_EQ(ordered[i].end, free[i].end)
          << "seed " << seed << " " << to_text(plan, OpId{static_cast<std::uint32_t>(i)});
    }
  }
  EXPECT_GT(orders, 500);
}

TEST(SimulateProperties, ReportsNeedNoRows) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    for (const char* name : {"1f1b", "zb-h1", "zbv"}) {
      const Schedule schedule = schedule::generate(name, scenario);
      for (const Arrangement arrangement : every<Arrangement>()) {
        const Plan plan = plan::lower(schedule, scenario, arrangement);
        testing::expect_equal_reports(plan, sim::simulate(plan),
                                      scenario.activation_budget().count(), seed);
      }
    }
  }
}

}  // namespace
}  // namespace longhaul
