// Random plans with what plan/extras/ has: ranks play them, alone and as streams, in the times,
// with the outcomes and with the versions that the simulator gives.
#include "support/event_plans.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/check_extras.hpp"
#include "played_plan.hpp"
#include "sim/simulate.hpp"
#include "support/optional_ops.hpp"

namespace longhaul {
namespace {

using testing::EventFeatures;
using testing::RandomEventPlan;

struct Compared {
  int plans = 0, ops = 0, skipped = 0, undrawn = 0, met = 0;
};

std::string row(const OpTime& time, Outcome outcome, int version) {
  return fmt::format("ready {} start {} end {} {} version {}", time.ready.count(),
                     time.start.count(), time.end.count(), to_string(outcome), version);
}

/// False where some op differs.
bool equal(const RandomEventPlan& random, const testing::PlayedStream& played,
           const sim::StreamedIteration& done, Compared& seen) {
  const OpResults& own = played.iterations[static_cast<std::size_t>(done.iteration)];
  const OpResults& simulated = done.results;
  for (std::size_t i = 0; i < own.times.size(); ++i) {
    const Outcome outcome = simulated.outcomes.empty() ? Outcome::ran : simulated.outcomes[i];
    const int version = simulated.versions.empty() ? -1 : simulated.versions[i];
    const std::string got = row(own.times[i], own.outcomes[i], own.versions[i]);
    const std::string want = row(simulated.times[i], outcome, version);
    EXPECT_EQ(got, want) << "iteration " << done.iteration << " op " << i << " on lane "
                         << random.plan.lane_of(OpId{static_cast<std::uint32_t>(i)}).name;
    if (got != want) return false;
    ++seen.ops;
    seen.skipped += outcome == Outcome::skipped ? 1 : 0;
    seen.undrawn += outcome == Outcome::undrawn ? 1 : 0;
    seen.met += version >= 0 ? 1 : 0;
  }
  return true;
}

/// A lane whose source drew an optional op that waits for its iteration to begin may wait forever.
bool simulates(const RandomEventPlan& random) {
  try {
    sim::simulate_stream(random.plan, random.stream, [](const sim::StreamedIteration&) {});
  } catch (const Error&) {
    return false;
  }
  return true;
}

Compared compare(std::uint64_t first_seed, int seeds, const EventFeatures& features,
                 int ranks_per_host = 0, int first = 0,
                 const std::function<void(Plan&)>& change = {}) {
  Compared seen;
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(seeds);
       ++seed) {
    SCOPED_TRACE(seed);
    RandomEventPlan random{seed, features};
    if (change) change(random.plan);
    random.stream.first = std::min(first, random.stream.iterations - 1);
    if (plan::why_unsound(random.plan, random.stream)) continue;
    testing::VirtualRun run;
    run.order_seed = seed % 2 == 0 ? seed : 0;
    run.ranks_per_host = ranks_per_host;
    if (!simulates(random)) continue;
    ++seen.plans;
    const auto played = testing::play_stream(random.plan, random.stream, run);
    sim::simulate_stream(random.plan, random.stream, [&](const sim::StreamedIteration& done) {
      if (!::testing::Test::HasFailure()) (void)equal(random, played, done, seen);
    });
    if (::testing::Test::HasFailure()) return seen;
  }
  return seen;
}

EventFeatures none() { return {false, false, false, false, false, false, 1}; }

TEST(PlayedEventPlans, SeveralLanesOfARank) { EXPECT_EQ(compare(1, 200, none()).plans, 200); }

TEST(PlayedEventPlans, LanesAndLinksThatChoose) {
  EventFeatures features = none();
  features.choosing = true;
  EXPECT_GT(compare(2000, 200, features).plans, 150);
}

TEST(PlayedEventPlans, MessagesInSlices) {
  EventFeatures features = none();
  features.choosing = features.windows = features.slices = true;
  features.iterations = 3;
  EXPECT_GT(compare(13'000, 200, features).plans, 150);
}

TEST(PlayedEventPlans, OptionalOps) {
  EventFeatures features = none();
  features.windows = true;
  const Compared seen = compare(3000, 200, features);
  EXPECT_GT(seen.plans, 150);
  EXPECT_GT(seen.skipped, 50);
}

TEST(PlayedEventPlans, StreamsWithDependenciesThatReachBack) {
  EventFeatures features = none();
  features.far = true;
  features.iterations = 5;
  const Compared seen = compare(4000, 200, features);
  EXPECT_EQ(seen.plans, 200);
  EXPECT_GT(seen.met, 50);
}

TEST(PlayedEventPlans, ChoicesWindowsAndStreamsTogether) {
  EventFeatures features = none();
  features.choosing = features.windows = features.far = true;
  features.iterations = 4;
  const Compared seen = compare(5000, 300, features);
  EXPECT_GT(seen.plans, 200);
  EXPECT_GT(seen.skipped, 50);
  EXPECT_GT(seen.met, 50);
}

// It does not wait for the end of the other op that it needs, which is on another rank.
TEST(PlayedEventPlans, WhatNeedsASkippedOpIsSkippedAtOnce) {
  const testing::NeedsASkippedOp ranks;
  const OpResults played = testing::play_stream(ranks.plan, {}).iterations.front();
  EXPECT_EQ(played.outcomes[index(ranks.first)], Outcome::skipped);
  EXPECT_EQ(played.times[index(ranks.second)].start, Duration{0});
}

TEST(PlayedEventPlans, ADeadlineMovesWithWhatHasHappened) {
  using testing::MovingDeadline;
  const auto outcome = [](Duration takes, MovingDeadline::Deadline how) {
    const MovingDeadline ranks{7ms, takes, how};
    const OpResults played = testing::play_stream(ranks.plan, {}).iterations.front();
    EXPECT_EQ(played.times[index(ranks.closes)].start, Duration{13ms});
    return played.outcomes[index(ranks.optional)];
  };
  EXPECT_EQ(outcome(5ms, MovingDeadline::Deadline::moves), Outcome::ran);
  EXPECT_EQ(outcome(6ms, MovingDeadline::Deadline::moves), Outcome::skipped);
  EXPECT_EQ(outcome(5ms, MovingDeadline::Deadline::stays), Outcome::skipped);
}

/// Later by a time for each end that it has heard of: who has heard of another number says another
/// one.
class LaterByEnds : public plan::DeadlineSource {
public:
  Duration deadline(OpId, Duration planned, Duration, const plan::PastEvents& past) override {
    heard_ += std::ssize(past.ended());
    return planned + Duration{heard_};
  }

private:
  std::int64_t heard_ = 0;
};

TEST(PlayedEventPlans, DeadlinesThatMove) {
  EventFeatures features = none();
  features.windows = true;
  const Compared stay = compare(14'000, 200, features);
  const auto move = [](Plan& plan) {
    for (std::uint32_t i = 0; i < plan.ops.size(); i += 2)
      plan.extras.deadlines.heeds.push_back(OpId{i});
    plan.extras.deadlines.make = [] { return std::make_unique<LaterByEnds>(); };
  };
  const Compared moved = compare(14'000, 200, features, 0, 0, move);
  EXPECT_GT(moved.plans, 150);
  EXPECT_GT(moved.skipped, 20);
  EXPECT_LT(moved.skipped, stay.skipped) << "some fit then";
  features.choosing = features.far = true;
  features.iterations = 4;
  EXPECT_GT(compare(15'000, 200, features, 0, 0, move).skipped, 20);
}

TEST(PlayedEventPlans, StreamsThatGoOn) {
  EventFeatures features = none();
  features.choosing = features.windows = features.far = features.sources = true;
  features.iterations = 5;
  const Compared seen = compare(12'000, 200, features, 0, 2);
  EXPECT_GT(seen.plans, 100);
  EXPECT_GT(seen.skipped, 25);
  EXPECT_GT(seen.met, 25);
}

TEST(PlayedEventPlans, Sources) {
  EventFeatures features = none();
  features.sources = true;
  features.iterations = 3;
  const Compared seen = compare(7000, 200, features);
  EXPECT_GT(seen.plans, 150);
  EXPECT_GT(seen.undrawn, 50);
}

TEST(PlayedEventPlans, AllAtOnce) {
  EventFeatures features;
  features.overlap = features.collectives = false;
  const Compared seen = compare(8000, 300, features);
  EXPECT_GT(seen.plans, 150);
  for (const int count : {seen.skipped, seen.undrawn, seen.met}) EXPECT_GT(count, 0);
}

// What they tell each other goes by messages.
TEST(PlayedEventPlans, OnSeveralHosts) {
  EventFeatures features = none();
  features.choosing = features.windows = features.far = true;
  features.iterations = 4;
  const Compared seen = compare(6000, 150, features, 1);
  EXPECT_GT(seen.plans, 100);
  EXPECT_GT(seen.met, 25);
}

}  // namespace
}  // namespace longhaul
