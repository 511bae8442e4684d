// Profiles of times that are known: those of the simulator.
#include "harness/profile/link_profile.hpp"

#include <gmock/gmock.h>

#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr ProfileSource kEmulated{engine::Emulation::on, Bytes{64 << 10}};

/// Links that differ by direction, stages that differ, two replicas.
Scenario uneven_scenario() {
  Scenario scenario = uniform_scenario(4, 8, 10ms);
  scenario.costs.forward = {10ms, 11ms, 12ms, 13ms};
  scenario.costs.dgrad = {9ms, 8ms, 7ms, 6ms};
  scenario = spread(std::move(scenario), 2, 20ms, 4ms);
  scenario.links[0].latency = 23ms;
  scenario.links[1].bandwidth = Bandwidth{1e9};
  return scenario;
}

Profile simulated_profile(const std::string& schedule, const Scenario& scenario) {
  const Plan plan = plan::lower(schedule::generate(schedule, scenario), scenario);
  return profile_of(plan, sim::simulate(plan), scenario, kEmulated);
}

TEST(LinkProfile, FindsWhatWasPlayed) {
  const Scenario scenario = uneven_scenario();
  for (const char* name : {"1f1b", "zb-h1", "zbv", "interleaved-1f1b"}) {
    const Profile profile = simulated_profile(name, scenario);
    ASSERT_EQ(profile.links.size(), 2u) << name;
    for (std::size_t i = 0; i < 2; ++i) {
      const Link& link = scenario.links[i];
      EXPECT_EQ(profile.links[i].latency, link.latency) << name;
      EXPECT_EQ(profile.links[i].transfer, 1_MiB / link.bandwidth) << name;
      EXPECT_NEAR(profile.links[i].rate.bits_per_second(), link.bandwidth.bits_per_second(),
                  link.bandwidth.bits_per_second() * 1e-6)
          << name << ": transfers are rounded to a nanosecond";
    }
    for (std::size_t device = 0; device < 4; ++device)
      EXPECT_EQ(profile.blocks[0][device], scenario.costs.forward[device]) << name;
    EXPECT_LT(largest_deviation(profile, scenario).ratio, 1e-6) << name;
  }
}

/// A believer in the wrong links and costs holds the right ones afterwards: the same schedule has
/// the same makespan on both.
TEST(LinkProfile, TurnsAWrongBeliefIntoTheTruth) {
  const Scenario truth = uneven_scenario();
  Scenario believed = spread(uniform_scenario(4, 8, 10ms), 2, 5ms, 1ms);
  const Profile profile = simulated_profile("zb-h1", truth);
  EXPECT_GT(largest_deviation(profile, believed).ratio, 0.5);
  const Scenario learned = with_profile(believed, profile);
  EXPECT_LT(largest_deviation(profile, learned).ratio, 1e-6);
  for (const char* name : {"zb-h1", "zb-h2"}) {
    const OpTimes there = sim::simulate(plan::lower(schedule::generate(name, truth), truth));
    const OpTimes here = sim::simulate(plan::lower(schedule::generate(name, learned), learned));
    for (std::size_t i = 0; i < there.size(); ++i)
      EXPECT_NEAR(static_cast<double>(here[i].end.count()),
                  static_cast<double>(there[i].end.count()), 100)
          << name;
  }
}

/// 1F1B shows no D and no W: they are taken to be as much slower as what it shows.
TEST(LinkProfile, ScalesKindsThatItDoesNotShow) {
  const Scenario believed = uniform_scenario(2, 4, 10ms);
  Scenario truth = believed;
  truth.costs.forward[1] = 20ms;
  truth.costs.backward[1] = 40ms;
  const Scenario learned = with_profile(believed, simulated_profile("1f1b", truth));
  EXPECT_EQ(learned.costs.forward, truth.costs.forward);
  EXPECT_EQ(learned.costs.backward, truth.costs.backward);
  EXPECT_EQ(learned.costs.dgrad, (std::vector<Duration>{10ms, 20ms}));
  EXPECT_EQ(learned.costs.wgrad, (std::vector<Duration>{10ms, 20ms}));
}

