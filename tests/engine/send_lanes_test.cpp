// The engine over a transport that holds lanes itself: it says for how long, believes the stamps,
// and holds nothing a second time.
#include <algorithm>
#include <map>
#include <set>

#include "comm/piece_transport.hpp"
#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "harness/profile/plan_builder.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using harness::PlanBuilder;

/// Says of every payload that its hold is over and its bytes are there; plays no hold, and keeps
/// what it was told.
class HoldingTransport final : public comm::Transport {
public:
  explicit HoldingTransport(comm::Transport& host) : host_{host} {}

  [[nodiscard]] Rank self() const override { return host_.self(); }
  [[nodiscard]] int ranks() const override { return host_.ranks(); }
  [[nodiscard]] comm::RequestId send(Rank to, int tag, std::span<const std::byte> data) override {
    return host_.send(to, tag, data);
  }
  [[nodiscard]] comm::RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override {
    return host_.receive(from, tag, buffer);
  }
  [[nodiscard]] int tags() const override { return host_.tags(); }
  void ring_doorbell(Rank to) override { host_.ring_doorbell(to); }
  [[nodiscard]] comm::RequestId send_payload(Rank to, int tag, std::span<const std::byte> data,
                                             const cuda::LanePace& pace) override {
    sent.push_back(pace);
    return payload(host_.send(to, tag, data));
  }
  [[nodiscard]] comm::RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                                const cuda::LanePace& pace) override {
    received.push_back(pace);
    return payload(host_.receive(from, tag, buffer));
  }
  [[nodiscard]] bool holds_lanes() const override { return true; }
  [[nodiscard]] comm::RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                           const comm::Exchange& exchange) override {
    return host_.collective(kind, members, exchange);
  }
  void prepare_group(std::span<const Rank> members) override { host_.prepare_group(members); }
  void advance(std::vector<comm::Completion>& done) override {
    host_.advance(done);
    for (comm::Completion& completion : done) {
      if (!payloads_[completion.request]) continue;
      completion.over = now();
      completion.transferred = completion.over;
      overs.push_back(completion.over);
    }
  }
  [[nodiscard]] bool wants_look() const override { return host_.wants_look(); }
  [[nodiscard]] bool wants_polling() const override { return host_.wants_polling(); }
  [[nodiscard]] std::int64_t unclaimed() override { return host_.unclaimed(); }

  std::vector<cuda::LanePace> sent, received;
  std::vector<TimePoint> overs;

private:
  comm::RequestId payload(comm::RequestId request) {
    payloads_[request] = true;
    return request;
  }
  comm::Transport& host_;
  std::map<comm::RequestId, bool> payloads_;
};

class LaneHolds : public OnRanks {
protected:
  /// Plays on a HoldingTransport, which is handed out.
  HoldingTransport& play(const Plan& plan, engine::IterationResult& result,
                         engine::EngineOptions options = {}) {
    auto made = std::make_unique<HoldingTransport>(ranks().host_transport());
    HoldingTransport& transport = *made;
    ranks().carry_payloads_by(std::move(made));
    device::TimedDevice device;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    result = engine.run(0);
    ranks().watchdog().watch(nullptr, {});
    return transport;
  }
  static harness::PlanBuilder builder() { return harness::PlanBuilder{"holds", ranks().count()}; }
  ~LaneHolds() { ranks().carry_payloads_by(nullptr); }
};

// The holds are an hour in sum: a rank that held once more would be ended by the watchdog.
RANKS_TEST(LaneHolds, AreTheTransportsAlone) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  for (int i = 0; i < 4; ++i) b.message(0, 1, 15min, 0ns, Bytes{4096});
  const Plan plan = b.build();
  engine::IterationResult result;
  const HoldingTransport& transport = play(plan, result);
  const std::size_t sends = self() == 0 ? 4 : 0, receives = self() == 1 ? 4 : 0;
  ASSERT_EQ(transport.sent.size(), sends);
  ASSERT_EQ(transport.received.size(), receives);
  for (const auto& paces : {transport.sent, transport.received})
    for (const cuda::LanePace& pace : paces) {
      EXPECT_EQ(pace.hold, 15min);
      EXPECT_GT(pace.from, TimePoint{});
      EXPECT_LE(pace.from, now());
    }
  EXPECT_EQ(ranks().world().sum(result.checks.wrong()), 0);
  EXPECT_EQ(ranks().world().sum(result.checks.messages), 4);
}

// The next message of a link begins when the one before was over by the transport's stamp.
RANKS_TEST(LaneHolds, FollowEachOtherByTheStamps) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  for (int i = 0; i < 3; ++i) b.message(0, 1, 1h, 0ns, Bytes{64});
  const Plan plan = b.build();
  engine::IterationResult result;
  engine::EngineOptions options;
  options.credit = 1h;  // any lateness is caught up: 2% of a message are more than a minute
  const HoldingTransport& transport = play(plan, result, options);
  if (self() == 0) {
    for (std::size_t i = 1; i < transport.sent.size(); ++i)
      EXPECT_EQ(transport.sent[i].from, transport.overs[i - 1]);
  }
}

