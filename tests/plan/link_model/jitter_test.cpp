#include "plan/link_model/jitter.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"

namespace longhaul::plan {
namespace {

constexpr int kDraws = 20'000;

Link link_with(Jitter jitter) {
  Link link;
  link.to = DatacenterId{1};
  link.jitter = jitter;
  return link;
}

Block forward(int microbatch) { return {BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{microbatch}}; }

struct Moments {
  double mean = 0;
  double spread = 0;  ///< standard deviation over mean
};

Moments moments(const std::function<double(int)>& draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = draw(i);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean) / mean};
}

TEST(LinkJitter, KeepsTheMeanAndHasTheSpread) {
  for (const double spread : {0.05, 0.2, 0.5, 1.0}) {
    const LinkJitter jitter{link_with({spread, spread / 2, 0}), 1};
    const Moments latency =
        moments([&](int i) { return jitter.of(0, Rank{0}, Rank{1}, forward(i)).latency; });
    const Moments transfer =
        moments([&](int i) { return jitter.of(0, Rank{0}, Rank{1}, forward(i)).transfer; });
    // Three standard errors of a mean; tails are cut at six deviations of the logarithm.
    EXPECT_NEAR(latency.mean, 1, 3 * spread / std::sqrt(kDraws)) << spread;
    EXPECT_NEAR(latency.spread, spread, 0.05 * spread) << spread;
    EXPECT_NEAR(transfer.mean, 1, 3 * spread / std::sqrt(kDraws)) << spread;
    EXPECT_NEAR(transfer.spread, spread / 2, 0.05 * spread) << spread;
  }
}

TEST(LinkJitter, IsThatOfALogNormalVariable) {
  // Half of a log-normal variable of spread 0.5 lies below its mean over sqrt(1.25).
  const LinkJitter jitter{link_with({0.5, 0, 0}), 1};
  const Moments below = moments([&](int i) {
    const double factor = jitter.of(0, Rank{0}, Rank{1}, forward(i)).latency;
    return factor < 1 / std::sqrt(1.25) ? 1.0 : 0.0;
  });
  EXPECT_NEAR(below.mean, 0.5, 0.011);
}

TEST(LinkJitter, FollowsFromItsArgumentsAlone) {
  const Link link = link_with({0.3, 0.3, 0.2});
  const LinkJitter jitter{link, 7};
  const JitterFactors first = jitter.of(3, Rank{1}, Rank{2}, forward(5));
  EXPECT_EQ(LinkJitter(link, 7).of(3, Rank{1}, Rank{2}, forward(5)).latency, first.latency);
  EXPECT_NE(first.latency, first.transfer);
  Link back = link;
  std::swap(back.from, back.to);
  const Block gradient{BlockKind::D, 0, 1, ChunkId{0}, MicrobatchId{5}};
  for (const JitterFactors& other :
       {LinkJitter(link, 8).of(3, Rank{1}, Rank{2}, forward(5)),
        LinkJitter(back, 7).of(3, Rank{1}, Rank{2}, forward(5)),
        jitter.of(2, Rank{1}, Rank{2}, forward(5)), jitter.of(3, Rank{2}, Rank{1}, forward(5)),
        jitter.of(3, Rank{1}, Rank{2}, forward(4)), jitter.of(3, Rank{1}, Rank{2}, gradient)})
    EXPECT_NE(other.latency, first.latency);
  // A whole backward sends the same gradient as a split one.
  const Block whole{BlockKind::B, 0, 1, ChunkId{0}, MicrobatchId{5}};
  EXPECT_EQ(jitter.of(3, Rank{1}, Rank{2}, gradient).latency,
            jitter.of(3, Rank{1}, Rank{2}, whole).latency);
}

TEST(LinkJitter, CorrelatedMessagesShareTheirIteration) {
  const LinkJitter link{link_with({0.5, 0.5, 1}), 1};
  const JitterFactors first = link.of(0, Rank{0}, Rank{1}, forward(0));
  EXPECT_EQ(link.of(0, Rank{0}, Rank{1}, forward(9)).latency, first.latency);
  EXPECT_EQ(link.of(0, Rank{4}, Rank{7}, forward(9)).transfer, first.transfer);
  EXPECT_NE(link.of(1, Rank{0}, Rank{1}, forward(0)).latency, first.latency);
  const Moments over_iterations = moments([&](int i) {
    return link.of(static_cast<std::uint64_t>(i), Rank{0}, Rank{1}, forward(0)).latency;
  });
  EXPECT_NEAR(over_iterations.mean, 1, 0.011);
  EXPECT_NEAR(over_iterations.spread, 0.5, 0.025);
  // Of correlation c the spread within an iteration is what 1 - c leaves of sigma^2.
  const LinkJitter partly{link_with({0.5, 0, 0.75}), 1};
  const Moments within =
      moments([&](int i) { return partly.of(0, Rank{0}, Rank{1}, forward(i)).latency; });
  EXPECT_NEAR(within.spread, std::sqrt(std::exp(std::log(1.25) / 4) - 1), 0.012);
}

