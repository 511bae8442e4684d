// Random plans with all that plan/extras/ has, held against a simulator written from the rules that
// looks at every op at every instant.
#include "support/event_plans.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/check_extras.hpp"
#include "plan/rewrite/draft.hpp"
#include "sim/simulate.hpp"
#include "support/event_by_event.hpp"

namespace longhaul {
namespace {

using testing::EventFeatures;
using testing::RandomEventPlan;

struct Seen {
  int plans = 0, stuck = 0, skipped = 0, late = 0, undrawn = 0, met = 0;
};

/// Plans each seed with these features, where it is sound, and compares. Streams go on with
/// iteration `first`.
Seen compare(std::uint64_t first_seed, int seeds, const EventFeatures& features, int first = 0) {
  Seen seen;
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(seeds);
       ++seed) {
    RandomEventPlan random{seed, features};
    random.stream.first = std::min(first, random.stream.iterations - 1);
    if (plan::why_unsound(random.plan, random.stream)) continue;
    const auto expected = testing::EventByEvent{random.plan, random.stream}.run();
    if (!expected) {  // a lane whose source drew an optional op, which waits for its iteration to
                      // begin
      EXPECT_THROW(sim::simulate_stream(random.plan, random.stream, [](const auto&) {}), Error);
      ++seen.stuck;
      continue;
    }
    ++seen.plans;
    auto handed = static_cast<std::size_t>(random.stream.first);
    sim::simulate_stream(random.plan, random.stream, [&](const sim::StreamedIteration& done) {
      const OpResults& rule = (*expected)[handed++];
      for (std::size_t i = 0; i < rule.times.size(); ++i) {
        const OpTime& own = done.results.times[i];
        const Outcome outcome =
            done.results.outcomes.empty() ? Outcome::ran : done.results.outcomes[i];
        const int version = done.results.versions.empty() ? -1 : done.results.versions[i];
        const auto row = [&](const OpTime& time, Outcome of, int met) {
          return fmt::format("ready {} start {} end {} {} version {}", time.ready.count(),
                             time.start.count(), time.end.count(), to_string(of), met);
        };
        EXPECT_EQ(row(own, outcome, version),
                  row(rule.times[i], rule.outcomes[i], rule.versions[i]))
            << "seed " << seed << " iteration " << done.iteration << " op " << i << " on lane "
            << random.plan.lane_of(OpId{static_cast<std::uint32_t>(i)}).name;
        seen.skipped += outcome == Outcome::skipped ? 1 : 0;
        seen.late += outcome == Outcome::late ? 1 : 0;
        seen.undrawn += outcome == Outcome::undrawn ? 1 : 0;
        seen.met += version >= 0 ? 1 : 0;
      }
    });
    EXPECT_EQ(handed, expected->size());
    if (::testing::Test::HasFailure()) return seen;
  }
  return seen;
}

EventFeatures none() { return {false, false, false, false, false, false, 1}; }

TEST(EventPlans, PlainOnesEqualTheRules) { EXPECT_EQ(compare(1, 300, none()).plans, 300); }

TEST(EventPlans, WithCollectivesThatAreOneOp) {
  EventFeatures features = none();
  features.collectives = true;
  EXPECT_EQ(compare(1000, 300, features).plans, 300);
}

TEST(EventPlans, LanesAndLinksThatChoose) {
  EventFeatures features = none();
  features.choosing = true;
  EXPECT_GT(compare(2000, 400, features).plans, 300);
}

TEST(EventPlans, MessagesInSlices) {
  EventFeatures features = none();
  features.choosing = features.windows = features.slices = true;
  features.iterations = 3;
  EXPECT_GT(compare(13'000, 400, features).plans, 300);
}

TEST(EventPlans, OptionalOps) {
  EventFeatures features = none();
  features.windows = features.collectives = true;
  const Seen seen = compare(3000, 400, features);
  EXPECT_GT(seen.plans, 300);
  EXPECT_GT(seen.skipped, 100);
}

TEST(EventPlans, StreamsWithDependenciesThatReachBack) {
  EventFeatures features = none();
  features.far = features.collectives = true;
  features.iterations = 5;
  const Seen seen = compare(4000, 400, features);
  EXPECT_EQ(seen.plans, 400);
  EXPECT_GT(seen.met, 100);
}

TEST(EventPlans, Sources) {
  EventFeatures features = none();
  features.sources = true;
  features.iterations = 3;
  const Seen seen = compare(5000, 400, features);
  EXPECT_GT(seen.plans, 300);
  EXPECT_GT(seen.undrawn, 100);
  EXPECT_EQ(seen.stuck, 0);
}

TEST(EventPlans, ComputationThatSlows) {
  EventFeatures features = none();
  features.overlap = features.choosing = true;
  EXPECT_GT(compare(6000, 400, features).plans, 300);
}

// A source waits for an end while a block beside a message is due at a time that no longer holds.
TEST(EventPlans, SourcesBesideComputationThatSlows) {
  EventFeatures features = none();
  features.sources = features.overlap = features.far = true;
  features.iterations = 5;
  const Seen seen = compare(25'000, 600, features);
  EXPECT_GT(seen.plans, 300);
  EXPECT_GT(seen.undrawn, 100);
}

TEST(EventPlans, StreamsThatGoOn) {
  EventFeatures features;
  features.iterations = 5;
  const Seen seen = compare(11'000, 400, features, 2);
  EXPECT_GT(seen.plans, 200);
  for (const int count : {seen.skipped, seen.undrawn, seen.met}) EXPECT_GT(count, 0);
}

TEST(EventPlans, AllAtOnce) {
  const Seen seen = compare(10'000, 800, {});
  EXPECT_GT(seen.plans, 400);
  EXPECT_LT(seen.stuck, 10);
  for (const int count : {seen.skipped, seen.late, seen.undrawn, seen.met}) EXPECT_GT(count, 0);
}

// The same plan with the optional op's window closed from the start: it and what needs it are gone,
// and no other op is at another time.
TEST(EventPlans, AnOptionalOpThatDoesNotRunChangesNoOther) {
  EventFeatures features;
  features.sources = false;
  int closed = 0;
  for (std::uint64_t seed = 20'000; seed < 20'400; ++seed) {
    RandomEventPlan random{seed, features};
    random.stream.iterations = 1;
    random.stream.settings.clear();
    if (random.plan.extras.windows.empty() || plan::why_unsound(random.plan)) continue;
    const OpResults all = sim::simulate_results(random.plan);
    if (all.outcomes.empty()) continue;
    Plan without = random.plan;
    std::vector<std::uint8_t> gone(without.ops.size(), 0);
    for (plan::OpWindow& window : without.extras.windows) {
      if (all.outcomes[index(window.op)] != Outcome::skipped) continue;
      window = {window.op, Duration{0}, Duration{0}};
      without.ops[index(window.op)].duration = Duration{1};
    }
    const OpResults rest = sim::simulate_results(without);
    for (std::size_t i = 0; i < rest.times.size(); ++i) {
      EXPECT_EQ(rest.outcomes[i], all.outcomes[i]) << "seed " << seed << " op " << i;
      EXPECT_EQ(rest.times[i].start, all.times[i].start) << "seed " << seed << " op " << i;
      EXPECT_EQ(rest.times[i].end, all.times[i].end) << "seed " << seed << " op " << i;
    }
    ++closed;
  }
  EXPECT_GT(closed, 50);
}

/// The plan without these ops; its others keep their order.
Plan without_ops(const Plan& plan, const std::vector<Outcome>& outcomes) {
  plan::Draft draft = plan::thaw(plan);
  std::vector<bool> gone(plan.ops.size(), false);
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (outcomes[i] != Outcome::skipped || gone[i]) continue;
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::send || op.kind == OpKind::recv) gone[op.match] = true;
    draft.remove(plan::Draft::Handle{i});
  }
  return plan::freeze(draft);
}

// Stronger: the plan that never had those ops. Without dependencies that reach back: what waits for
// an optional op of an earlier iteration may be passed in all iterations.
TEST(EventPlans, WhatDoesNotRunMightAsWellNotBeThere) {
  EventFeatures features;
  features.sources = features.far = false;
  int removed = 0;
  for (std::uint64_t seed = 50'000; seed < 50'600; ++seed) {
    SCOPED_TRACE(seed);
    const RandomEventPlan random{seed, features};
    if (random.plan.extras.windows.empty() || plan::why_unsound(random.plan)) continue;
    const OpResults all = sim::simulate_results(random.plan);
    if (all.outcomes.empty()) continue;
    const Plan rest = without_ops(random.plan, all.outcomes);
    const OpTimes times = sim::simulate(rest);
    std::size_t place = 0;
    for (std::size_t i = 0; i < all.times.size(); ++i) {
      if (all.outcomes[i] == Outcome::skipped) continue;
      ASSERT_EQ(rest.ops[place].kind, random.plan.ops[i].kind);
      EXPECT_EQ(times[place].start, all.times[i].start) << "op " << i;
      EXPECT_EQ(times[place].end, all.times[i].end) << "op " << i;
      ++place;
    }
    EXPECT_EQ(place, rest.ops.size());
    removed += static_cast<int>(all.times.size() - place);
    if (HasFailure()) return;
  }
  EXPECT_GT(removed, 200);
}

/// Each op of an iteration waits for all of the one before.
void wait_for_iterations(Plan& plan) {
  for (std::uint32_t op = 0; op < plan.ops.size(); ++op)
    for (std::uint32_t before = 0; before < plan.ops.size(); ++before)
      plan.extras.far.push_back({OpId{op}, OpId{before}, 1});
}

// Where nothing of an iteration begins before the one ahead is over, a stream that was cut there
// takes the same times from there on, meets the same versions and heeds the same settings.
TEST(EventPlans, AStreamThatGoesOnEqualsOneThatWasNotCut) {
  EventFeatures features;
  features.windows = features.sources = false;
  features.iterations = 5;
  int compared = 0;
  for (std::uint64_t seed = 40'000; seed < 40'300; ++seed) {
    SCOPED_TRACE(seed);
    RandomEventPlan random{seed, features};
    wait_for_iterations(random.plan);
    if (plan::why_unsound(random.plan, random.stream)) continue;
    std::vector<OpResults> whole;
    sim::simulate_stream(random.plan, random.stream, [&](const sim::StreamedIteration& done) {
      whole.push_back(done.results);
    });
    for (int first = 1; first < random.stream.iterations; ++first) {
      const OpTimes& before = whole[static_cast<std::size_t>(first - 1)].times;
      const Duration begin = std::ranges::max(before, {}, &OpTime::end).end;
      plan::Stream rest = random.stream;
      rest.first = first;
      sim::simulate_stream(random.plan, rest, [&](const sim::StreamedIteration& done) {
        const OpResults& uncut = whole[static_cast<std::size_t>(done.iteration)];
        EXPECT_EQ(done.results.versions, uncut.versions);
        for (std::size_t i = 0; i < uncut.times.size(); ++i) {
          EXPECT_EQ(begin + done.results.times[i].start, uncut.times[i].start) << "op " << i;
          EXPECT_EQ(begin + done.results.times[i].end, uncut.times[i].end) << "op " << i;
        }
        ++compared;
      });
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 500);
}

TEST(EventPlans, AStreamOfOneIterationIsThePlan) {
  int compared = 0;
  for (std::uint64_t seed = 30'000; seed < 30'200; ++seed) {
    const RandomEventPlan random{seed, {}};
    if (plan::why_unsound(random.plan)) continue;
    const Result<OpResults> plan = sim::simulate_in_order_of_time(random.plan);
    if (!plan) continue;
    ++compared;
    sim::simulate_stream(random.plan, {}, [&](const sim::StreamedIteration& done) {
      for (std::size_t i = 0; i < plan->times.size(); ++i) {
        EXPECT_EQ(done.results.times[i].start, plan->times[i].start);
        EXPECT_EQ(done.results.times[i].end, plan->times[i].end);
      }
    });
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace longhaul
