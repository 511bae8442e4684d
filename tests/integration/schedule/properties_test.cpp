#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

/// Properties of every static generator over seeded random instances.
namespace longhaul {
namespace {

constexpr std::uint64_t kInstances = 400;

struct Instance {
  std::uint64_t seed;
  Scenario scenario;
};

/// P 1..9, M 1..20, v 1..3, one to three datacenters, uneven costs.
Instance random_instance(std::uint64_t seed) {
  Random random{seed};
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return static_cast<int>(random.between(low, high));
  };
  const int stages = draw(1, 9);
  Scenario scenario = uniform_scenario(stages, draw(1, 20));
  scenario.parallel.chunks = draw(1, 3);
  scenario.memory.recompute = draw(0, 3) == 0;
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute}) {
    for (Duration& time : *times) time = Duration{draw(1, 500)};
  }
  for (std::size_t i = 0; i < costs.forward.size(); ++i) {
    costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
  }
  scenario = spread(scenario, draw(1, std::min(stages, 3)), Duration{draw(0, 800)}, Duration{});
  return {seed, scenario};
}

/// interleaved-1f1b alone is not defined everywhere.
bool is_defined(const std::string& name, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  return name != "interleaved-1f1b" || parallel.microbatches % parallel.stages == 0;
}

void for_each_schedule(
    const std::function<void(const std::string&, const Scenario&, Schedule)>& check) {
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    const Instance instance = random_instance(seed);
    for (const std::string& name : schedule::static_schedule_names()) {
      if (!is_defined(name, instance.scenario)) {
        EXPECT_THROW((void)schedule::generate(name, instance.scenario), Error)
            << name << ", seed " << seed;
        continue;
      }
      SCOPED_TRACE(::testing::Message()
                   << name << ", seed " << seed << ", " << instance.scenario.parallel.stages
                   << " stages, " << instance.scenario.parallel.microbatches << " microbatches");
      check(name, instance.scenario, schedule::generate(name, instance.scenario));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(EveryGenerator, GivesAValidScheduleThatRuns) {
  for_each_schedule([](const std::string&, const Scenario& scenario, const Schedule& schedule) {
    const auto found = schedule::first_violation(schedule);
    ASSERT_FALSE(found) << found->text;
    ASSERT_TRUE(test::evaluate(schedule, scenario)) << "deadlock";
  });
}

TEST(EveryGenerator, HasEveryBlockOnce) {
  for_each_schedule(
      [](const std::string& name, const Scenario& scenario, const Schedule& schedule) {
        const bool split = name.starts_with("zb");
        std::vector<Block> expected;
        for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
          for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
            const auto add = [&](BlockKind kind) {
              expected.push_back({kind, 0, 1, ChunkId{chunk}, MicrobatchId{microbatch}});
            };
            add(BlockKind::F);
            add(split ? BlockKind::D : BlockKind::B);
            if (split) add(BlockKind::W);
            if (scenario.memory.recompute) add(BlockKind::R);
          }
        }
        std::vector<Block> all;
        for (const auto& row : schedule.rows) all.insert(all.end(), row.begin(), row.end());
        std::ranges::sort(all);
        std::ranges::sort(expected);
        ASSERT_EQ(all, expected);
      });
}

/// Largest number of activations that a device of the schedule may hold, by its definition.
double activations_allowed(const std::string& name, const Parallel& parallel, int device) {
  const int p = parallel.stages;
  const int m = parallel.microbatches;
  if (name == "gpipe") return m;
  if (name == "1f1b") return std::min(p - device, m);
  if (name == "zb-h1") return std::min(p, m);
  if (name == "zb-h2") return std::min(2 * p - 1, m);
  if (name == "zbv") return std::min(p, m);
  if (name == "zbv-auto") return p;  // the budget
  // Interleaved: the warm-up's chunks and one more are held at once.
  const int v = parallel.chunks;
  const int warm_up = std::min(2 * (p - device - 1) + (v - 1) * p, m * v);
  return static_cast<double>(std::min(warm_up + 1, m * v)) / v;
}

TEST(EveryGenerator, HoldsNoMoreThanItsDefinitionSays) {
  for_each_schedule([](const std::string& name, Scenario scenario, const Schedule& schedule) {
    if (scenario.memory.recompute) return;
    constexpr std::int64_t kActivation = 12;  // a multiple of twice every number of chunks
    std::ranges::fill(scenario.costs.activation, Bytes{kActivation});
    const std::vector<Bytes> peaks = schedule::peak_activation(schedule, scenario);
    for (int device = 0; device < schedule.devices; ++device) {
      const double peak =
          static_cast<double>(peaks[static_cast<std::size_t>(device)].count()) / kActivation;
      const double allowed = activations_allowed(name, scenario.parallel, device);
      ASSERT_LE(peak, allowed) << "device " << device;
      const bool exact = name == "gpipe" || name == "1f1b" || name == "interleaved-1f1b";
      if (exact) {
        ASSERT_DOUBLE_EQ(peak, allowed) << "device " << device;
      }
    }
  });
}

