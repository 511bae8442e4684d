// Streams whose ops take other times from an iteration on, stated before or while they run.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/events/event_driver.hpp"
#include "sim/simulate.hpp"
#include "support/exchanging_replicas.hpp"
#include "support/one_rank.hpp"

namespace longhaul::sim {
namespace {

using testing::ExchangingReplicas;
using testing::OneRank;

TEST(StreamSettings, SettingsChangeAtAnIteration) {
  OneRank one;
  const auto block = one.draft.add_block(one.compute, Duration{10});
  const Plan plan = one.draft.make();
  std::vector<std::int64_t> starts;
  const plan::Stream stream{
      5, {{2, {{one.draft.id(block), Duration{30}}}}, {3, {{one.draft.id(block), Duration{1}}}}}};
  simulate_stream(plan, stream, [&](const StreamedIteration& done) {
    starts.push_back(done.results.times.front().start.count());
  });
  EXPECT_EQ(starts, (std::vector<std::int64_t>{0, 10, 20, 50, 51}));
}

TEST(StreamSettings, TakesSettingsWhileItRuns) {
  OneRank one;
  const auto block = one.draft.add_block(one.compute, Duration{10});
  const Plan plan = one.draft.make();
  const auto starts = [&](int decided, int from) {
    std::vector<std::int64_t> all;
    simulate_steered_stream(
        plan, {6, {}}, [&](const StreamedIteration& done) -> std::optional<plan::StreamSetting> {
          all.push_back(done.results.times.front().start.count());
          if (done.iteration != decided) return std::nullopt;
          return plan::StreamSetting{from, {{one.draft.id(block), Duration{30}}}};
        });
    return all;
  };
  EXPECT_EQ(starts(1, 3), (std::vector<std::int64_t>{0, 10, 20, 30, 60, 90}));
  EXPECT_EQ(starts(1, 2), (std::vector<std::int64_t>{0, 10, 20, 50, 80, 110}));
  EXPECT_THROW(starts(1, 1), Error) << "it has begun";
  EXPECT_THROW(starts(4, 0), Error);
}

// One for each iteration: those of iterations that are over are not kept.
TEST(StreamSettings, SettingsWhileItRunsTakeNoMoreMemoryWithIterations) {
  OneRank one;
  const auto block = one.draft.add_block(one.compute, Duration{10});
  const Plan plan = one.draft.make();
  for (const int iterations : {20, 2000}) {
    Duration last{};
    const StreamFacts facts =
        simulate_steered_stream(plan, {iterations, {}}, [&](const StreamedIteration& done) {
          last = done.results.times.front().end;
          const Duration next{10 + done.iteration % 2};
          return std::optional{
              plan::StreamSetting{done.iteration + 2, {{one.draft.id(block), next}}}};
        });
    EXPECT_EQ(last, Duration{10 + 10 * iterations / 2 + 11 * iterations / 2 - 11});
    EXPECT_LE(facts.most_settings, 4U);
  }
}

// A stream with settings from its start is that which is given them while it runs.
TEST(StreamSettings, TakesTheSameSettingsInEitherWay) {
  const ExchangingReplicas pair{40ms, 1, Serve::deadline};
  plan::StreamSetting slower{9, {}};
  for (std::uint32_t i = 0; i < pair.plan.ops.size(); ++i)
    slower.durations.push_back({OpId{i}, 2 * pair.plan.ops[i].duration});
  const auto ends = [&](const plan::Stream& stream, int decided) {
    std::vector<OpTimes> all;
    simulate_steered_stream(
        pair.plan, stream,
        [&](const StreamedIteration& done) -> std::optional<plan::StreamSetting> {
          all.push_back(done.results.times);
          return done.iteration == decided ? std::optional{slower} : std::nullopt;
        });
    return all;
  };
  const std::vector<OpTimes> whole = ends({16, {slower}}, -1), steered = ends({16, {}}, 5);
  ASSERT_EQ(whole.size(), steered.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (std::size_t op = 0; op < whole[i].size(); ++op)
      EXPECT_EQ(whole[i][op].end, steered[i][op].end) << i << " " << op;
}

}  // namespace
}  // namespace longhaul::sim
