// Jobs over sites: who takes which GPUs of a slot. One pool is in cluster_test.cpp.
#include "planner/cluster/share_slot.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cluster/cluster_bound.hpp"

namespace longhaul::planner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

ClusterOptions over_sites(std::vector<int> sites, ClusterPolicy policy = ClusterPolicy::fifo) {
  ClusterOptions made;
  for (const int gpus : sites) made.gpus += gpus;
  made.sites = std::move(sites);
  made.policy = policy;
  made.counts = GpuCounts::best;
  made.slot = 100s;
  return made;
}

/// Runs on four GPUs of either site, or on all eight of both at half as much again.
ClusterJob anywhere(std::string name, Duration submit, double iterations) {
  return {std::move(name),         submit, {}, iterations, {{4, 2}, {4, 2}, {8, 3}},
          {{4, 0}, {0, 4}, {4, 4}}};
}

TEST(Sites, AJobAloneSpansThemWhereThatIsFaster) {
  const ClusterOutcome outcome = play_cluster({anywhere("a", 0s, 600)}, over_sites({4, 4}));
  ASSERT_EQ(outcome.jobs[0].grants.size(), 2U);
  EXPECT_EQ(outcome.jobs[0].grants[0].gpus, 8);
  EXPECT_THAT(outcome.jobs[0].grants[0].at, ElementsAre(4, 4));
  EXPECT_EQ(outcome.jobs[0].end, 200s);
  EXPECT_DOUBLE_EQ(outcome.utilization, 1);
}

/// b comes at 100 s: a was first and keeps both. With the rest of a's work as key, b is first.
TEST(Sites, TheFirstInOrderChoosesFirst) {
  const std::vector<ClusterJob> jobs{anywhere("a", 0s, 900), anywhere("b", 50s, 100)};
  const ClusterOutcome fifo = play_cluster(jobs, over_sites({4, 4}));
  EXPECT_EQ(fifo.jobs[0].end, 300s);
  EXPECT_EQ(fifo.jobs[1].start, 300s);
  const ClusterOutcome shortest = play_cluster(jobs, over_sites({4, 4}, ClusterPolicy::srtf));
  EXPECT_EQ(shortest.jobs[1].start, 100s);
  EXPECT_EQ(shortest.jobs[0].grants[1].gpus, 0);
}

TEST(Sites, JobsThatDoNotSpanShareThem) {
  ClusterJob a = anywhere("a", 0s, 400), b = anywhere("b", 0s, 200);
  for (ClusterJob* const job : {&a, &b}) {
    job->rates.pop_back();
    job->places.pop_back();
  }
  const ClusterOutcome outcome = play_cluster({a, b}, over_sites({4, 4}));
  EXPECT_THAT(outcome.jobs[0].grants[0].at, ElementsAre(4, 0));
  EXPECT_THAT(outcome.jobs[1].grants[0].at, ElementsAre(0, 4));
  EXPECT_EQ(outcome.jobs[0].grants.size(), 2U);  // it stays where it is when b ends
}

/// Five of eight GPUs are free, but not four in one place.
TEST(Sites, WhatIsFreeApartIsNoPool) {
  const ClusterJob small{"small", 0s, {}, 1000, {{2, 1}}, {{2, 0}}};
  const ClusterJob west{"west", 0s, {}, 1000, {{1, 1}}, {{0, 1}}};
  const ClusterJob whole{"whole", 0s, {}, 100, {{4, 2}, {4, 2}}, {{4, 0}, {0, 4}}};
  const ClusterOutcome apart = play_cluster({small, west, whole}, over_sites({4, 4}));
  EXPECT_EQ(apart.jobs[2].start, 1000s);
  ClusterJob spanning = whole;
  spanning.rates.push_back({4, 1});
  spanning.places.push_back({2, 2});
  EXPECT_EQ(play_cluster({small, west, spanning}, over_sites({4, 4})).jobs[2].start, 0s);
}

