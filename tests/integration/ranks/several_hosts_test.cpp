// Several hosts, pretended on one machine: no doorbells between them, but polling.
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

/// Ranks of two hosts that send over one link, each of them `messages`.
class SharedByHosts {
public:
  explicit SharedByHosts(int messages) {
    for (int i = 0; i < messages; ++i)
      for (const int from : {0, half()})
        sends_.push_back(
            builder_.message(from, half() + 1, kTransfer, 1ms, Bytes{1}, {"link a>b"}).send);
    plan_ = builder_.build();
  }
  static constexpr Duration kTransfer = 10ms;
  static int half() { return (OnRanks::ranks().count() + 1) / 2; }
  [[nodiscard]] Plan& plan() { return plan_; }
  [[nodiscard]] OpId send(std::size_t number) const { return builder_.id(sends_[number]); }

  /// Plays iterations; of the last one the spans of all sends, in the order in which they began.
  /// The hosts are one, so that they are on one clock.
  void play(int iterations, std::optional<Duration> clock_offset) {
    engine::Ranks apart{engine::WatchdogOptions{60s}, half()};
    device::TimedDevice device;
    engine::EngineOptions options;
    options.clock_offset = clock_offset;
    apart.watchdog().watch(&plan_, 10s);
    engine::Engine engine{plan_, apart, device, options};
    engine::IterationResult sums;
    for (int i = 0; i < iterations; ++i) {
      const engine::IterationResult result = engine.run(i);
      sums.checks += result.checks;
      sums.lease += result.lease;
      sums.times = result.times;
    }
    const comm::Communicator& world = apart.world();
    wrong = world.sum(sums.checks.wrong() + apart.transport().unclaimed());
    leases = world.sum(sums.lease.leases);
    by_words = world.sum(sums.lease.by_words);
    words_longest = Duration{world.maximum(sums.lease.words_longest.count())};
    spans.clear();
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      const bool mine = plan_.rank_of(send(i)) == apart.self();
      const OpTime time = mine ? sums.times[index(send(i))] : OpTime{};
      spans.push_back({Duration{world.sum(time.start.count())},
                       Duration{world.sum(time.end.count())}, send(i)});
    }
    std::ranges::sort(spans, {}, &Span::start);
  }
  struct Span {
    Duration start{}, end{};
    OpId send{};
  };
  std::vector<Span> spans;
  std::int64_t wrong = 0, leases = 0, by_words = 0;
  Duration words_longest{};

private:
  harness::PlanBuilder builder_{"shared", OnRanks::ranks().count()};
  std::vector<harness::PlanBuilder::Handle> sends_;
  Plan plan_;
};

RANKS_TEST(SeveralHosts, TakeTurnsOnALinkThatTheyShare) {
  NEEDS_RANKS(4);
  for (const std::optional<Duration> offset :
       {std::optional{Duration::zero()}, std::optional<Duration>{}}) {
    SharedByHosts hosts{3};
    hosts.play(2, offset);
    EXPECT_EQ(hosts.wrong, 0);
    EXPECT_EQ(hosts.leases, 12);
    EXPECT_EQ(hosts.by_words, 6) << "those of the host that does not keep it";
    EXPECT_GT(hosts.words_longest, Duration::zero());
    for (std::size_t i = 1; i < hosts.spans.size(); ++i)
      EXPECT_GE(hosts.spans[i].start, hosts.spans[i - 1].end) << "one holds it at a time";
    EXPECT_GE(hosts.spans.back().end - hosts.spans.front().start,
              6 * SharedByHosts::kTransfer - 5 * SharedByHosts::kTransfer / 50)
        << "credit is 2% of each at most";
  }
}

// The other host's message was ready first and is the second in the order.
RANKS_TEST(SeveralHosts, KeepAStatedOrderOfALinkThatTheyShare) {
  NEEDS_RANKS(4);
  SharedByHosts hosts{2};
  for (Resource& resource : hosts.plan().resources)
    if (resource.name == "link a>b")
      resource.order = {hosts.send(1), hosts.send(0), hosts.send(2), hosts.send(3)};
  hosts.play(3, Duration::zero());
  EXPECT_EQ(hosts.wrong, 0);
  std::vector<OpId> order;
  for (const auto& span : hosts.spans) order.push_back(span.send);
  EXPECT_EQ(order, (std::vector{hosts.send(1), hosts.send(0), hosts.send(2), hosts.send(3)}));
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
