#include "harness/profile/model_profile.hpp"

#include <gmock/gmock.h>

#include "harness/profile/collective_profile.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/records/profile_record.hpp"
#include "scenario/files/profile_table.hpp"
#include "scenario/needed_operators.hpp"
#include "support/ranks/ranks_fixture.hpp"
#include "training/model_layout.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

class ModelProfiles : public OnRanks {};

// Each part in turn: kinds of stages, parts of the model, messages, operators; several times where
// it is measured in rounds.
RANKS_TEST(ModelProfiles, TellHowFarTheyAre) {
  harness::ProfileSettings settings;
  settings.samples = 2;
  settings.scenario = "--check";
  settings.check = true;
  const harness::ProfileInput input = harness::prepare_profile(ranks(), settings);
  const auto math = harness::make_tensor_ops(harness::DeviceKind::cpu, ranks());
  std::vector<int> done, totals;
  std::vector<std::string> names;
  const auto profile = harness::profile_model(
      ranks(), *math, input.scenario, input.schedule,
      {input.rule, std::chrono::seconds{60}, [&](int parts, int total, const std::string& now) {
         done.push_back(parts);
         totals.push_back(total);
         names.push_back(now);
       }});
  ASSERT_FALSE(done.empty());
  const auto turns = [&](std::size_t kinds) {
    return (static_cast<int>(kinds) + ranks().count() - 1) / ranks().count();
  };
  const int total = turns(profile.devices.size()) + turns(profile.parts.size()) + 2;
  EXPECT_THAT(totals, ::testing::Each(total));
  EXPECT_TRUE(std::ranges::is_sorted(done));
  for (int part = 0; part < total; ++part)
    EXPECT_THAT(done, ::testing::Contains(part)) << "of " << total;
  EXPECT_EQ(done.back(), total - 1);
  EXPECT_THAT(names.front(), HasSubstr("round 0"));
  EXPECT_EQ(names[names.size() - 2], "messages");
  EXPECT_EQ(names.back(), "operators");
}

// What `longhaul profile needed` lists is what bench_profile measures, spelt the same.
RANKS_TEST(ModelProfiles, MeasureTheOperatorsThatAreNeeded) {
  harness::ProfileSettings settings;
  settings.samples = 2;
  settings.scenario = "--check";
  settings.check = true;
  Scenario scenario = harness::prepare_profile(ranks(), settings).scenario;
  scenario.model->precision = Precision::fp32;
  scenario.memory.recompute = true;
  const auto math = harness::make_tensor_ops(harness::DeviceKind::cpu, ranks());
  std::vector<std::string> measured, needed;
  for (const harness::OperatorTimes& each :
       harness::operator_times(*math, training::model_shape(scenario), 1))
    if (each.call.operation != std::string{"sgd"})
      measured.push_back(fmt::format("{},{},{},{},{},{}", each.part, each.block,
                                     each.call.operation, each.call.shape,
                                     longhaul::to_string(each.call.type), each.calls));
  for (const scenario::NeededOperator& each : scenario::needed_operators(scenario))
    needed.push_back(fmt::format("{},{},{},{},{},{}", each.part, each.block, each.operation,
                                 each.shape, each.type, each.calls));
  EXPECT_THAT(measured, ::testing::UnorderedElementsAreArray(needed));
}

// What `[costs] collectives` reads is what was measured over the ranks: each kind, group and size.
RANKS_TEST(ModelProfiles, MeasureCollectivesThatCostsTake) {
  harness::ProfileSettings settings;
  settings.collectives = "4KiB..8KiB";
  const auto asked = harness::collectives_to_profile(settings, 1_KiB, ranks().count());
  const auto measured = harness::measure_profiled_collectives(
      ranks(), asked, 7, [](const harness::CollectiveMeasurement&) {});
  const std::size_t groups = ranks().count() == 1 ? 0 : ranks().count() == 2 ? 1 : 2;
  ASSERT_EQ(measured.size(), 3 * groups * 2);
  if (!ranks().is_first() || groups == 0) return;
  const scenario::CollectiveTable table = scenario::read_collective_table(
      harness::collectives_csv(measured, ranks()), "collectives.csv");
  ASSERT_EQ(table.rows.size(), measured.size());
  for (const harness::CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    EXPECT_EQ(each.wrong(), 0);
    EXPECT_EQ(each.summary.n, 7U);
    const auto time = table.time(to_string(collective.kind), std::ssize(collective.members), 1,
                                 collective.size.count());
    ASSERT_TRUE(time);
    EXPECT_EQ(time->count(), std::llround(each.summary.median));
  }
}

TEST(ProfiledCollectives, SurroundAMessageAndAreNoneOfOneRankOrAGpu) {
  harness::ProfileSettings settings;
  const auto of_four = harness::collectives_to_profile(settings, 1_MiB, 4);
  EXPECT_EQ(of_four.size(), 3U * 2U * 5U);  // kinds, groups of 2 and 4, 256 KiB to 4 MiB
  EXPECT_EQ(of_four.front().size, 256_KiB);
  EXPECT_EQ(of_four.back().size, 4_MiB);
  EXPECT_EQ(of_four.back().members.size(), 4U);
  EXPECT_TRUE(harness::collectives_to_profile(settings, 1_MiB, 1).empty());
  settings.device = "cuda";
  EXPECT_TRUE(harness::collectives_to_profile(settings, 1_MiB, 4).empty());
  settings.collectives = "1MiB";
  EXPECT_THROW((void)harness::collectives_to_profile(settings, 1_MiB, 4), Error);
}

}  // namespace
}  // namespace longhaul::testing