/// Lateness of the host at either end, of less than a quarter of the messages, leaves no trace.
TEST(LinkProfile, SomeLateMessagesDoNotMatter) {
  const Scenario scenario = uneven_scenario();
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  OpTimes times = sim::simulate(plan);
  int messages = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::send || messages++ % 5 != 0) continue;
    times[i].end += 3ms;
    times[plan.ops[i].match].end += 7ms;
  }
  EXPECT_LT(largest_deviation(profile_of(plan, times, scenario, kEmulated), scenario).ratio, 1e-6);
}

/// Without emulation a receive lasts from header to payload, and only so many bytes were sent.
TEST(LinkProfile, ReadsTheNetworkAsItIs) {
  const Scenario scenario = spread(uniform_scenario(2, 4, 10ms), 2, 20ms, 4ms);
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  OpTimes times = sim::simulate(plan);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::recv) continue;
    times[i].start = times[i].end - 500us;                                 // 64 KiB in 0.5 ms
    times[plan.ops[i].match].end = times[plan.ops[i].match].start + 10us;  // the copy was taken
  }
  const Profile profile =
      profile_of(plan, times, scenario, {engine::Emulation::off, Bytes{64 << 10}});
  ASSERT_EQ(profile.links.size(), 2u);
  for (const LinkEstimate& link : profile.links) {
    EXPECT_EQ(link.latency, 24ms - 500us);
    EXPECT_DOUBLE_EQ(link.rate.bits_per_second(), 65536 * 8 / 500e-6);
  }
}

/// As `best` mixes them: where D and W run as one B for a few microbatches of one chunk.
TEST(LinkProfile, TakesAKindOnlyFromEnoughBlocks) {
  const Scenario scenario = uniform_scenario(2, 8, 10ms);
  Schedule schedule = schedule::generate("zbv", scenario);
  const int chunk = chunks_on(schedule, DeviceId{0}).front();
  const auto fuse = [&](int microbatches) {
    std::erase_if(schedule.rows[0], [&](const Block& block) {
      return block.kind == BlockKind::W && block.chunk == chunk && block.microbatch < microbatches;
    });
    for (Block& block : schedule.rows[0])
      if (block.kind == BlockKind::D && block.chunk == chunk && block.microbatch < microbatches)
        block.kind = BlockKind::B;
    const Plan plan = plan::lower(schedule, scenario);
    return profile_of(plan, sim::simulate(plan), scenario, kEmulated);
  };
  EXPECT_EQ(fuse(2).blocks[1][0], std::nullopt) << "two blocks are too few";
  EXPECT_EQ(fuse(4).blocks[1][0], Duration{20ms}) << "one of two chunks, of which each has half";
}

TEST(LinkProfile, NamesWhatDeviatesMost) {
  const Scenario believed = spread(uniform_scenario(4, 8, 10ms), 2, 20ms, 5ms);
  Scenario truth = believed;
  truth.links[1].latency = 60ms;
  truth.costs.wgrad[2] = 15ms;
  const Profile profile = simulated_profile("zb-h1", truth);
  const Deviation link = largest_deviation(profile, believed);
  EXPECT_DOUBLE_EQ(link.ratio, 40.0 / 25.0) << "of latency and transfer together";
  EXPECT_THAT(link.what, HasSubstr("link dc1>dc0: latency 60 ms, believed 20 ms"));
  Scenario same_links = truth;
  same_links.costs = believed.costs;
  const Deviation block = largest_deviation(profile, same_links);
  EXPECT_DOUBLE_EQ(block.ratio, 0.5);
  EXPECT_THAT(block.what, HasSubstr("W on device 2: 15 ms, believed 10 ms"));
}

}  // namespace
}  // namespace longhaul::harness