/// Factors of one message over many iterations.
Moments latencies(const Jitter& jitter) {
  const LinkJitter link{link_with(jitter), 1};
  return moments([&](int i) {
    return link.of(static_cast<std::uint64_t>(i), Rank{0}, Rank{1}, forward(0)).latency;
  });
}

TEST(LinkJitter, OfEveryKindKeepsTheMeanAndHasTheSpread) {
  for (const JitterKind kind : {JitterKind::uniform, JitterKind::exponential, JitterKind::normal}) {
    for (const double correlation : {0.0, 0.5, 1.0}) {
      const Moments found = latencies({0.3, 0, correlation, kind, {}});
      EXPECT_NEAR(found.mean, 1, 3 * 0.3 / std::sqrt(kDraws));
      EXPECT_NEAR(found.spread, 0.3, 0.012) << static_cast<int>(kind);
    }
  }
}

TEST(LinkJitter, OfEachKindStaysInItsRange) {
  const auto range = [](JitterKind kind, double spread) {
    const LinkJitter link{link_with({0, spread, 0.5, kind, {}}), 1};
    std::pair<double, double> ends{1, 1};
    for (int i = 0; i < kDraws; ++i) {
      const double factor = link.of(3, Rank{0}, Rank{1}, forward(i)).transfer;
      ends = {std::min(ends.first, factor), std::max(ends.second, factor)};
    }
    return ends;
  };
  const auto [low, high] = range(JitterKind::uniform, 0.5);
  EXPECT_GE(low, 1 - std::sqrt(3) / 2);
  EXPECT_LT(low, 0.15);
  EXPECT_LE(high, 1 + std::sqrt(3) / 2);
  const auto [floor, tail] = range(JitterKind::exponential, 0.25);
  EXPECT_GE(floor, 0.75);
  EXPECT_LT(floor, 0.751);
  EXPECT_GT(tail, 2.5);
  const auto [cut_low, cut_high] = range(JitterKind::normal, 0.5);
  EXPECT_GE(cut_low, 0);
  EXPECT_LT(cut_low, 0.02);
  EXPECT_LE(cut_high, 2);
}

TEST(LinkJitter, OfEveryKindIsCorrelatedAsStated) {
  for (const JitterKind kind : {JitterKind::uniform, JitterKind::exponential, JitterKind::normal}) {
    const LinkJitter link{link_with({0.3, 0, 0.5, kind, {}}), 1};
    double product = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto at = [&](int microbatch) {
        return link.of(static_cast<std::uint64_t>(i), Rank{0}, Rank{1}, forward(microbatch))
                   .latency -
               1;
      };
      product += at(0) * at(1);
    }
    EXPECT_NEAR(product / kDraws / 0.09, 0.5, 0.05) << static_cast<int>(kind);
  }
}

TEST(LinkJitter, TakesItsOwnSeedBeforeTheRuns) {
  const auto factor = [](std::optional<std::uint64_t> own, std::uint64_t of_run) {
    return LinkJitter{link_with({0.3, 0, 0, JitterKind::lognormal, own}), of_run}
        .of(0, Rank{0}, Rank{1}, forward(0))
        .latency;
  };
  EXPECT_EQ(factor(7, 1), factor(7, 2));
  EXPECT_EQ(factor(7, 1), factor({}, 7));
  EXPECT_NE(factor({}, 1), factor({}, 2));
}

TEST(JitteredPlan, ChangesMessagesOfLinksWithJitterAlone) {
  Scenario scenario = spread(uniform_scenario(4, 3), 2, 1ms, 2ms);
  const Plan plain = lower(schedule::generate("1f1b", scenario), scenario);
  JitteredPlan same{plain, scenario};
  for (std::size_t i = 0; i < plain.ops.size(); ++i)
    EXPECT_EQ(same.in(1).ops[i].duration, plain.ops[i].duration);

  scenario.links[0].jitter = {0.2, 0.4, 0};  // west to east
  JitteredPlan jittered{plain, scenario};
  const LinkJitter link{scenario.links[0], scenario.run.seed};
  const OpId send = testing::find(plain, 1, OpKind::send, BlockKind::F, 2);
  const OpId recv = testing::find(plain, 2, OpKind::recv, BlockKind::F, 2);
  for (const std::uint64_t iteration : {0U, 1U, 0U}) {  // going back gives the same again
    const Plan& plan = jittered.in(iteration);
    const JitterFactors factors = link.of(iteration, Rank{1}, Rank{2}, plain.op(send).block());
    EXPECT_EQ(plan.op(send).duration, scaled(2ms, factors.transfer));
    EXPECT_EQ(plan.op(recv).duration, scaled(1ms, factors.latency));
    int changed = 0;
    for (std::size_t i = 0; i < plain.ops.size(); ++i)
      changed += plan.ops[i].duration != plain.ops[i].duration;
    EXPECT_EQ(changed, 6);  // three activations cross, each with a send and a receive
  }
}

}  // namespace
}  // namespace longhaul::plan