TEST(Sites, MovingIsARestart) {
  // b takes the east away from a, which can go on in the west.
  const ClusterJob a{"a", 0s, 9000s, 400, {{4, 2}, {4, 1}}, {{4, 0}, {0, 4}}};
  const ClusterJob b{"b", 50s, 1000s, 200, {{4, 2}}, {{4, 0}}};
  ClusterOptions options = over_sites({4, 4}, ClusterPolicy::edf);
  options.restart = 30s;
  const ClusterOutcome outcome = play_cluster({a, b}, options);
  EXPECT_THAT(outcome.jobs[0].grants[1].at, ElementsAre(0, 4));
  EXPECT_EQ(outcome.jobs[1].end, 200s);
  // 200 at 2/s, 70 s at 1/s in the west, 30 s of restart, then 130 more at 2/s.
  EXPECT_EQ(outcome.jobs[0].end, 200s + 30s + 65s);
}

TEST(Sites, NeedlessPlacesAreLeftOut) {
  const ClusterJob job{"a",
                       0s,
                       {},
                       1,
                       {{2, 1}, {2, 1}, {4, 1}, {4, 2}, {4, 2}},
                       {{2, 0}, {0, 2}, {4, 0}, {2, 2}, {2, 2}}};
  RunningJob taken;
  take_rates(taken, job, over_sites({4, 4}));
  EXPECT_THAT(taken.places, ElementsAre(SiteGpus{2, 0}, SiteGpus{0, 2}, SiteGpus{2, 2}));
  RunningJob all;
  ClusterOptions largest = over_sites({2, 4});
  largest.counts = GpuCounts::largest;
  take_rates(all, job, largest);
  EXPECT_EQ(all.places.size(), 4U);  // the east has no four
}

// Each of two takes a site; a third has no room in time, and what is free in no site is none.
TEST(Sites, ElasticflowFillsWhatIsFreeOfEach) {
  const auto urgent = [](const char* name) {
    ClusterJob job = anywhere(name, 0s, 580);
    job.deadline = 300s;
    return job;
  };
  const ClusterOptions options = over_sites({4, 4}, ClusterPolicy::elasticflow);
  const ClusterOutcome outcome = play_cluster({urgent("a"), urgent("b"), urgent("c")}, options);
  EXPECT_EQ(outcome.jobs[0].grants.front().at, (SiteGpus{4, 0}));
  EXPECT_EQ(outcome.jobs[1].grants.front().at, (SiteGpus{0, 4}));
  EXPECT_EQ(outcome.jobs[0].end, 290s);
  EXPECT_TRUE(outcome.jobs[1].met);
  EXPECT_FALSE(outcome.jobs[2].admitted);
  // Alone it is given both sites from the first slot on.
  const ClusterOutcome alone = play_cluster({urgent("a")}, options);
  EXPECT_EQ(alone.jobs[0].grants.front().at, (SiteGpus{4, 4}));
}

struct RandomSiteJobs {
  std::vector<ClusterJob> jobs;
  ClusterOptions settings;
};

