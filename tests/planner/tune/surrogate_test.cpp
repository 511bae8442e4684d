#include "planner/tune/surrogate.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::planner {
namespace {

using ::testing::HasSubstr;

/// Smooth, with noise; the noise is not to be learnt.
std::vector<Probe> probes_of(int count, double noise) {
  Random random{5};
  std::vector<Probe> probes;
  for (int i = 0; i < count; ++i) {
    const double batch = 64 + 1900 * random.uniform(), rate = random.uniform();
    const double g = 0.1 * std::sin(batch / 900) + 0.05 * rate * rate;
    probes.push_back({batch, rate, g + noise * random.normal()});
  }
  return probes;
}

TEST(Surrogate, LearnsASmoothSurface) {
  const Surrogate surrogate{probes_of(30, 0)};
  EXPECT_NEAR(surrogate.g(1000, 0.5), 0.1 * std::sin(1000.0 / 900) + 0.05 * 0.25, 2e-3);
  EXPECT_LT(surrogate.leave_one_out_rms(), 2e-3);
  EXPECT_GT(surrogate.length_scales()[0], 100);
}

TEST(Surrogate, KnowsWhereItKnowsLittle) {
  const std::vector<Probe> probes{
      {100, 0.1, 0.1}, {150, 0.2, 0.12}, {120, 0.15, 0.11}, {130, 0.3, 0.1}, {180, 0.1, 0.13}};
  const Surrogate surrogate{probes};
  EXPECT_LT(surrogate.estimate(125, 0.16).deviation, surrogate.estimate(180, 0.95).deviation);
}

TEST(Surrogate, TakesEqualProbes) {
  for (const double g : {0.1, 0.0, -3e5}) {
    const Surrogate surrogate{{{10, 0.9, g}, {20, 0.9, g}, {40, 0.5, g}}};
    EXPECT_NEAR(surrogate.g(30, 0.7), g, 1e-9 * std::fabs(g));
    EXPECT_LT(surrogate.leave_one_out_rms(), 1e-9 * (1 + std::fabs(g)));
  }
  const Surrogate nearly{{{10, 0.9, 0.1}, {20, 0.9, 0.1 + 1e-9}, {40, 0.5, 0.1}}};
  EXPECT_NEAR(nearly.g(30, 0.7), 0.1, 1e-8);
  EXPECT_NEAR((Surrogate{{{10, 0.9, 1e6}, {10, 0.9, -1e6}, {40, 0.5, 0}}}.g(40, 0.5)), 0, 1e6);
}

/// Solves a x = b by Gauss and Jordan, with pivots.
std::vector<double> solved(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row)
      if (std::fabs(a[row][column]) > std::fabs(a[pivot][column])) pivot = row;
    std::swap(a[pivot], a[column]);
    std::swap(b[pivot], b[column]);
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (std::size_t i = column; i < n; ++i) a[row][i] -= factor * a[column][i];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] /= a[i][i];
  return b;
}

/// What probes say of another one, by the surrogate's parameters and mean.
double prediction(const Surrogate& surrogate, const std::vector<Probe>& probes, double mean,
                  const Probe& at) {
  const auto [surface, noise] = surrogate.spread();
  const auto [batch, rate] = surrogate.length_scales();
  const auto covariance = [&](const Probe& one, const Probe& other) {
    const double distance =
        std::sqrt(5.0) * std::hypot((one.batch - other.batch) / batch,
                                    (one.compression_rate - other.compression_rate) / rate);
    return surface * (1 + distance + distance * distance / 3) * std::exp(-distance);
  };
  std::vector<std::vector<double>> all;
  std::vector<double> rest;
  for (const Probe& one : probes) {
    std::vector<double> row;
    for (const Probe& other : probes) row.push_back(covariance(one, other));
    row[all.size()] += noise;
    all.push_back(std::move(row));
    rest.push_back(one.g - mean);
  }
  const std::vector<double> weights = solved(all, rest);
  double g = mean;
  for (std::size_t i = 0; i < probes.size(); ++i) g += weights[i] * covariance(at, probes[i]);
  return g;
}

/// By taking each probe out in fact, at the same parameters and mean.
TEST(Surrogate, LeaveOneOutErrorIsThatOfLeavingEachOut) {
  const double noise = 0.01;
  const std::vector<Probe> probes = probes_of(40, noise);
  const Surrogate surrogate{probes};
  double mean = 0, squares = 0;
  for (const Probe& probe : probes) mean += probe.g / static_cast<double>(probes.size());
  for (std::size_t i = 0; i < probes.size(); ++i) {
    std::vector<Probe> others = probes;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double error = probes[i].g - prediction(surrogate, others, mean, probes[i]);
    squares += error * error;
  }
  const double left_out = std::sqrt(squares / static_cast<double>(probes.size()));
  EXPECT_NEAR(surrogate.leave_one_out_rms(), left_out, 1e-9 * left_out);
  EXPECT_GT(left_out, 0.5 * noise);
  EXPECT_LT(left_out, 2 * noise);
}

