#include "harness/collectives/collective_measurement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/collectives.hpp"

namespace longhaul::harness {
namespace {

using testing::flat;
using ::testing::HasSubstr;

CollectiveMeasurement measured(CollectiveKind kind, std::vector<double> durations) {
  CollectiveMeasurement made;
  made.predicted.collective = flat(kind, 4, Bytes{4'000'000}, plan::CollectiveAlgorithm::ring);
  made.predicted.duration = 4ms;
  made.predicted.messages = 12;
  made.predicted.critical_messages = 6;
  made.durations_ns = std::move(durations);
  made.summary = summarize(made.durations_ns);
  return made;
}

// The factors of nccl-tests (doc/PERFORMANCE.md), of 4 ranks and 4 MB in 4 ms.
TEST(CollectiveRates, AreThoseOfNcclTests) {
  const auto bus = [](CollectiveKind kind) {
    const plan::Collective collective =
        flat(kind, 4, Bytes{4'000'000}, plan::CollectiveAlgorithm::ring);
    EXPECT_DOUBLE_EQ(rates_of(collective, 4e6).algorithm, 1e9);
    return rates_of(collective, 4e6).bus;
  };
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_reduce), 1.5e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_gather), 0.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::reduce_scatter), 0.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::all_to_all), 0.75e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::broadcast), 1e9);
  EXPECT_DOUBLE_EQ(bus(CollectiveKind::reduce), 1e9);
}

TEST(CollectiveReport, HoldsTheMedianAgainstThePrediction) {
  const std::vector<CollectiveMeasurement> all{
      measured(CollectiveKind::all_reduce, {4.2e6, 4.1e6, 4.4e6, 4.1e6, 4.3e6, 4.2e6, 4.2e6}),
      measured(CollectiveKind::broadcast, {4e6})};
  const std::string text = emulated_tables(all, TableWidth::whole);
  EXPECT_THAT(
      text,
      HasSubstr("all-reduce of 3.815 MiB among 4 ranks (count 4000000, type uint8, redop sum)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "\nbroadcast of 3.815 MiB among 4 ranks (count 4000000, type uint8, redop none)\n"));
  EXPECT_THAT(text, HasSubstr("4 ms    4.2 ms  4.1 ms - 4.4 ms   +5.00    33.3"));
  EXPECT_THAT(text, HasSubstr("- (n < 6)   +0.00     0.0"));
  const auto json = collectives_json(all);
  EXPECT_EQ(json[0]["n"], 7);
  EXPECT_EQ(json[0]["median_ns"], 4.2e6);
  EXPECT_NEAR(json[0]["difference_percent"].get<double>(), 5, 1e-9);
  EXPECT_EQ(json[0]["critical_messages"], 6);
  EXPECT_EQ(json[0]["late_per_message_ns"], 33'333);
  EXPECT_EQ(json[0]["durations_ns"].size(), 7U);
  EXPECT_TRUE(json[1]["interval_ns"].is_null());
}

TEST(CollectiveReport, OfOneMemberTakesNothingAndDiffersByNothing) {
  CollectiveMeasurement each = measured(CollectiveKind::all_reduce, {1});
  each.predicted.duration = Duration::zero();
  each.without_credit_ns = {1};
  each.over_ties = planner::TieRange{Duration::zero(), Duration::zero(), Duration::zero(), 1};
  EXPECT_EQ(each.difference_percent(), 0);
  EXPECT_EQ(each.difference_without_credit_percent(), 0);
  EXPECT_EQ(each.difference_over_ties_percent(), 0);
}

TEST(OwnCalls, AreThoseOfWhatCarriesTheNumbers) {
  const comm::TransportChoice mpi{comm::TransportKind::mpi, "asked for"};
  const comm::TransportChoice nccl{comm::TransportKind::nccl, "every rank has a GPU to itself"};
  const comm::TransportChoice ipc{comm::TransportKind::cuda_ipc, "ranks 0 and 1 share GPU-a on a"};
  CollectiveSettings settings;
  EXPECT_EQ(own_calls_of(settings, mpi), OwnCalls::mpi);
  settings.device = DeviceKind::cuda;
  EXPECT_EQ(own_calls_of(settings, nccl), OwnCalls::nccl);
  EXPECT_EQ(own_calls_of(settings, ipc), std::nullopt);
  settings.calls = CollectiveCalls::native;
  EXPECT_EQ(own_calls_of(settings, nccl), OwnCalls::nccl);
  try {
    (void)own_calls_of(settings, ipc);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "--collectives native: --transport cuda-ipc has no collectives of its own (ranks 0 "
        "and 1 share GPU-a on a). Use --transport nccl where each rank has a GPU, or "
        "--device cpu for MPI's.");
  }
}

TEST(CollectiveReport, NamesWhoseOwnCallsTheyAre) {
  CollectiveMeasurement each = measured(CollectiveKind::all_reduce, {4.2e6});
  EXPECT_THAT(full_speed_tables({each}, TableWidth::whole), HasSubstr("MPI's own "));
  each.own_by = OwnCalls::nccl;
  each.own_out_of_place = TimedRuns{{1e6}, summarize({1e6}), 0};
  EXPECT_THAT(full_speed_tables({each}, TableWidth::whole), HasSubstr("NCCL's own "));
  EXPECT_THAT(emulated_tables({each}, TableWidth::whole), HasSubstr("NCCL's own here"));
  EXPECT_EQ(collectives_json({each})[0]["own_calls"], "NCCL");
}

TEST(CollectiveReport, HoldsTheMedianAgainstTheRangeOverTies) {
  CollectiveMeasurement each = measured(CollectiveKind::all_reduce, {4.2e6, 4.3e6, 4.4e6});
  EXPECT_FALSE(collectives_json({each})[0].contains("over_ties"));
  each.over_ties = planner::TieRange{4ms, 4300us, 5ms, 40};
  const auto json = collectives_json({each})[0]["over_ties"];
  EXPECT_EQ(json["low_ns"], 4'000'000);
  EXPECT_EQ(json["median_ns"], 4'300'000);
  EXPECT_EQ(json["draws"], 40);
  EXPECT_NEAR(json["difference_percent"].get<double>(), 0, 1e-9);
  EXPECT_THAT(emulated_tables({each}, TableWidth::whole), HasSubstr("4 ms - 5 ms        +0.00"));
}

}  // namespace
}  // namespace longhaul::harness
