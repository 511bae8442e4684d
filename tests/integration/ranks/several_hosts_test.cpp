// Several hosts, pretended on one machine: no doorbells between them, but polling.
#include "base/error.hpp"
#include "comm/group/clock_sync.hpp"
#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "harness/profile/plan_builder.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using harness::PlanBuilder;

class SeveralHosts : public OnRanks {
protected:
  /// Two hosts of half the ranks each.
  static int half() { return (ranks().count() + 1) / 2; }
};

RANKS_TEST(SeveralHosts, AreToldApart) {
  NEEDS_RANKS(2);
  const comm::HostRanks host_ranks{ranks().world(), half()};
  EXPECT_FALSE(host_ranks.all_local());
  EXPECT_TRUE(host_ranks.is_local(ranks().self()));
  EXPECT_EQ(host_ranks.host_of(Rank{0}), Rank{0});
  EXPECT_EQ(host_ranks.host_of(Rank{ranks().count() - 1}), Rank{half()});
  EXPECT_EQ(host_ranks.is_local(Rank{0}), self() < half());
}

RANKS_TEST(SeveralHosts, ExchangeMessagesAndCollectivesWithoutDoorbells) {
  NEEDS_RANKS(2);
  engine::Ranks apart{engine::WatchdogOptions{60s}, half()};
  harness::PlanBuilder b{"apart", apart.count()};
  std::vector<int> members;
  for (int rank = 0; rank < apart.count(); ++rank) {
    members.push_back(rank);
    (void)b.block(rank, 1ms);
    for (int i = 0; i < 5; ++i)
      (void)b.message(rank, (rank + 1) % apart.count(), 1ms, 2ms, Bytes{100'000});
  }
  (void)b.collective(CollectiveKind::all_reduce, members, 1ms, Bytes{1000});
  const Plan plan = b.build();
  device::TimedDevice device;
  apart.watchdog().watch(&plan, 10s);
  engine::Engine engine{plan, apart, device, {}};
  engine::Checks checks;
  for (int i = 0; i < 3; ++i) checks += engine.run(i).checks;
  EXPECT_EQ(checks.wrong(), 0);
  EXPECT_EQ(checks.messages, 15);
  EXPECT_EQ(checks.blocks, 3);
}

RANKS_TEST(SeveralHosts, MeasureTheirClocksAgainstRank0) {
  NEEDS_RANKS(2);
  const comm::HostRanks host_ranks{ranks().world(), half()};
  const comm::ClockOffset clock =
      comm::measure_clock_offset(ranks().world(), host_ranks, comm::Measure::always);
  if (self() == 0) {
    EXPECT_EQ(clock.error, Duration::zero());
  } else {
    EXPECT_GT(clock.error, Duration::zero());
    EXPECT_LE(std::abs(clock.offset.count()), clock.error.count()) << "it is one clock";
  }
}

// As on the synthetic nodes of one machine, or in containers: nothing to measure, and no error.
RANKS_TEST(SeveralHosts, OfOneKernelShareItsClock) {
  NEEDS_RANKS(2);
  const comm::HostRanks host_ranks{ranks().world(), half()};
  const comm::ClockOffset clock = comm::measure_clock_offset(ranks().world(), host_ranks);
  EXPECT_EQ(clock.offset, Duration::zero());
  EXPECT_EQ(clock.error, Duration::zero());
}

RANKS_TEST(SeveralHosts, DoNotShareALink) {
  NEEDS_RANKS(4);
  engine::Ranks apart{engine::WatchdogOptions{60s}, half()};
  harness::PlanBuilder b{"shared", apart.count()};
  (void)b.message(0, 1, 1ms, 1ms, Bytes{1}, {"link a>b"});
  (void)b.message(half(), 1, 1ms, 1ms, Bytes{1}, {"link a>b"});
  const Plan plan = b.build();
  device::TimedDevice device;
  EXPECT_THROW((engine::Engine{plan, apart, device, {}}), Error);
}

RANKS_TEST(SeveralHosts, NeedNoLeaseOverTheNetworkAsItIs) {
  NEEDS_RANKS(4);
  engine::Ranks apart{engine::WatchdogOptions{60s}, half()};
  harness::PlanBuilder b{"shared", apart.count()};
  (void)b.message(0, 1, 1ms, 1ms, Bytes{1}, {"link a>b"});
  (void)b.message(half(), 1, 1ms, 1ms, Bytes{1}, {"link a>b"});
  const Plan plan = b.build();
  device::TimedDevice device;
  engine::EngineOptions options;
  options.emulation = engine::Emulation::off;
  apart.watchdog().watch(&plan, 10s);
  engine::Engine engine{plan, apart, device, options};
  const engine::IterationResult result = engine.run(0);
  EXPECT_EQ(result.checks.wrong(), 0);
  EXPECT_EQ(result.checks.messages, self() == 1 ? 2 : 0);
}

}  // namespace
}  // namespace longhaul::testing