// Latency counts from the stamp of the hold's end, by the receiver's clock.
RANKS_TEST(LaneHolds, LatencyBeginsBehindThem) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto message = b.message(0, 1, 1ms, 20ms, Bytes{64});
  const Plan plan = b.build();
  engine::IterationResult result;
  const HoldingTransport& transport = play(plan, result);
  if (self() == 1) {
    ASSERT_EQ(transport.overs.size(), 1U);
    EXPECT_GE(result.times[index(b.id(message.recv))].end, transport.overs[0] + 20ms);
    EXPECT_EQ(result.transfers, 1);
  }
}

RANKS_TEST(LaneHolds, AreNoneWithoutEmulation) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  b.message(0, 1, 15min, 15min, Bytes{64});
  const Plan plan = b.build();
  engine::IterationResult result;
  engine::EngineOptions options;
  options.emulation = engine::Emulation::off;
  const HoldingTransport& transport = play(plan, result, options);
  for (const auto& paces : {transport.sent, transport.received})
    for (const cuda::LanePace& pace : paces) EXPECT_EQ(pace.hold, Duration::zero());
  EXPECT_EQ(ranks().world().sum(result.checks.wrong()), 0);
}

/// In pieces over the host's; counts payloads that have not left.
class CountingTransport final : public comm::Transport {
public:
  explicit CountingTransport(comm::Transport& host) : pieces_{host} {}

  [[nodiscard]] Rank self() const override { return pieces_.self(); }
  [[nodiscard]] int ranks() const override { return pieces_.ranks(); }
  [[nodiscard]] comm::RequestId send(Rank to, int tag, std::span<const std::byte> data) override {
    return pieces_.send(to, tag, data);
  }
  [[nodiscard]] comm::RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override {
    return pieces_.receive(from, tag, buffer);
  }
  [[nodiscard]] int tags() const override { return pieces_.tags(); }
  void ring_doorbell(Rank to) override { pieces_.ring_doorbell(to); }
  [[nodiscard]] comm::RequestId send_payload(Rank to, int tag, std::span<const std::byte> data,
                                             const cuda::LanePace& pace) override {
    const comm::RequestId request = pieces_.send_payload(to, tag, data, pace);
    open_.insert(request);
    most_open = std::max(most_open, open_.size());
    return request;
  }
  [[nodiscard]] comm::RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                                const cuda::LanePace& pace) override {
    return pieces_.receive_payload(from, tag, buffer, pace);
  }
  [[nodiscard]] comm::RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                           const comm::Exchange& exchange) override {
    return pieces_.collective(kind, members, exchange);
  }
  void prepare_group(std::span<const Rank> members) override { pieces_.prepare_group(members); }
  void advance(std::vector<comm::Completion>& done) override {
    pieces_.advance(done);
    for (const comm::Completion& completion : done) open_.erase(completion.request);
  }
  [[nodiscard]] bool wants_look() const override { return pieces_.wants_look(); }
  [[nodiscard]] bool wants_polling() const override { return pieces_.wants_polling(); }
  [[nodiscard]] std::int64_t unclaimed() override { return pieces_.unclaimed(); }

  std::size_t most_open = 0;

private:
  comm::PieceTransport pieces_;
  std::set<comm::RequestId> open_;
};

class LargePayloads : public OnRanks {
protected:
  /// The most that had not left at a time, of ten messages that are ready at once.
  std::size_t most_open(Bytes size) {
    harness::PlanBuilder b{"large", ranks().count()};
    for (int i = 0; i < 10; ++i) b.message(0, 1, 1ms, 0ns, size);
    const Plan plan = b.build();
    auto made = std::make_unique<CountingTransport>(ranks().host_transport());
    CountingTransport& transport = *made;
    ranks().carry_payloads_by(std::move(made));
    device::TimedDevice device;
    engine::EngineOptions options;
    options.emulation = engine::Emulation::off;
    options.payload = size;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    wrong = ranks().world().sum(engine.run(0).checks.wrong());
    ranks().watchdog().watch(nullptr, {});
    return transport.most_open;
  }
  ~LargePayloads() { ranks().carry_payloads_by(nullptr); }
  std::int64_t wrong = 0;
};

// So many take room at a time, however many are ready.
RANKS_TEST(LargePayloads, LeaveTwoAtATime) {
  NEEDS_RANKS(2);
  const std::size_t most = most_open(3_MiB);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(most, self() == 0 ? engine::kMostUnsent : 0);
}

RANKS_TEST(LargePayloads, AreThoseThatAreMadeAhead) {
  NEEDS_RANKS(2);
  const std::size_t most = most_open(64_KiB);
  EXPECT_EQ(wrong, 0);
  if (self() == 0) {
    EXPECT_GT(most, engine::kMostUnsent) << "small ones leave as they are ready";
  }
}

}  // namespace
}  // namespace longhaul::testing
