#include "comm/threads/delayed_transport.hpp"

#include <array>

#include <gmock/gmock.h>

#include "comm/group/host_ranks.hpp"
#include "comm/group/thread_group.hpp"
#include "comm/group/virtual_time.hpp"
#include "comm/threads/thread_transport.hpp"

namespace longhaul::comm {
namespace {

using namespace std::chrono_literals;

/// One of two ranks, by the virtual clock from 1000 ns on; a hop takes 5 ns.
class OneOfTwo {
public:
  explicit OneOfTwo(VirtualTime& time)
      : host_ranks_{world_},
        threads_{world_, host_ranks_},
        transport{world_, threads_, 5ns},
        member_{std::in_place, time, world_.rank()} {}
  ~OneOfTwo() {
    member_.reset();
    world_.barrier();  // before buffers go
  }
  [[nodiscard]] int rank() const { return world_.rank(); }
  /// When the operation is done.
  TimePoint end_of(RequestId request) {
    for (std::vector<Completion> done;;) {
      const std::uint32_t seen = host_ranks_.doorbell();
      transport.advance(done);
      for (const Completion& completion : done)
        if (completion.request == request) return now();
      host_ranks_.sleep(seen, std::min(transport.next_event(), now() + 1h));
    }
  }
  void sleep(Duration length) const {
    const TimePoint until = now() + length;
    while (now() < until) host_ranks_.sleep(host_ranks_.doorbell(), until);
  }

private:
  Communicator world_ = Communicator::world();
  HostRanks host_ranks_;
  ThreadTransport threads_;

public:
  DelayedTransport transport;

private:
  std::optional<VirtualTime::Member> member_;
};

void play(const std::function<void(OneOfTwo&)>& body) {
  VirtualTime time{2, 1000ns};
  run_thread_ranks(2, [&] {
    OneOfTwo rank{time};
    body(rank);
  });
}

TEST(DelayedTransport, DeliversAHopAfterTheSending) {
  play([](OneOfTwo& rank) {
    std::array<std::byte, 8> bytes{};
    if (rank.rank() == 0) {
      rank.sleep(20ns);
      const RequestId sent = rank.transport.send(Rank{1}, 3, bytes);
      rank.transport.ring_doorbell(Rank{1});
      EXPECT_EQ(rank.end_of(sent), 1020ns);
    } else {
      EXPECT_EQ(rank.end_of(rank.transport.receive(Rank{0}, 3, bytes)), 1025ns);
    }
  });
}

// Of three messages the first is awaited when it is on its way, the others when they are there.
TEST(DelayedTransport, CountsFromTheSendingAlsoWhereTheReceiveComesLater) {
  play([](OneOfTwo& rank) {
    std::array<std::byte, 8> bytes{};
    if (rank.rank() == 0) {
      for (int i = 0; i < 3; ++i) (void)rank.transport.send(Rank{1}, 3, bytes);
      rank.sleep(100ns);
    } else {
      rank.sleep(2ns);
      EXPECT_EQ(rank.end_of(rank.transport.receive(Rank{0}, 3, bytes)), 1005ns);
      EXPECT_EQ(rank.end_of(rank.transport.receive(Rank{0}, 3, bytes)), 1005ns);
      rank.sleep(30ns);
      EXPECT_EQ(rank.end_of(rank.transport.receive(Rank{0}, 3, bytes)), 1035ns);
    }
  });
}

TEST(DelayedTransport, EndsACollectiveAHopAfterItsLastMember) {
  play([](OneOfTwo& rank) {
    const std::array members{Rank{0}, Rank{1}};
    const std::int64_t mine = rank.rank() + 1;
    std::int64_t sum = 0;
    rank.sleep(10ns * (1 + rank.rank()));
    const RequestId request =
        rank.transport.collective(CollectiveKind::all_reduce, members,
                                  {NumberType::i64, std::as_bytes(std::span{&mine, 1}),
                                   std::as_writable_bytes(std::span{&sum, 1})});
    EXPECT_EQ(rank.end_of(request), 1025ns);
    EXPECT_EQ(sum, 3);
  });
}

}  // namespace
}  // namespace longhaul::comm
