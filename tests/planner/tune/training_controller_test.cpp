#include "planner/tune/training_controller.hpp"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::planner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Le;

constexpr GpuSpeed kFast{28, 300}, kSlow{20, 99};
constexpr double kModelBytes = 352e6;

/// All batches and rates converge equally fast.
Surrogate equal_probes() { return Surrogate{{{4, 0, 0}, {300, 0, 0}, {4, 0.999, 0}}}; }
/// g falls with the rate: the rate is 0.999 over any link.
Surrogate falling_probes() {
  return Surrogate{{{4, 0, 0.5}, {4, 0.999, 0}, {500, 0, 0.5}, {500, 0.999, 0}, {250, 0.5, 0.25}}};
}

ControllerSettings settings_of(std::vector<GpuSpeed> gpus, int every = 10) {
  ControllerSettings settings;
  settings.batch.assign(gpus.size(), 30);
  settings.problem = {
      .gpus = std::move(gpus), .model_bytes = kModelBytes, .lambda = 0, .most_samples = {}};
  settings.adapt.every = every;
  settings.staleness = 1;
  settings.compression_rate = 0.99;
  return settings;
}

/// Replicas whose exchange is hidden as far as the link allows.
struct Plant {
  std::vector<GpuSpeed> gpus;
  double bits_per_second = 1e9;

  std::vector<RankTelemetry> tell(const TuneChoice& setting) const {
    double period = (1 - setting.compression_rate) * 8 * kModelBytes / bits_per_second;
    for (std::size_t r = 0; r < gpus.size(); ++r)
      period = std::max(period, gpus[r].seconds(setting.batch[r]));
    std::vector<RankTelemetry> ranks;
    for (std::size_t r = 0; r < gpus.size(); ++r) {
      const double seconds = gpus[r].seconds(setting.batch[r]);
      ranks.push_back({setting.batch[r], seconds, 1 - seconds / period});
    }
    return ranks;
  }
};

int sum_of(const std::vector<int>& batch) { return std::accumulate(batch.begin(), batch.end(), 0); }

TEST(TrainingController, DecidesAsThePublicCodeByHand) {
  TrainingController controller{settings_of({kFast, kFast}), equal_probes()};
  const auto told = [](double idle) {
    return std::vector<RankTelemetry>{{30, 0.1, idle}, {30, 0.1, idle}};
  };
  const Adaptation first = controller.decide(9, told(0.2));
  EXPECT_NEAR(first.bandwidth.bits_per_second(), 0.01 * 8 * kModelBytes / 0.125, 1);
  EXPECT_EQ(first.reason, AdaptationReason::first);
  EXPECT_EQ(first.iteration, 13);
  EXPECT_NEAR(first.setting.compression_rate,
              1 - first.bandwidth.bits_per_second() / 8 / kModelBytes * first.setting.seconds, 1e-9)
      << "equation 6";
  const double believed = first.bandwidth.bits_per_second();
  const Adaptation idle = controller.decide(19, told(0.5));
  EXPECT_EQ(idle.reason, AdaptationReason::idle);
  EXPECT_NEAR(idle.bandwidth.bits_per_second(), 0.75 * believed, 1);
  const Adaptation waited = controller.decide(29, told(0.1));
  EXPECT_NEAR(waited.bandwidth.bits_per_second(), 0.75 * 0.9 * believed, 1);
  const Adaptation busy = controller.decide(39, told(0.04));
  EXPECT_EQ(busy.reason, AdaptationReason::busy);
  EXPECT_NEAR(busy.bandwidth.bits_per_second(), 1.1 * 0.75 * 0.9 * believed, 1);
}

TEST(TrainingController, TakesTheWaitThatAllRanksShare) {
  TrainingController controller{settings_of({kFast, kSlow}), equal_probes()};
  (void)controller.decide(9, std::vector<RankTelemetry>{{30, 0.1, 0}, {30, 0.1, 0}});
  const double before = 0.01 * 8 * kModelBytes / 0.1;
  // One waits 100 ms for the other, which waits for nothing.
  const Adaptation busy =
      controller.decide(19, std::vector<RankTelemetry>{{30, 0.1, 0.5}, {30, 0.2, 0}});
  EXPECT_EQ(busy.reason, AdaptationReason::busy);
  // Both wait 50 ms more: 50 over 50 + 150.
  const Adaptation idle =
      controller.decide(29, std::vector<RankTelemetry>{{30, 0.1, 0.6}, {30, 0.2, 0.2}});
  EXPECT_NEAR(idle.bandwidth.bits_per_second(), 1.1 * 0.75 * before, 1);
}