TEST(ExpectedImprovement, IsTheMeanGainWhereNothingIsUnsure) {
  EXPECT_EQ(expected_improvement({.mean = 1, .deviation = 0}, 3), 2);
  EXPECT_EQ(expected_improvement({.mean = 4, .deviation = 0}, 3), 0);
  EXPECT_NEAR(expected_improvement({.mean = 3, .deviation = 1}, 3), 0.3989423, 1e-6);
  EXPECT_NEAR(expected_improvement({.mean = 2, .deviation = 1}, 3), 1.0833155, 1e-6);
}

TEST(Probes, AreReadFromATable) {
  const ProbeTable table = read_probes(
      "model,version,batch,compression_rate,g\n# mine\nvit_b_16,v2,64.0,0.99,0.053\r\n"
      "ViT-B-16,v2,1883.284,0.5,-0.01\nvit_b_16,v2,10,0,0\n",
      "p.csv");
  ASSERT_EQ(table.probes.size(), 3U);
  EXPECT_EQ(table.probes[1].batch, 1883.284);
  EXPECT_EQ(table.probes[1].g, -0.01);
  EXPECT_TRUE(is_same_model(table.model, "vit-b-16"));
  EXPECT_FALSE(is_same_model(table.model, "vit-b-32"));
}

TEST(Probes, SayHowLongTheyTookWhereTheTableDoes) {
  const std::string head = "model,batch,took_ns,compression_rate,g\n";
  EXPECT_EQ(read_probes(head + "a,1,700,0,0\na,2,200,0,0\na,3,1000,0.5,0\n", "p.csv").took,
            Duration{1900});
  EXPECT_EQ(
      read_probes("model,batch,compression_rate,g\na,1,0,0\na,2,0,0\na,3,0,0\n", "p.csv").took,
      std::nullopt);
}

std::string probe_refusal(const std::string& csv) {
  try {
    static_cast<void>(read_probes(csv, "p.csv"));
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Probes, AreRefusedWithTheirLine) {
  const std::string head = "model,batch,compression_rate,g\n";
  EXPECT_THAT(probe_refusal("model,batch,g\n"),
              HasSubstr("p.csv:1: there is no column compression_rate"));
  EXPECT_THAT(probe_refusal("model,batch,compression_rate,g,took_ns\na,1,0.5,0,-1\n"),
              HasSubstr("p.csv:2: took_ns is \"-1\""));
  EXPECT_THAT(probe_refusal(head + "a,0,0.5,0\n"), HasSubstr("p.csv:2: batch is \"0\""));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,0\na,100001,0.5,0\n"),
              HasSubstr("p.csv:3: batch is \"100001\" (no number from 0.001 to 100000)"));
  EXPECT_THAT(probe_refusal(head + "a,1,1.5,0\n"), HasSubstr("compression_rate is \"1.5\""));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,nan\n"), HasSubstr("g is \"nan\""));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5\n"), HasSubstr("3 words are too few"));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,0\nb,1,0.5,0\n"), HasSubstr("p.csv:3: a probe of b"));
  EXPECT_THAT(probe_refusal(head + "a,1,0.5,0\n"), HasSubstr("1 probes say nothing"));
}

/// After 30 probes of a known surface the best batch of each rate is near its own.
TEST(ProbeSearch, FindsTheBestBatchOfEachRate) {
  const auto surface = [](double batch, double rate) {
    const double best = 200 + 400 * rate, off = (batch - best) / 1000;
    return 0.05 * rate + off * off;
  };
  const auto search_of = [&](std::uint64_t seed) {
    ProbeSearch search{4, 1024, seed};
    for (int i = 0; i < 30; ++i) {
      const auto [batch, rate] = search.next();
      EXPECT_TRUE(batch >= 4 && batch <= 1024 && rate >= 0 && rate <= 0.999);
      search.add(batch, rate, surface(batch, rate));
    }
    return search;
  };
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const ProbeSearch search = search_of(seed);
    const Surrogate found{search.probes()};
    for (const double rate : {0.1, 0.5, 0.9}) {
      double best = 4;
      for (double batch = 4; batch <= 1024; ++batch)
        if (found.g(batch, rate) < found.g(best, rate)) best = batch;
      EXPECT_NEAR(best, 200 + 400 * rate, 60) << "seed " << seed << ", rate " << rate;
    }
    double least = 1, most = 0;
    for (const Probe& probe : search.probes()) {
      least = std::min(least, probe.compression_rate);
      most = std::max(most, probe.compression_rate);
    }
    EXPECT_LT(least, 0.2) << "rates are drawn from all";
    EXPECT_GT(most, 0.8);
  }
  const ProbeSearch one = search_of(7), other = search_of(7);
  EXPECT_EQ(one.probes().back().batch, other.probes().back().batch) << "one seed, one search";
}

}  // namespace
}  // namespace longhaul::planner
