#include "schedule/generators/generate.hpp"

#include <array>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/scenarios.hpp"

namespace longhaul::schedule {
namespace {

using test::evaluate;
using test::two_datacenters;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "F0 F1 B0": the row of a device with one chunk; chunk numbers in front where it has several.
std::string row_text(const Schedule& schedule, DeviceId device) {
  const bool several = chunks_on(schedule, device).size() > 1;
  std::string text;
  for (const Block& block : schedule.row(ReplicaId{0}, device)) {
    if (!text.empty()) text += ' ';
    if (several) text += std::to_string(block.chunk);
    text += longhaul::to_string(block.kind) + std::to_string(block.microbatch);
  }
  return text;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(StaticScheduleNames, AreInTheOrderOfAReport) {
  const auto names = static_schedule_names();
  EXPECT_THAT(
      std::vector<std::string>(names.begin(), names.end()),
      ElementsAre("gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv", "zbv-auto"));
}

TEST(Generate, GivesTheRowsOfTheDefinitions) {
  const Scenario scenario = uniform_scenario(2, 3);
  EXPECT_EQ(row_text(generate("gpipe", scenario), DeviceId{0}), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(row_text(generate("1f1b", scenario), DeviceId{0}), "F0 F1 B0 F2 B1 B2");
  EXPECT_EQ(row_text(generate("1f1b", scenario), DeviceId{1}), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(row_text(generate("zb-h1", scenario), DeviceId{0}), "F0 F1 D0 W0 F2 D1 W1 D2 W2");
  EXPECT_EQ(row_text(generate("zb-h1", scenario), DeviceId{1}), "F0 D0 F1 D1 W0 F2 D2 W1 W2");
  EXPECT_EQ(row_text(generate("zb-h2", scenario), DeviceId{0}), "F0 F1 F2 D0 W0 D1 W1 D2 W2");
  EXPECT_EQ(row_text(generate("zb-h2", scenario), DeviceId{1}), "F0 D0 F1 D1 F2 D2 W0 W1 W2");
  EXPECT_EQ(row_text(generate("interleaved-1f1b", uniform_scenario(2, 2)), DeviceId{0}),
            "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1");
  EXPECT_EQ(row_text(generate("zbv", scenario), DeviceId{1}),
            "1F0 2F0 1F1 2F1 2D0 2W0 1F2 1D0 1W0 2F2 2D1 2W1 1D1 2D2 1D2 1W1 2W2 1W2");
}

TEST(Generate, FillsEverythingButTheRowsToo) {
  Scenario scenario = uniform_scenario(3, 6);
  scenario.parallel.replicas = 2;
  scenario.parallel.chunks = 2;
  const Schedule loop = generate("interleaved-1f1b", scenario);
  EXPECT_EQ(loop.name, "interleaved-1f1b");
  EXPECT_EQ(loop.devices, 3);
  EXPECT_EQ(loop.chunks, 6);
  EXPECT_EQ(loop.microbatches, 6);
  EXPECT_EQ(loop.replicas, 2);
  EXPECT_TRUE(loop.replicas_share_rows());
  EXPECT_THAT(numbers(loop.device_of_chunk.items()), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(numbers(generate("zbv", scenario).device_of_chunk.items()),
              ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_THAT(numbers(generate("gpipe", scenario).device_of_chunk.items()), ElementsAre(0, 1, 2));
}

TEST(Generate, PutsARecomputeDirectlyBeforeEachBackward) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.memory.recompute = true;
  EXPECT_EQ(row_text(generate("1f1b", scenario), DeviceId{0}), "F0 F1 R0 B0 R1 B1");
  EXPECT_EQ(row_text(generate("1f1b", scenario), DeviceId{1}), "F0 R0 B0 F1 R1 B1");
  EXPECT_EQ(row_text(generate("zb-h1", scenario), DeviceId{1}), "F0 R0 D0 F1 R1 D1 W0 W1");
  EXPECT_EQ(row_text(generate("zbv", scenario), DeviceId{1}),
            "1F0 2F0 1F1 2F1 2R0 2D0 2W0 1R0 1D0 1W0 2R1 2D1 2W1 1R1 1D1 1W1");
}

// Makespan and device span for P=4, M=8, F=D=W=1 without delays; the ideal is 24. Bubbles: (P-1)
// (F+B) for GPipe and 1F1B, half of it with two chunks, (P-1)(F+D-W) for ZB-H1 (Qi et al., ICLR
// 2024); ZB-H2 and ZBV have none on device span.
TEST(Generate, ReachesTheMakespansOfTheZeroBubblePapers) {
  struct Known {
    const char* schedule;
    int makespan_ns;
    int device_span_ns;
  };
  constexpr std::array kTable{
      Known{"gpipe", 3300, 3300}, Known{"1f1b", 3300, 3300},  Known{"interleaved-1f1b", 2850, 2850},
      Known{"zb-h1", 2700, 2700}, Known{"zb-h2", 2700, 2400}, Known{"zbv", 2550, 2400}};
  const Scenario scenario = uniform_scenario(4, 8);
  for (const Known& known : kTable) {
    const auto result = test::evaluate(generate(known.schedule, scenario), scenario);
    ASSERT_TRUE(result) << known.schedule;
    EXPECT_EQ(result->makespan, Duration{known.makespan_ns}) << known.schedule;
    EXPECT_EQ(result->device_span, Duration{known.device_span_ns}) << known.schedule;
  }
}

// Two datacenters, latency L on the middle boundary, F=D=W=100: makespans of P=4, M=8 for L = 0,
// 50, 100, 200, 400, and of P=8, M=16 for L = 400.
TEST(Generate, ReachesTheKnownMakespansAcrossTwoDatacenters) {
  struct Known {
    const char* schedule;
    std::array<int, 5> makespan_ns;
    std::optional<int> larger_ns;
  };
  const std::array table{
      Known{"gpipe", {3300, 3400, 3500, 3700, 4100}, 7700},
      Known{"1f1b", {3300, 3700, 4100, 4900, 6500}, 12500},
      Known{"interleaved-1f1b", {2850, 3150, 3500, 4700, 7100}, 11200},
      Known{"zb-h1", {2700, 2900, 3300, 4100, 5700}, 10700},
      Known{"zbv", {2550, 2800, 3100, 4100, 6100}, std::nullopt},
  };
  constexpr std::array kLatencies{0, 50, 100, 200, 400};
  for (const Known& known : table) {
    for (std::size_t i = 0; i < kLatencies.size(); ++i) {
      const Scenario scenario = test::two_datacenters(4, 8, Duration{kLatencies[i]});
      const auto result = test::evaluate(generate(known.schedule, scenario), scenario);
      ASSERT_TRUE(result) << known.schedule;
      EXPECT_EQ(result->makespan, Duration{known.makespan_ns[i]})
          << known.schedule << " at latency " << kLatencies[i];
    }
    if (!known.larger_ns) continue;
    const Scenario larger = test::two_datacenters(8, 16, Duration{400});
    const auto result = test::evaluate(generate(known.schedule, larger), larger);
    ASSERT_TRUE(result) << known.schedule;
    EXPECT_EQ(result->makespan, Duration{*known.larger_ns}) << known.schedule;
  }
}

TEST(Generate, RefusesInterleavingWhereItIsNotDefined) {
  const auto refusal = [](int stages, int microbatches) {
    return message_of(
        [&] { (void)generate("interleaved-1f1b", uniform_scenario(stages, microbatches)); });
  };
  EXPECT_THAT(refusal(4, 10), HasSubstr("Use 8 or 12 microbatches."));
  EXPECT_THAT(refusal(4, 3), HasSubstr("Use 4 microbatches."));
  EXPECT_EQ(refusal(1, 3), "no error");
}

TEST(Generate, RefusesUnknownNamesAndImpossibleCounts) {
  Scenario scenario = uniform_scenario(2, 2);
  EXPECT_EQ(message_of([&] { (void)generate("1f1bb", scenario); }),
            "There is no schedule \"1f1bb\". Did you mean \"1f1b\"?");
  EXPECT_THAT(message_of([&] { (void)generate("quantum", scenario); }),
              HasSubstr("Known: gpipe, 1f1b"));
  scenario.parallel.microbatches = 0;
  EXPECT_THAT(message_of([&] { (void)generate("1f1b", scenario); }),
              HasSubstr("cannot have 0 microbatches"));
  scenario.parallel.microbatches = 2'000'000'000;
  EXPECT_THAT(message_of([&] { (void)generate("1f1b", scenario); }),
              HasSubstr("Lower parallel.microbatches to 67108864 or less."));
  scenario.memory.recompute = true;  // three blocks a microbatch on each of the two stages
  EXPECT_THAT(message_of([&] { (void)generate("1f1b", scenario); }),
              HasSubstr("Lower parallel.microbatches to 44739242 or less."));
  scenario.memory.recompute = false;
  scenario.parallel.microbatches = 2;
  scenario.parallel.chunks = 2'000'000'000;
  EXPECT_THAT(message_of([&] { (void)generate("interleaved-1f1b", scenario); }),
              HasSubstr("too many to hold"));
}

// Memory is set aside for the blocks, not touched.
TEST(EmptySchedule, HasAsManyMicrobatchesAsARefusalAllows) {
  const Generator& generator = *find_generator("1f1b");
  Scenario scenario = uniform_scenario(2, 67'108'864);
  EXPECT_TRUE(empty_schedule(generator, scenario));
  ++scenario.parallel.microbatches;
  EXPECT_FALSE(empty_schedule(generator, scenario));
}

}  // namespace
}  // namespace longhaul::schedule
