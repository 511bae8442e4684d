// Properties of Varuna's and Atlas' schedules over seeded random instances.
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "schedule/cells.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/figure6.hpp"
#include "schedule/generators/cell/atlas.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/random_cells.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

constexpr std::uint64_t kCellInstances = 300;
constexpr const char* kAtlas[] = {"atlas", "atlas-timed", "atlas-even"};
constexpr const char* kVaruna[] = {"varuna", "varuna-fill"};

template <typename Check>
void for_each_atlas(Check check) {
  for (std::uint64_t seed = 0; seed < kCellInstances; ++seed) {
    const Scenario scenario = test::random_cells(seed);
    for (const char* name : kAtlas) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      check(name, scenario, schedule::generate(name, scenario));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

/// Times of a schedule by (replica, kind, chunk, microbatch).
class Times {
public:
  using Key = std::tuple<ReplicaId, BlockKind, int, int>;

  Times(const Schedule& schedule, const Scenario& scenario, const schedule::Timetable& times) {
    for (const ReplicaId replica : schedule.replica_ids()) {
      for (int device = 0; device < schedule.devices; ++device) {
        const auto row = static_cast<std::size_t>(
            schedule.replicas_share_rows() ? device : number(replica) * schedule.devices + device);
        Duration free{};
        for (std::size_t i = 0; i < schedule.rows[row].size(); ++i) {
          const Block& block = schedule.rows[row][i];
          const Duration start = times.starts[row][i];
          EXPECT_GE(start, free) << to_text(block) << " overlaps the block in front of it";
          free = start + length(block, scenario.costs);
          starts_[{replica, block.kind, block.chunk, block.microbatch}] = start;
          ends_[{replica, block.kind, block.chunk, block.microbatch}] = free;
        }
      }
    }
  }

  [[nodiscard]] Duration start(const Key& key) const { return starts_.at(key); }
  [[nodiscard]] Duration end(const Key& key) const { return ends_.at(key); }
  /// Every block that takes in what a block of another stage made: (producer, consumer).
  [[nodiscard]] std::vector<std::pair<Key, Key>> needs(int stages) const {
    std::vector<std::pair<Key, Key>> found;
    for (const auto& [key, _] : starts_) {
      const auto [replica, kind, chunk, microbatch] = key;
      if (kind == BlockKind::F && chunk > 0)
        found.push_back({{replica, kind, chunk - 1, microbatch}, key});
      if (kind == BlockKind::B && chunk + 1 < stages)
        found.push_back({{replica, kind, chunk + 1, microbatch}, key});
    }
    return found;
  }

private:
  static Duration length(const Block& block, const Costs& costs) {
    const auto device = static_cast<std::size_t>(block.chunk);
    if (block.kind == BlockKind::F) return costs.forward[device];
    return block.kind == BlockKind::R ? costs.recompute[device] : costs.backward[device];
  }

  std::map<Key, Duration> starts_, ends_;
};

TEST(EveryCell, HasAValidScheduleWithinTheBudget) {
  for_each_atlas([](const char*, const Scenario& scenario, const Schedule& schedule) {
    const auto found = schedule::first_violation(schedule, scenario);
    ASSERT_FALSE(found) << found->text;
    ASSERT_EQ(schedule.cell, schedule::cell_size(scenario));
    ASSERT_EQ(schedule::read_csv(schedule::write_csv(schedule), "x.csv", "x"), schedule);
  });
}

TEST(EveryCell, HasATimetableThatCouldBe) {
  for_each_atlas([](const char* name, const Scenario& scenario, const Schedule& schedule) {
    const Times times{schedule, scenario, schedule::timetable_of(name, scenario)};
    for (const auto& [producer, consumer] : times.needs(schedule.devices)) {
      const Rank from = scenario.rank(std::get<0>(producer), DeviceId{std::get<2>(producer)});
      const Rank to = scenario.rank(std::get<0>(consumer), DeviceId{std::get<2>(consumer)});
      const Link* const link =
          scenario.link(scenario.datacenter_of(from), scenario.datacenter_of(to));
      const Duration latency = link == nullptr ? Duration::zero() : link->latency;
      ASSERT_GE(times.start(consumer), times.end(producer) + latency);
    }
  });
}

TEST(EveryCell, TakesTurnsWithoutOverlapRightBehindTheBlock) {
  for_each_atlas([](const char* name, const Scenario& scenario, const Schedule& schedule) {
    const schedule::Timetable table = schedule::timetable_of(name, scenario);
    const Times times{schedule, scenario, table};
    ASSERT_EQ(table.turns.size(), schedule.link_orders.size());
    for (std::size_t t = 0; t < table.turns.size(); ++t) {
      ASSERT_EQ(table.turns[t].size(), schedule.link_orders[t].messages.size());
      Duration free{};
      for (std::size_t i = 0; i < table.turns[t].size(); ++i) {
        const schedule::TimedTransfer& transfer = table.turns[t][i];
        ASSERT_EQ(transfer.message, schedule.link_orders[t].messages[i]);
        ASSERT_GE(transfer.start, free);
        free = transfer.end;
        const auto& [replica, block] = transfer.message;
        const Duration end = times.end({replica, block.kind, block.chunk, block.microbatch});
        ASSERT_GE(transfer.start, end);
        // The scatter alone lies between the block and its turn: rule 3.
        if (!test::is_slow_inside(scenario)) {
          ASSERT_EQ(transfer.start, end);
        }
      }
    }
  });
}

TEST(EveryCell, HasTurnsOfAllMessagesOnceAndBeginsInOrderOfRank) {
  for_each_atlas([](const char*, const Scenario& scenario, const Schedule& schedule) {
    for (const LinkOrder& order : schedule.link_orders) {
      std::set<std::tuple<ReplicaId, BlockKind, int>> seen;
      std::optional<ReplicaId> begun;
      for (const auto& [replica, block] : order.messages) {
        ASSERT_TRUE(seen.emplace(replica, block.kind, block.microbatch).second);
        if (block.microbatch != 0 || block.kind != BlockKind::F) continue;
        ASSERT_TRUE(!begun || replica > *begun) << order.resource;
        begun = replica;
      }
      const int cell = schedule.cell_of(order.messages.front().replica);
      ASSERT_EQ(seen.size(), static_cast<std::size_t>(cell_replicas(schedule, cell).count) *
                                 static_cast<std::size_t>(scenario.parallel.microbatches));
    }
  });
}

TEST(EveryVaruna, IsValidAndHasATimetable) {
  for (std::uint64_t seed = 0; seed < kCellInstances; ++seed) {
    const Scenario scenario = test::random_cells(seed);
    for (const char* name : kVaruna) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      const Schedule schedule = schedule::generate(name, scenario);
      const auto found = schedule::first_violation(schedule);
      ASSERT_FALSE(found) << found->text;
      const Times times{schedule, scenario, schedule::timetable_of(name, scenario)};
      for (const auto& [producer, consumer] : times.needs(schedule.devices))
        ASSERT_GE(times.start(consumer), times.end(producer));
    }
  }
}

/// Section 4.3: with C pipelines and a transfer of C forwards, no bubbles between microbatches.
TEST(ACellOfC, LeavesNoBubbleBetweenForwardsBehindTheWan) {
  for (int pipelines = 1; pipelines <= 4; ++pipelines) {
    Scenario scenario = test::figure6(pipelines, Duration{300});
    for (const bool recompute : {false, true}) {
      scenario.memory.recompute = recompute;
      SCOPED_TRACE(::testing::Message() << pipelines << " pipelines, recompute " << recompute);
      const Schedule schedule = schedule::generate("atlas", scenario);
      const Times times{schedule, scenario, schedule::timetable_of("atlas", scenario)};
      for (const ReplicaId replica : ids<ReplicaId>(pipelines)) {
        // The last two stages run backwards in between.
        for (int stage = 0; stage < 4; ++stage) {
          for (int m = 1; m < scenario.parallel.microbatches; ++m) {
            EXPECT_EQ(times.start({replica, BlockKind::F, stage, m}),
                      times.end({replica, BlockKind::F, stage, m - 1}))
                << "replica " << number(replica) << ", stage " << stage;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace longhaul