TEST(TrainingController, IsDueEveryFewIterationsOnceASettingIsInUse) {
  TrainingController controller{settings_of({kFast}, 5), equal_probes()};
  EXPECT_EQ(controller.window(3), std::nullopt);
  EXPECT_EQ(controller.window(4), 2) << "0 and 1 fill the stream";
  EXPECT_EQ(controller.window(9), 5);
  (void)controller.decide(4, std::vector<RankTelemetry>{{30, 0.1, 0}});
  EXPECT_EQ(controller.window(9), std::nullopt) << "from 8 on, 8 and 9 wait for older exchanges";
  EXPECT_EQ(controller.window(14), 10);
  ControllerSettings each = settings_of({kFast}, 1);
  const TrainingController often{each, equal_probes()};
  EXPECT_EQ(often.window(2), std::nullopt) << "two iterations at least";
  EXPECT_EQ(often.window(3), 2);
  each.adapt.changes = AdaptedSettings::nothing;
  EXPECT_EQ((TrainingController{each, equal_probes()}.window(3)), std::nullopt);
}

TEST(TrainingController, FitsWhatItsRanksMeasure) {
  const std::vector<GpuSpeed> real{{12, 150}, {50, 400}};
  TrainingController controller{settings_of({kFast, kFast}, 1), equal_probes()};
  int done = 3;
  for (const int batch : {4, 8, 16, 32, 64, 96}) {
    std::vector<RankTelemetry> ranks;
    for (const GpuSpeed& gpu : real) ranks.push_back({batch, gpu.seconds(batch), 0});
    (void)controller.decide(done++, ranks);
  }
  for (std::size_t r = 0; r < real.size(); ++r) {
    EXPECT_NEAR(controller.speed(r).alpha / real[r].alpha, 1, 1e-3);
    EXPECT_NEAR(controller.speed(r).beta / real[r].beta, 1, 1e-3);
  }
}

TEST(TrainingController, KeepsTheProfileWhereOneBatchAgreesWithIt) {
  TrainingController controller{settings_of({kFast, kSlow}), equal_probes()};
  (void)controller.decide(
      9, std::vector<RankTelemetry>{{60, kFast.seconds(60), 0}, {40, kSlow.seconds(40), 0}});
  EXPECT_NEAR(controller.speed(0).alpha, 28, 1e-6) << "60 samples alone say nothing of it";
  EXPECT_NEAR(controller.speed(1).beta, 99, 1e-6);
}

/// Slowest over fastest replica: equation 6 leaves the link so much time more than it counts.
double imbalance(const Plant& plant, const TuneChoice& setting) {
  double least = HUGE_VAL, most = 0;
  for (std::size_t r = 0; r < plant.gpus.size(); ++r) {
    least = std::min(least, plant.gpus[r].seconds(setting.batch[r]));
    most = std::max(most, plant.gpus[r].seconds(setting.batch[r]));
  }
  return most / least;
}

/// Once the estimate has met the link it stays from 5% below to 25% above, up to 1.1 times what
/// leaves ranks 5% idle, times their imbalance.
TEST(TrainingController, EstimatesALinkThatStaysAsItIs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random{seed};
    Plant plant;
    const auto replicas = random.between(2, 4);
    for (std::int64_t r = 0; r < replicas; ++r)
      plant.gpus.push_back({static_cast<double>(random.between(4, 40)),
                            static_cast<double>(random.between(50, 300))});
    plant.bits_per_second = 3e7 * std::pow(30.0, random.uniform());
    ControllerSettings settings = settings_of(plant.gpus, 1);
    settings.compression_rate = random.uniform();
    TrainingController controller{settings, equal_probes()};
    for (int done = 0; done < 50; ++done) {
      const double most = 1.25 * imbalance(plant, controller.setting());
      const Adaptation made = controller.decide(done, plant.tell(controller.setting()));
      if (done < 38) continue;
      const double ratio = made.bandwidth.bits_per_second() / plant.bits_per_second;
      EXPECT_GE(ratio, 0.95) << "seed " << seed << ", " << done;
      EXPECT_LE(ratio, most) << "seed " << seed << ", " << done;
    }
  }
}

