#pragma once

#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "comm/group/communicator.hpp"
#include "comm/transport.hpp"

namespace longhaul::comm {

/// A transport with a stated cost, for virtual clocks: what is sent over `host`, which takes no
/// time, is received `hop` after its sending, and a collective is over `hop` after its last member
/// came. A payload takes `payload` more. Sends are done at once. No doorbell rings when something
/// is there: next_event() says when.
class DelayedTransport final : public Transport {
public:
  /// Collective over `world`, whose ranks are threads. `host` outlives it.
  DelayedTransport(const Communicator& world, Transport& host, Duration hop, Duration payload = {});
  ~DelayedTransport() override;

  [[nodiscard]] Rank self() const override { return host_.self(); }
  [[nodiscard]] int ranks() const override { return host_.ranks(); }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override;
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override;
  [[nodiscard]] RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                          const cuda::LanePace& pace = {}) override;
  [[nodiscard]] int tags() const override { return host_.tags(); }
  void ring_doorbell(Rank to) override { host_.ring_doorbell(to); }
  [[nodiscard]] TimePoint next_event() const override {
    return coming_.empty() ? kNever : std::get<TimePoint>(coming_.top());
  }
  [[nodiscard]] RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                     const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override { host_.prepare_group(members); }
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool wants_look() const override {
    return host_.wants_look() || next_event() <= now();
  }
  [[nodiscard]] bool wants_polling() const override { return host_.wants_polling(); }
  [[nodiscard]] std::int64_t unclaimed() override { return host_.unclaimed(); }

private:
  struct Sendings;
  /// When it is there, in which order it came, with how many bytes.
  using Coming = std::tuple<TimePoint, std::uint64_t, RequestId, std::size_t>;
  /// A receive by its sender and tag; a collective has none.
  struct Awaited {
    Rank from = kNone<Rank>;
    int tag = 0;
    Duration more{};  ///< than a hop
  };

  Transport& host_;
  Duration hop_, payload_;
  std::shared_ptr<Sendings> sendings_;
  std::unordered_map<RequestId, Awaited> awaited_;
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
  std::uint64_t came_ = 0;
  std::vector<Completion> completions_;
};

}  // namespace longhaul::comm
