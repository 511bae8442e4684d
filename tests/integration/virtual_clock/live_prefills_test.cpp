// Prompts that a controller places while ranks play: by the virtual clock ranks do what the
// simulator says, which asks the same sources.
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "prefill/live/live_stretches.hpp"
#include "prefill/lowering/row_memory.hpp"
#include "schedule/generators/registry.hpp"
#include "support/filled_stretches.hpp"
#include "support/prefills/heterogeneous.hpp"

namespace longhaul {
namespace {

/// Of one process: of all ranks in the simulator, or of the rank that a thread is.
struct LiveOnRanks {
  LiveOnRanks(const testing::PlacedStretch& stretch, const std::vector<prefill::Request>& file,
              const Plan& with_controller, const prefill::LiveOptions& options)
      : arrivals{options.controller.backlog ? std::vector<prefill::Request>{} : file},
        live{with_controller,
             stretch.times,
             stretch.bubbles,
             stretch.served,
             file,
             arrivals,
             Rank{stretch.scenario.training_ranks()},
             options} {
    live.begin();
  }
  prefill::TraceArrivals arrivals;
  prefill::LiveStretches live;
  std::shared_ptr<const prefill::MemoryBesideBlocks> memory{};
};

/// Blocks that noise makes quicker than planned leave their GPU to what waits for it, at once.
TEST(LivePrefills, BlocksThatEndEarlyLeaveTheDevice) {
  std::size_t earlier = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    Plan training = stretch.plan;
    training.ranks.push_back({});
    const auto requests = testing::random_requests(random);
    prefill::LiveOptions options;
    options.slots = 48;
    options.manners.gives_way = seed % 2 == 0;  // careless ones hold blocks up
    options.manners.takes = [](std::size_t, std::int32_t request, Duration whole) {
      return whole * (5 + request % 5) / 10;
    };
    longhaul::Run run;
    run.noise = 0.3;
    run.seed = seed;
    LiveOnRanks simulated{stretch, requests, training, options};
    const Plan noisy = plan::with_noise(simulated.live.plan(), run, 0);
    for (const OpId id : simulated.live.live().training)
      earlier += noisy.op(id).duration < simulated.live.plan().op(id).duration ? 1 : 0;
    const OpResults expected = sim::simulate_results(noisy);
    LiveOnRanks played{stretch, requests, training, options};
    testing::VirtualRun by_noise;
    by_noise.blocks = run;
    const OpResults results =
        testing::play_stream(played.live.plan(), {}, by_noise).iterations.front();
    for (std::size_t i = 0; i < expected.times.size(); ++i) {
      ASSERT_EQ(results.times[i].start, expected.times[i].start)
          << to_text(noisy, OpId{static_cast<std::uint32_t>(i)});
      ASSERT_EQ(results.times[i].end, expected.times[i].end);
    }
  }
  EXPECT_GT(earlier, 300U);
}

TEST(LivePrefills, RanksDoWhatTheSimulatorSays) {
  std::size_t ran = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    Plan training = stretch.plan;
    training.ranks.push_back({});
    const auto requests = testing::random_requests(random);
    prefill::LiveOptions options;
    options.slots = 48;
    if (seed % 2 == 0) {
      options.controller.backlog = prefill::BacklogOptions{.waiting = 6, .iterations = 1};
      options.controller.lead = Duration{random.between(0, 30'000)};
    }
    if (seed % 3 == 0)
      options.manners.takes = [](std::size_t, std::int32_t request, Duration whole) {
        return whole * (8 + request % 5) / 10;
      };
    LiveOnRanks simulated{stretch, requests, training, options};
    const OpResults expected = sim::simulate_results(simulated.live.plan());
    // Ranks are threads here and each asks sources of its own: one set of them serves all.
    LiveOnRanks played{stretch, requests, training, options};
    const OpResults results = testing::play_stream(played.live.plan(), {}).iterations.front();
    for (std::size_t i = 0; i < expected.times.size(); ++i) {
      const Outcome outcome = expected.outcomes.empty() ? Outcome::ran : expected.outcomes[i];
      ASSERT_EQ(results.outcomes[i], outcome)
          << to_text(played.live.plan(), OpId{static_cast<std::uint32_t>(i)});
      ASSERT_EQ(results.times[i].start, expected.times[i].start);
      ASSERT_EQ(results.times[i].end, expected.times[i].end);
    }
    ran += simulated.live.begun().size();
    EXPECT_EQ(played.live.begun().size(), simulated.live.begun().size());
  }
  EXPECT_GT(ran, 300U);
}

// Keys and values go to a decode rank meanwhile, over interfaces that training's messages hold.
TEST(LivePrefills, SendKeysAndValuesAsSimulated) {
  std::size_t tokens = 0, moved = 0;
  for (std::uint64_t seed = 300; seed < 330; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = testing::random_serving_scenario(random);
    testing::send_keys_and_values(scenario, Bytes{1'500}, random);
    scenario.served.front().decode->slots = static_cast<int>(random.between(1, 9));
    scenario.add_services({RankRole::controller, DatacenterId{0}, 1});
    scenario.add_services({RankRole::decode, DatacenterId{0}, 1});
    const testing::PlacedStretch stretch{scenario, "1f1b", 2};
    const auto requests = testing::random_requests(random);
    prefill::LiveOptions options;
    options.slots = 48;
    options.kv = seed % 2 == 0 ? prefill::KvSending::whole : prefill::KvSending::layerwise;
    if (seed % 3 == 0)
      options.controller.backlog = prefill::BacklogOptions{.waiting = 6, .iterations = 1};
    LiveOnRanks simulated{stretch, requests, stretch.plan, options};
    const OpResults expected = sim::simulate_results(simulated.live.plan());
    LiveOnRanks played{stretch, requests, stretch.plan, options};
    const OpResults results = testing::play_stream(played.live.plan(), {}).iterations.front();
    for (std::size_t i = 0; i < expected.times.size(); ++i) {
      const OpId op{static_cast<std::uint32_t>(i)};
      const Outcome outcome = expected.outcomes.empty() ? Outcome::ran : expected.outcomes[i];
      ASSERT_EQ(results.outcomes[i], outcome) << to_text(played.live.plan(), op);
      ASSERT_EQ(results.times[i].start, expected.times[i].start) << to_text(played.live.plan(), op);
      ASSERT_EQ(results.times[i].end, expected.times[i].end) << to_text(played.live.plan(), op);
    }
    const auto& training = played.live.live().training;
    for (std::size_t i = 0; i < training.size(); ++i)
      moved += results.times[index(training[i])].start != stretch.times[i].start ? 1 : 0;
    tokens += played.live.tokens().size();
    EXPECT_EQ(played.live.tokens().size(), simulated.live.tokens().size());
    EXPECT_EQ(played.live.sent().size(), simulated.live.sent().size());
  }
  EXPECT_GT(tokens, 150U);
  EXPECT_GT(moved, 0U) << "slices are there to be waited for";
}

/// With a controller's rank before the decode ranks.
Scenario with_controller(Scenario scenario) {
  const auto services = std::exchange(scenario.services, {});
  scenario.placement.resize(to_size(scenario.training_ranks()));
  scenario.add_services({RankRole::controller, DatacenterId{0}, 1});
  for (const ServiceRanks& each : services) scenario.add_services(each);
  return scenario;
}

/// What GPUs held at most in the stretch that was played last.
std::vector<prefill::GpuMemory> held_at_most(const testing::PlacedStretch& stretch,
                                             const prefill::TrainingGraph& graph, LiveOnRanks& of,
                                             const OpResults& results) {
  Duration wall{};
  for (const OpId op : of.live.live().training) wall = std::max(wall, results.times[index(op)].end);
  std::set<std::int32_t> begun;
  for (const prefill::BegunSlot& each : of.live.begun()) begun.insert(each.request);
  const auto all = prefill::fill_slots(of.live.live(), stretch.served, of.live.begun(),
                                       of.live.controller().end_stretch(wall, begun),
                                       of.live.sent(), of.live.tokens());
  return prefill::memory_of_rows(*of.memory, graph, stretch.served, all.filled, all.decisions,
                                 results);
}

// The controller keeps account of memory as it places, and each GPU as it begins, whatever blocks
// take.
TEST(LivePrefills, FitIntoMemoryAtEveryMoment) {
  std::size_t begun = 0, refused = 0, fuller = 0;
  for (const char* const name : {"gpipe", "1f1b"})
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
      SCOPED_TRACE(::testing::Message() << name << ", seed " << seed);
      const auto drawn =
          testing::heterogeneous(seed, *schedule::find_generator(name), 2, {.chunks = false});
      if (!drawn || !prefill::limits_memory(drawn->scenario)) continue;
      if (drawn->scenario.training_ranks() > 8) continue;  // each is a thread
      const testing::PlacedStretch stretch{with_controller(drawn->scenario), drawn->schedule, 2};
      const prefill::TrainingGraph graph{stretch.plan, stretch.times,
                                         stretch.scenario.training_ranks()};
      const auto memory = std::make_shared<const prefill::MemoryBesideBlocks>(
          drawn->schedule, stretch.scenario, stretch.plan, graph, stretch.served);
      prefill::LiveOptions options;
      options.slots = 48;
      options.memory = memory;
      if (!drawn->scenario.services.empty())
        options.kv = seed % 2 == 0 ? prefill::KvSending::whole : prefill::KvSending::layerwise;
      longhaul::Run run;
      run.noise = seed % 3 == 0 ? 0.1 : 0;
      run.seed = seed;
      LiveOnRanks simulated{stretch, drawn->requests, stretch.plan, options};
      const OpResults expected =
          sim::simulate_results(plan::with_noise(simulated.live.plan(), run, 0));
      LiveOnRanks played{stretch, drawn->requests, stretch.plan, options};
      testing::VirtualRun by_noise;
      by_noise.blocks = run;
      const OpResults results =
          testing::play_stream(played.live.plan(), {}, by_noise).iterations.front();
      for (std::size_t i = 0; i < expected.times.size(); ++i) {
        const OpId op{static_cast<std::uint32_t>(i)};
        ASSERT_EQ(results.times[i].start, expected.times[i].start)
            << to_text(played.live.plan(), op);
        ASSERT_EQ(results.times[i].end, expected.times[i].end) << to_text(played.live.plan(), op);
      }
      simulated.memory = played.memory = memory;
      const auto measured = held_at_most(stretch, graph, played, results);
      ASSERT_EQ(measured, held_at_most(stretch, graph, simulated, expected));
      for (const prefill::GpuMemory& each : measured) {
        ASSERT_TRUE(each.fits()) << "rank " << each.rank << " held " << each.peak.count() << " of "
                                 << each.capacity.count();
        fuller += 100 * each.peak.count() > 95 * each.capacity.count() ? 1 : 0;
      }
      begun += simulated.live.begun().size();
      for (const prefill::Decision& each : simulated.live.controller().refused()) {
        EXPECT_EQ(each.refused == prefill::RefusalReason::memory, each.lacks > Bytes{});
        refused += each.refused == prefill::RefusalReason::memory ? 1 : 0;
      }
    }
  EXPECT_GT(begun, 50U);
  EXPECT_GT(refused, 10U);
  EXPECT_GT(fuller, 5U);
}

}  // namespace
}  // namespace longhaul