TEST(EveryGenerator, EndsWithNothingHeld) {
  for_each_schedule([](const std::string&, const Scenario& scenario, const Schedule& schedule) {
    const schedule::ActivationModel model{schedule, scenario};
    for (const auto& row : schedule.rows) {
      Bytes held;
      for (const Block& block : row) {
        const schedule::MemoryEffect effect = model.effect(block);
        held += effect.at_start;
        held += effect.at_end;
        ASSERT_GE(held, Bytes{});
      }
      ASSERT_EQ(held, Bytes{});
    }
  });
}

TEST(EveryGenerator, SurvivesACsvFile) {
  for_each_schedule([](const std::string&, const Scenario&, const Schedule& schedule) {
    ASSERT_EQ(schedule::read_csv(schedule::write_csv(schedule), "x.csv", "x"), schedule);
  });
}

/// A block that is dependent on another of its row: positions of the two.
std::pair<std::size_t, std::size_t> dependent_pair(const std::vector<Block>& row, Random& random) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < row.size(); ++i) {
    for (std::size_t j = i + 1; j < row.size(); ++j) {
      const bool same = row[i].chunk == row[j].chunk && row[i].microbatch == row[j].microbatch;
      if (same) pairs.emplace_back(i, j);
    }
  }
  return pairs[random.next() % pairs.size()];
}

TEST(FirstViolation, CatchesEveryMutationOfAValidSchedule) {
  for_each_schedule(
      [](const std::string& name, const Scenario& scenario, const Schedule& schedule) {
        if (scenario.memory.recompute)
          return;  // recomputing is optional: dropping an R may be right
        Random random{
            derived_seed(at(scenario.parallel.microbatches), at(schedule.chunks), name.size())};
        const std::size_t device = random.next() % schedule.rows.size();
        const std::size_t position = random.next() % schedule.rows[device].size();
        const auto expect = [&](const Schedule& mutated, schedule::ViolationKind kind) {
          const auto found = schedule::first_violation(mutated);
          ASSERT_TRUE(found) << "device " << device << ", position " << position;
          ASSERT_EQ(found->kind, kind) << found->text;
        };
        Schedule mutated = schedule;
        const auto [first, second] = dependent_pair(schedule.rows[device], random);
        std::swap(mutated.rows[device][first], mutated.rows[device][second]);
        expect(mutated, schedule::ViolationKind::dependency);

        mutated = schedule;
        std::vector<Block>& row = mutated.rows[device];
        const Block block = row[position];
        row.erase(row.begin() + static_cast<std::ptrdiff_t>(position));
        expect(mutated, schedule::ViolationKind::missing_block);
        if (schedule.devices > 1) {
          mutated.rows[(device + 1) % mutated.rows.size()].push_back(block);
          expect(mutated, schedule::ViolationKind::shape);
        }

        mutated = schedule;
        mutated.rows[device].push_back(block);
        expect(mutated, schedule::ViolationKind::repeated_block);
      });
}

TEST(FirstViolation, AgreesWithTheEvaluatorAboutDeadlocks) {
  int deadlocks = 0;
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random{seed};
    const Scenario scenario = uniform_scenario(static_cast<int>(random.between(2, 4)), 4);
    const auto names = schedule::static_schedule_names();
    const std::string& name = names[random.next() % names.size()];
    if (!is_defined(name, scenario)) continue;
    Schedule schedule = schedule::generate(name, scenario);
    for (std::int64_t i = random.between(1, 12); i > 0; --i) {
      std::vector<Block>& row = schedule.rows[random.next() % schedule.rows.size()];
      const std::size_t at = random.next() % (row.size() - 1);
      std::swap(row[at], row[at + 1]);
    }
    const auto found = schedule::first_violation(schedule);
    if (found && found->kind == schedule::ViolationKind::dependency) continue;
    ++(found ? deadlocks : runs);
    ASSERT_EQ(found.has_value(), !test::evaluate(schedule, scenario)) << "seed " << seed;
  }
  EXPECT_GT(deadlocks, 50);
  EXPECT_GT(runs, 50);
}

}  // namespace
}  // namespace longhaul
