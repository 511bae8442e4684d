#include "planner/cluster/cluster.hpp"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_bound.hpp"

namespace longhaul::planner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// (s, GPUs) of each grant.
std::vector<std::pair<double, int>> grants(const JobOutcome& outcome) {
  std::vector<std::pair<double, int>> list;
  for (const GpuGrant& each : outcome.grants)
    list.emplace_back(std::chrono::duration<double>(each.from).count(), each.gpus);
  return list;
}

ClusterJob job(std::string name, Duration submit, std::optional<Duration> deadline,
               double iterations, std::vector<GpuRate> rates = {{1, 1}, {2, 1.5}, {4, 2}}) {
  return {std::move(name), submit, deadline, iterations, std::move(rates)};
}

ClusterOptions options(ClusterPolicy policy, int gpus = 4) {
  ClusterOptions made;
  made.gpus = gpus;
  made.policy = policy;
  made.counts = usual_counts(policy);
  made.slot = 100s;
  return made;
}

TEST(Cluster, GivesAJobAloneAllThatHelps) {
  const ClusterOutcome outcome =
      play_cluster({job("a", 50s, 1000s, 300)}, options(ClusterPolicy::elasticflow));
  EXPECT_THAT(grants(outcome.jobs[0]), ElementsAre(std::pair{100., 4}, std::pair{250., 0}));
  EXPECT_EQ(outcome.jobs[0].end, 250s);
  EXPECT_EQ(outcome.met_ratio, 1.0);
  EXPECT_EQ(outcome.mean_seconds, 200.0);
  EXPECT_EQ(outcome.makespan, 200s);
  EXPECT_DOUBLE_EQ(outcome.utilization, 0.75);
}

/// a needs both GPUs from 0 on; b would need one of them.
TEST(Cluster, RefusesWhatWouldTakeAnAdmittedJobsDeadline) {
  const std::vector<GpuRate> two{{2, 1}};
  const ClusterOutcome outcome =
      play_cluster({job("a", 0s, 1000s, 950, two), job("b", 100s, 1000s, 500, {{1, 1}})},
                   options(ClusterPolicy::elasticflow, 2));
  EXPECT_TRUE(outcome.jobs[0].met);
  EXPECT_FALSE(outcome.jobs[1].admitted);
  EXPECT_FALSE(outcome.jobs[1].start);
  EXPECT_EQ(outcome.met_ratio, 0.5);
}