RandomSiteJobs random_site_jobs(unsigned seed, const std::vector<int>& sites) {
  constexpr std::array kPolicies{ClusterPolicy::edf, ClusterPolicy::fifo, ClusterPolicy::srtf,
                                 ClusterPolicy::least_laxity, ClusterPolicy::elasticflow};
  std::mt19937 engine{seed};
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1));
  };
  RandomSiteJobs made{{}, over_sites(sites, kPolicies[seed % kPolicies.size()])};
  const bool largest = seed % 3 == 0 && made.settings.policy != ClusterPolicy::elasticflow;
  made.settings.counts = largest ? GpuCounts::largest : GpuCounts::best;
  for (int i = draw(2, 12); i > 0; --i) {
    ClusterJob job{std::to_string(i),
                   Duration{draw(0, 5000) * 1'000'000'000LL},
                   {},
                   static_cast<double>(draw(100, 4000)),
                   {},
                   {}};
    for (int count = draw(1, 6); count > 0; --count) {
      SiteGpus place;
      int gpus = 0;
      for (const int all : sites) gpus += place.emplace_back(draw(0, all));
      if (gpus == 0) gpus = place.front() = 1;
      if (std::ranges::find(job.places, place) != job.places.end()) continue;
      job.rates.push_back({gpus, gpus * static_cast<double>(draw(5, 10)) / 10});
      job.places.push_back(place);
    }
    if (draw(0, 1) == 1) job.deadline = job.submit + Duration{draw(100, 9000) * 1'000'000'000LL};
    made.jobs.push_back(std::move(job));
  }
  return made;
}

/// No site ever gives more GPUs than it has, and each job has a place of its own.
void expect_room(const RandomSiteJobs& made, const ClusterOutcome& outcome) {
  std::map<Duration, std::vector<std::pair<std::size_t, SiteGpus>>> changes;
  for (std::size_t i = 0; i < made.jobs.size(); ++i)
    for (const GpuGrant& grant : outcome.jobs[i].grants) {
      changes[grant.from].emplace_back(i, grant.at);
      if (grant.gpus == 0) continue;
      const auto known = std::ranges::find(made.jobs[i].places, grant.at);
      ASSERT_NE(known, made.jobs[i].places.end());
      EXPECT_EQ(
          made.jobs[i].rates[static_cast<std::size_t>(known - made.jobs[i].places.begin())].gpus,
          grant.gpus);
    }
  std::vector<SiteGpus> held(made.jobs.size());
  for (const auto& [when, grants] : changes) {
    for (const auto& [job, place] : grants) held[job] = place;
    for (std::size_t site = 0; site < made.settings.sites.size(); ++site) {
      int sum = 0;
      for (const SiteGpus& place : held) sum += place.empty() ? 0 : place[site];
      EXPECT_LE(sum, made.settings.sites[site]) << when.count();
    }
  }
}

TEST(RandomSiteJobs, NeverHoldMoreThanASiteHasNorExceedTheBounds) {
  int late = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const RandomSiteJobs made =
        random_site_jobs(seed, seed % 2 == 0 ? std::vector{8, 5, 3} : std::vector{6, 6});
    const ClusterOutcome outcome = play_cluster(made.jobs, made.settings);
    expect_room(made, outcome);
    int met = 0;
    std::vector<bool> finished;
    for (std::size_t i = 0; i < made.jobs.size(); ++i) {
      finished.push_back(outcome.jobs[i].met);
      met += made.jobs[i].deadline && outcome.jobs[i].met ? 1 : 0;
      late += outcome.jobs[i].met ? 0 : 1;
    }
    EXPECT_LE(met, most_deadlines(made.jobs, made.settings.gpus).value_or(0)) << seed;
    EXPECT_GE(outcome.makespan, least_makespan(made.jobs, finished, made.settings.gpus)) << seed;
  }
  EXPECT_GT(late, 20);
}

TEST(RandomSiteJobs, ThatElasticflowAdmitsMeetTheirDeadlines) {
  int admitted = 0, refused = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    RandomSiteJobs made =
        random_site_jobs(seed, seed % 2 == 0 ? std::vector{8, 5, 3} : std::vector{6, 6});
    made.settings.policy = ClusterPolicy::elasticflow;
    made.settings.counts = GpuCounts::best;
    const ClusterOutcome outcome = play_cluster(made.jobs, made.settings);
    expect_room(made, outcome);
    for (const JobOutcome& job : outcome.jobs) {
      EXPECT_EQ(job.admitted, job.met) << seed;
      ++(job.admitted ? admitted : refused);
    }
  }
  EXPECT_GT(admitted, 300);
  EXPECT_GT(refused, 20);
}

TEST(RandomSiteJobs, OneSiteIsThePool) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    RandomSiteJobs made = random_site_jobs(seed, {8});
    for (ClusterJob& job : made.jobs) {  // as a table has them
      std::ranges::sort(job.rates, {}, &GpuRate::gpus);
      for (std::size_t i = 0; i < job.rates.size(); ++i) job.places[i] = {job.rates[i].gpus};
    }
    const ClusterOutcome sites = play_cluster(made.jobs, made.settings);
    for (ClusterJob& job : made.jobs) job.places.clear();
    made.settings.sites.clear();
    const ClusterOutcome pool = play_cluster(made.jobs, made.settings);
    for (std::size_t i = 0; i < made.jobs.size(); ++i) {
      EXPECT_EQ(sites.jobs[i].end, pool.jobs[i].end) << seed;
      ASSERT_EQ(sites.jobs[i].grants.size(), pool.jobs[i].grants.size()) << seed;
      for (std::size_t k = 0; k < pool.jobs[i].grants.size(); ++k)
        EXPECT_EQ(sites.jobs[i].grants[k].gpus, pool.jobs[i].grants[k].gpus) << seed;
    }
  }
}

}  // namespace
}  // namespace longhaul::planner