TEST(TrainingController, BelievesWhatLinksMeasured) {
  ControllerSettings settings = settings_of({kFast, kSlow});
  settings.adapt.estimate = BandwidthEstimate::links;
  TrainingController controller{settings, equal_probes()};
  const Adaptation made = controller.decide(
      9, std::vector<RankTelemetry>{{30, 0.1, 0.9}, {30, 0.3, 0.9}}, Bandwidth{2e8});
  EXPECT_EQ(made.bandwidth, Bandwidth{2e8});
  EXPECT_EQ(made.reason, AdaptationReason::links);
}

TEST(TrainingController, LearnsNothingOfALinkThatItDoesNotUse) {
  TrainingController controller{settings_of({kFast, kFast}), falling_probes()};
  const std::vector<RankTelemetry> busy{{30, 0.1, 0}, {30, 0.1, 0}};
  const Adaptation first = controller.decide(9, busy);
  EXPECT_EQ(first.setting.binding, TuneBinding::surrogate);
  const Adaptation next = controller.decide(19, busy);
  EXPECT_EQ(next.bandwidth, first.bandwidth);
  EXPECT_EQ(next.reason, AdaptationReason::unused);
}

TEST(TrainingController, NeverExceedsTheLargestBatch) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random{seed};
    ControllerSettings settings = settings_of({kFast, kFast, kSlow, kSlow}, 1);
    settings.problem.most_samples = static_cast<int>(random.between(4, 60));
    TrainingController controller{settings, equal_probes()};
    Plant plant{settings.problem.gpus, 1e7 * std::pow(100.0, random.uniform())};
    for (int done = 0; done < 5; ++done) {
      const Adaptation made = controller.decide(done, plant.tell(controller.setting()));
      EXPECT_THAT(made.setting.batch, Each(Le(*settings.problem.most_samples))) << "seed " << seed;
    }
  }
}

/// Where no batch converges faster, equation 5 is the time of a sample, whatever the link.
TEST(TrainingController, KeepsTheSamplesWhereTheLinkDoesNotMatter) {
  ControllerSettings settings = settings_of({kFast, kSlow});
  settings.adapt.estimate = BandwidthEstimate::links;
  TrainingController controller{settings, equal_probes()};
  std::vector<int> sums;
  std::vector<double> rates;
  for (const double mbps : {100.0, 1000.0, 30.0}) {
    const Adaptation made = controller.decide(
        9, std::vector<RankTelemetry>{{30, kFast.seconds(30), 0}, {30, kSlow.seconds(30), 0}},
        Bandwidth{mbps * 1e6});
    sums.push_back(sum_of(made.setting.batch));
    rates.push_back(made.setting.compression_rate);
    EXPECT_GT(made.setting.batch[0], made.setting.batch[1]) << "more for the faster GPU";
  }
  EXPECT_THAT(sums, Each(sums.front()));
  EXPECT_LT(rates[1], rates[0]);
  EXPECT_GT(rates[2], rates[0]);
}

TEST(TrainingController, GoesOnAsIfItHadNotBeenCut) {
  const Plant plant{{kFast, kSlow}, 1.5e8};
  TrainingController whole{settings_of({kFast, kSlow}), falling_probes()};
  Adaptation last;
  for (const int done : {9, 19, 29}) last = whole.decide(done, plant.tell(whole.setting()));
  TrainingController resumed{settings_of({kFast, kSlow}), falling_probes()};
  resumed.resume(last, whole.learned());
  EXPECT_EQ(resumed.window(39), whole.window(39));
  for (const int done : {39, 49}) {
    const Adaptation one = whole.decide(done, plant.tell(whole.setting()));
    const Adaptation other = resumed.decide(done, plant.tell(resumed.setting()));
    EXPECT_EQ(one.iteration, other.iteration);
    EXPECT_EQ(one.bandwidth, other.bandwidth);
    EXPECT_EQ(one.reason, other.reason);
    EXPECT_EQ(one.setting.batch, other.setting.batch);
    EXPECT_EQ(one.setting.compression_rate, other.setting.compression_rate);
  }
}

TEST(TrainingController, ChangesTheRateAlone) {
  ControllerSettings settings = settings_of({kFast, kSlow});
  settings.batch = {7, 40};
  settings.adapt.changes = AdaptedSettings::rate;
  TrainingController controller{settings, equal_probes()};
  const Adaptation made =
      controller.decide(9, Plant{{kFast, kSlow}, 2e8}.tell(controller.setting()));
  EXPECT_THAT(made.setting.batch, ElementsAre(7, 40));
  EXPECT_NEAR(made.setting.compression_rate,
              1 - made.bandwidth.bits_per_second() / 8 / kModelBytes * kFast.seconds(7), 1e-9);
}

}  // namespace
}  // namespace longhaul::planner