/// Steps cost the same; the one that saves most GPU time comes first: of a a second GPU adds 0.9 to
/// the rate, of b 0.2.
TEST(Cluster, GivesWhatIsLeftWhereItSavesMost) {
  const ClusterOutcome outcome = play_cluster(
      {job("a", 0s, {}, 1900, {{1, 1}, {2, 1.9}}), job("b", 0s, {}, 1200, {{1, 1}, {2, 1.2}})},
      options(ClusterPolicy::elasticflow, 3));
  EXPECT_EQ(grants(outcome.jobs[0]).front(), std::pair(0., 2));
  EXPECT_EQ(grants(outcome.jobs[1]).front(), std::pair(0., 1));
  EXPECT_EQ(outcome.jobs[0].end, 1000s);
  EXPECT_EQ(outcome.jobs[1].end, 1000s + Duration{166'666'666'667});  // 200 left, two GPUs
}

TEST(Cluster, EndsLateJobsAtTheirDeadline) {
  const ClusterOutcome outcome =
      play_cluster({job("a", 0s, 350s, 600), job("b", 0s, 400s, 600)}, options(ClusterPolicy::edf));
  EXPECT_THAT(grants(outcome.jobs[0]), ElementsAre(std::pair{0., 4}, std::pair{300., 0}));
  EXPECT_THAT(grants(outcome.jobs[1]), ElementsAre(std::pair{300., 4}, std::pair{400., 0}));
  EXPECT_FALSE(outcome.jobs[1].met);
  EXPECT_EQ(outcome.jobs[1].end, 400s);
}

TEST(Cluster, OrdersByItsPolicy) {
  // At 100 s all four are there, and each takes all GPUs.
  ClusterOptions later = options(ClusterPolicy::srtf);
  const std::vector<ClusterJob> together{job("first", 90s, 9000s, 4000),
                                         job("short", 91s, 8000s, 100), job("due", 92s, 2000s, 400),
                                         job("tight", 93s, 3500s, 6000)};
  const auto starts = [&](ClusterPolicy policy) {
    later.policy = policy;
    const ClusterOutcome outcome = play_cluster(together, later);
    std::size_t found = 4;
    for (std::size_t i = 0; i < 4; ++i)
      if (outcome.jobs[i].start == 100s) found = i;
    return found;
  };
  EXPECT_EQ(starts(ClusterPolicy::fifo), 0u);
  EXPECT_EQ(starts(ClusterPolicy::srtf), 1u);
  EXPECT_EQ(starts(ClusterPolicy::edf), 2u);
  EXPECT_EQ(starts(ClusterPolicy::least_laxity), 3u);
}

TEST(Cluster, TakesSlowerCountsOnlyWhereAsked) {
  const std::vector<GpuRate> falling{{1, 1}, {2, 2}, {4, 1.6}};
  EXPECT_EQ(rising(falling).size(), 2u);
  ClusterOptions best = options(ClusterPolicy::edf);
  EXPECT_EQ(grants(play_cluster({job("a", 0s, {}, 160, falling)}, best).jobs[0]).front().second, 4);
  best.counts = GpuCounts::best;
  EXPECT_EQ(grants(play_cluster({job("a", 0s, {}, 160, falling)}, best).jobs[0]).front().second, 2);
}

TEST(Cluster, LosesTimeWithEachRestart) {
  ClusterOptions with = options(ClusterPolicy::edf);
  with.restart = 30s;
  // a runs alone, gives way to b at 100 s and comes back.
  const ClusterOutcome outcome =
      play_cluster({job("a", 0s, 9000s, 400), job("b", 50s, 1000s, 200)}, with);
  EXPECT_EQ(outcome.jobs[1].end, 200s);
  EXPECT_EQ(outcome.jobs[0].end, 330s);
}

struct RandomCluster {
  std::vector<ClusterJob> jobs;
  ClusterOptions settings;
};

RandomCluster random_cluster(unsigned seed, ClusterPolicy policy) {
  std::mt19937 engine{seed};
  const auto draw = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(engine() % 100'000) / 1e5;
  };
  RandomCluster made{{}, options(policy, 8)};
  const int count = 2 + static_cast<int>(draw(0, 14));
  for (int i = 0; i < count; ++i) {
    ClusterJob each;
    each.name = std::to_string(i);
    each.submit = Duration{static_cast<std::int64_t>(draw(0, 5e12))};
    each.iterations = draw(100, 4000);
    double rate = draw(0.5, 2);
    for (const int gpus : {1, 2, 4, 8}) {
      each.rates.push_back({gpus, rate});
      rate *= draw(0.9, 2);
    }
    const double alone = each.iterations / rising(each.rates).back().rate;
    const double factor = draw(1, 4);
    if (draw(0, 1) < 0.8)
      each.deadline = each.submit + Duration{static_cast<std::int64_t>(alone * factor * 1e9) + 1};
    made.jobs.push_back(std::move(each));
  }
  return made;
}

/// Never more GPUs than there are, none that the table lacks.
void expect_within(const RandomCluster& made, const ClusterOutcome& outcome) {
  std::vector<std::pair<Duration, int>> changes;
  for (std::size_t i = 0; i < made.jobs.size(); ++i) {
    int before = 0;
    for (const GpuGrant& each : outcome.jobs[i].grants) {
      const std::vector<GpuRate>& rates = made.jobs[i].rates;
      const bool known = std::ranges::find(rates, each.gpus, &GpuRate::gpus) != rates.end();
      EXPECT_TRUE(each.gpus == 0 || known) << each.gpus;
      EXPECT_NE(each.gpus, before);
      changes.emplace_back(each.from, each.gpus - before);
      before = each.gpus;
    }
    EXPECT_EQ(before, 0);
  }
  std::ranges::sort(changes);  // gives back first
  int held = 0;
  for (const auto& [at, change] : changes) {
    held += change;
    EXPECT_LE(held, made.settings.gpus) << at.count();
  }
}

TEST(RandomClusters, AdmittedJobsMeetTheirDeadlines) {
  int refused = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const RandomCluster made = random_cluster(seed, ClusterPolicy::elasticflow);
    const ClusterOutcome outcome = play_cluster(made.jobs, made.settings);
    expect_within(made, outcome);
    for (const JobOutcome& each : outcome.jobs) {
      EXPECT_EQ(each.met, each.admitted) << seed;
      refused += each.admitted ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(RandomClusters, NoPolicyExceedsTheBounds) {
  constexpr ClusterPolicy kPolicies[]{ClusterPolicy::elasticflow, ClusterPolicy::edf,
                                      ClusterPolicy::fifo, ClusterPolicy::srtf,
                                      ClusterPolicy::least_laxity};
  for (unsigned seed = 1; seed <= 100; ++seed) {
    RandomCluster made = random_cluster(seed, kPolicies[seed % 5]);
    made.settings.counts = seed % 2 == 0 ? GpuCounts::best : GpuCounts::largest;
    const ClusterOutcome outcome = play_cluster(made.jobs, made.settings);
    expect_within(made, outcome);
    int met = 0;
    std::vector<bool> finished;
    for (std::size_t i = 0; i < made.jobs.size(); ++i) {
      finished.push_back(outcome.jobs[i].met);
      if (made.jobs[i].deadline && outcome.jobs[i].met) ++met;
    }
    EXPECT_LE(met, most_deadlines(made.jobs, made.settings.gpus).value_or(0)) << seed;
    made.settings.deadlines = false;
    const ClusterOutcome all = play_cluster(made.jobs, made.settings);
    EXPECT_GE(all.makespan, least_makespan(made.jobs, std::vector<bool>(made.jobs.size(), true),
                                           made.settings.gpus))
        << seed;
  }
}

/// Two pairs of jobs, each as long as its own interval has room for one; and one that no cluster
/// of this size is fast enough for.
TEST(ClusterBound, CountsWhatIntervalsHaveRoomFor) {
  const std::vector<GpuRate> one{{1, 1}};
  const std::vector<ClusterJob> jobs{job("a", 0s, 100s, 100, one), job("b", 0s, 100s, 100, one),
                                     job("c", 200s, 300s, 80, one), job("d", 200s, 310s, 80, one),
                                     job("e", 400s, 450s, 51, one)};
  EXPECT_EQ(most_deadlines(jobs, 1), 2);
  EXPECT_EQ(most_deadlines(jobs, 2), 4);
  EXPECT_EQ(most_deadlines({job("free", 0s, {}, 10, one)}, 1), std::nullopt);
  EXPECT_NEAR(std::chrono::duration<double>(least_makespan(jobs, {true, true, true, true, true}, 1))
                  .count(),
              451, 1e-3);
  EXPECT_NEAR(
      std::chrono::duration<double>(least_makespan(jobs, {true, true, true, true, false}, 1))
          .count(),
      360, 1e-3);
}

}  // namespace
}  // namespace longhaul::planner
