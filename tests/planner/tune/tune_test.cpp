#include "planner/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::planner {
namespace {

using namespace longhaul::literals;

constexpr GpuSpeed kRtx4090{28, 300}, kRtx2080Ti{20, 99}, kRtx3090{32, 148};

/// g grows with the batch and, above 90%, with the rate, as measured surfaces do.
Surrogate surrogate_of(double steep, double largest = 2044) {
  Random random{11};
  std::vector<Probe> probes;
  for (int i = 0; i < 30; ++i) {
    const double batch = 64 + (largest - 64) * random.uniform(), rate = random.uniform();
    probes.push_back({batch, rate, steep * batch / 2048 + 0.03 * std::pow(rate, 8) - 0.03});
  }
  return Surrogate{probes};
}

TuneProblem problem_of(std::vector<GpuSpeed> gpus, double lambda = 0) {
  return {.gpus = std::move(gpus), .model_bytes = 352e6, .lambda = lambda, .most_samples = {}};
}

TEST(LeastRate, IsEquationSixForTheFastest) {
  const TuneProblem one = problem_of({kRtx4090});
  EXPECT_NEAR(least_rate(one, {28}, 1_Gbps), 0.96686, 5e-6);
  EXPECT_NEAR(least_rate(one, {45}, 100_Mbps), 0.99467, 5e-6);
  EXPECT_EQ(least_rate(one, {28}, Bandwidth{1e12}), 0);
  const TuneProblem two = problem_of({kRtx4090, kRtx2080Ti});
  EXPECT_EQ(least_rate(two, {28, 20}, 1_Gbps), least_rate(one, {28}, 1_Gbps));
}

TEST(Tune, BalancesGpusAndKeepsEquations) {
  const TuneProblem problem = problem_of({kRtx4090, kRtx4090, kRtx2080Ti});
  const Surrogate surrogate = surrogate_of(0.2);
  const TuneChoice choice = tune(problem, surrogate, 1_Gbps);
  EXPECT_EQ(choice.batch[0], choice.batch[1]);
  EXPECT_GT(choice.batch[0], choice.batch[2]);
  EXPECT_GE(choice.compression_rate, least_rate(problem, choice.batch, 1_Gbps) - 1e-12);
  EXPECT_LT(choice.spread, 0.05);
  const double samples = 2.0 * choice.batch[0] + choice.batch[2];
  EXPECT_NEAR(choice.seconds_per_sample,
              (1 + surrogate.g(samples, choice.compression_rate)) * choice.seconds / samples,
              1e-12);
}

TEST(Tune, IsWithinHalfAPercentOfEverything) {
  for (const double steep : {0.05, 0.5, 2.0})
    for (const double lambda : {0.0, 0.001})
      for (const Bandwidth bandwidth : {30_Mbps, 1_Gbps}) {
        const TuneProblem problem = problem_of({kRtx4090, kRtx2080Ti, kRtx2080Ti}, lambda);
        const Surrogate surrogate = surrogate_of(steep, 1000);
        const double best = tune_exhaustively(problem, surrogate, bandwidth).value().objective;
        const double found = tune(problem, surrogate, bandwidth).objective;
        EXPECT_LT(found, best * 1.005) << steep << " " << lambda;
        EXPECT_GE(found, best) << steep << " " << lambda;
      }
}

TEST(Tune, TakesManyKindsOfGpus) {
  const TuneProblem problem = problem_of({kRtx4090, kRtx4090, kRtx3090, kRtx3090, kRtx2080Ti});
  for (const double largest : {300.0, 2044.0}) {  // all batches; those of every time
    const Surrogate surrogate = surrogate_of(0.3, largest);
    const double best = tune_exhaustively(problem, surrogate, 100_Mbps).value().objective;
    EXPECT_LT(tune(problem, surrogate, 100_Mbps).objective, best * 1.005);
  }
}

/// Batches that no time of an iteration leads to: any, and those around what was found.
TEST(Tune, IsWithinHalfAPercentOfWhateverIsDrawn) {
  const TuneProblem problem = problem_of({kRtx4090, kRtx4090, kRtx3090, kRtx3090, kRtx2080Ti});
  const Surrogate surrogate = surrogate_of(0.3);
  for (const Bandwidth bandwidth : {100_Mbps, 1_Gbps}) {
    const TuneChoice found = tune(problem, surrogate, bandwidth);
    Random random{7};
    int drawn = 0;
    while (drawn < 2000) {
      std::vector<int> batch;
      for (std::size_t i = 0; i < problem.gpus.size(); ++i)
        batch.push_back(drawn % 2 == 0
                            ? static_cast<int>(random.between(1, 400))
                            : std::max(1, static_cast<int>(std::lround(
                                              found.batch[i] * (0.8 + 0.45 * random.uniform())))));
      const int samples = std::accumulate(batch.begin(), batch.end(), 0);
      if (samples < 200 || samples > 1900) continue;  // beyond the probes
      ++drawn;
      EXPECT_LT(found.objective, 1.005 * tune_rate(problem, surrogate, batch, bandwidth).objective);
    }
  }
}

/// g falls up to a rate between two of those that are tried, and rises again.
TEST(Tune, IsNeverBetterThanEverything) {
  std::vector<Probe> probes;
  for (const double batch : {8.0, 60.0, 120.0})
    for (const double rate : {0.0, 0.3, 0.5, 0.555, 0.6, 0.8, 1.0})
      probes.push_back({batch, rate, 4 * std::pow(rate - 0.555, 2) + 1e-6 * batch});
  const Surrogate surrogate{probes};
  for (const GpuSpeed& other : {kRtx4090, kRtx2080Ti})
    for (double rate = 10e9; rate < 40e9; rate += 3e9) {
      const TuneProblem problem = problem_of({kRtx4090, other});
      const Bandwidth bandwidth{rate};
      EXPECT_GE(tune(problem, surrogate, bandwidth).objective,
                tune_exhaustively(problem, surrogate, bandwidth).value().objective)
          << rate;
    }
}

TEST(Tune, TriesNotEverythingWhereThatIsTooMuch) {
  const std::vector<Probe> probes{{10, 0.5, 0.1}, {1000, 0.9, 0.2}, {90'000, 0.1, 1}};
  const Surrogate surrogate{probes};
  for (const GpuSpeed& other : {kRtx4090, kRtx2080Ti}) {
    const TuneProblem problem = problem_of({kRtx4090, other});
    EXPECT_FALSE(tune_exhaustively(problem, surrogate, 1_Gbps));
    EXPECT_GT(tune(problem, surrogate, 1_Gbps).objective, 0);
  }
}

// 36 million batches of two kinds, at few enough rates.
TEST(Tune, TriesNotEverythingOfTwoKindsWithManyBatches) {
  const std::vector<Probe> probes{{10, 0.5, 0.1}, {1000, 0.9, 0.2}, {6000, 0.1, 1}};
  const Surrogate surrogate{probes};
  EXPECT_FALSE(tune_exhaustively(problem_of({kRtx4090, kRtx2080Ti}), surrogate, 1_Gbps));
  EXPECT_TRUE(tune_exhaustively(problem_of({kRtx4090, kRtx4090}), surrogate, 1_Gbps));
}

/// g falls by 0.05% from no samples to 2,000: probes cannot tell that.
TEST(Tune, OfSettingsThatAreAsGoodTakesTheFewestSamples) {
  std::vector<Probe> probes;
  for (int batch = 16; batch <= 2000; batch += 248)
    for (const double rate : {0.0, 0.5, 1.0})
      probes.push_back({1.0 * batch, rate, batch * -2.5e-7});
  const Surrogate surrogate{probes};
  const TuneProblem problem = problem_of({kRtx4090});
  const TuneChoice best = tune_exhaustively(problem, surrogate, 100_Gbps).value();
  const TuneChoice choice = tune(problem, surrogate, 100_Gbps);
  EXPECT_GT(best.batch.front(), 1000);
  EXPECT_GE(choice.batch.front(), 28) << "fewer take as long";
  EXPECT_LT(choice.batch.front(), 100);
  EXPECT_LE(choice.objective, best.objective * 1.001);
}

TEST(Tune, KeepsToMemoryAndToWhatProbesCover) {
  TuneProblem problem = problem_of({kRtx4090, kRtx4090});
  problem.most_samples = 40;
  const TuneChoice choice = tune(problem, surrogate_of(0.01), 1_Gbps);
  EXPECT_LE(choice.batch[0], 40);
  EXPECT_THROW(static_cast<void>(tune(problem_of({}), surrogate_of(0.1), 1_Gbps)), Error);
  EXPECT_THROW(static_cast<void>(tune(problem_of(std::vector<GpuSpeed>(3000, kRtx4090)),
                                      surrogate_of(0.1), 1_Gbps)),
               Error);
}

}  // namespace
}  // namespace longhaul::planner
