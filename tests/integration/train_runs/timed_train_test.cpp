// bench_train --compute timed: what is measured of streams without numbers, beside its prediction.
#include "train_runs_fixture.hpp"

namespace longhaul {
namespace {

using ::testing::ContainsRegex;

/// Blocks of 34 ms and more, two parts: far longer or shorter than what their exchange takes.
class TimedTraining : public testing::TrainRuns {
protected:
  static constexpr int kIterations = 8;

  int measure(const std::string& methods, const std::string& message, const std::string& rate) {
    return run(0, {scenario(),
                   "--data",
                   "synthetic",
                   "--compute",
                   "timed",
                   "--methods",
                   methods,
                   "--max-iterations",
                   std::to_string(kIterations),
                   "--out",
                   out(),
                   "--ranks-per-process",
                   "3",
                   "--deadline",
                   "10s",
                   "--set",
                   "train.batch=[1,1,1]",
                   "--set",
                   "model.achieved_flops=1e7",
                   "--set",
                   "train.message=" + message,
                   "--set",
                   "link.bandwidth=" + rate});
  }
};

/// The second part has all the time of the first one's blocks for its exchange, the first one
/// none: F of the next iteration follows its B.
TEST_F(TimedTraining, SharesOfFreshPartsStandBesidePredictedOnes) {
  ASSERT_EQ(measure("stella,stella:serve=arrival,stella:staleness=0", "1kB", "200Mbps"), 0)
      << output();
  const nlohmann::json all = curves();
  ASSERT_EQ(all.size(), 3U);
  for (const auto& [i, share] : {std::pair{0, 0.5}, {1, 0.5}, {2, 1.0}}) {
    const nlohmann::json& curve = all[static_cast<std::size_t>(i)];
    SCOPED_TRACE(curve["method"].get<std::string>());
    EXPECT_EQ(curve["fresh_share"], share);
    EXPECT_EQ(curve["predicted_fresh_share"], share);
    EXPECT_EQ(curve["exchanges"], kIterations);
    EXPECT_GE(curve["period_ns"].get<double>(), 0.9 * curve["predicted_period_ns"].get<double>());
    EXPECT_EQ(curve["settings"]["serve"], i == 1 ? "arrival" : "deadline");
    EXPECT_EQ(curve["versions"].size(), i == 2 ? 0U : std::size_t{kIterations});
    EXPECT_EQ(curve["check"], "ok");
  }
  EXPECT_THAT(output(), ContainsRegex("50.0% +50.0%")) << "measured, predicted";
}

TEST_F(TimedTraining, NoPartIsFreshWhereAnExchangeTakesLongerThanAnIteration) {
  ASSERT_EQ(measure("stella,stella:staleness=0", "200kB", "20Mbps"), 0) << output();
  const nlohmann::json all = curves();
  EXPECT_EQ(all[0]["fresh_share"], 0.0);
  EXPECT_EQ(all[0]["predicted_fresh_share"], 0.0);
  EXPECT_EQ(all[1]["fresh_share"], 1.0) << "F waits for it";
}

/// A ring of three, of whose three ways two lead over the WAN: two hops of two parts on each.
TEST_F(TimedTraining, BytesAreThoseOfThePlanCut) {
  ASSERT_EQ(measure("stella", "100kB", "2Gbps"), 0) << output();
  const nlohmann::json wan = curves().front()["wan"];
  constexpr int kSets = 2 * 2 * 2 * kIterations;
  EXPECT_EQ(wan["nominal_bytes"], kSets * 100'000);
  EXPECT_EQ(wan["payload_bytes"], kSets * (64 << 10))
      << "the most that the engine sends of a message";
  EXPECT_EQ(wan["encoded_bytes"], 0);
}

}  // namespace
}  // namespace longhaul
