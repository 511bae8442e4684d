// Every transport passes these tests: written once, against the interface.
#include "runtime/transport/transport.hpp"

#include <array>
#include <map>

#include <gmock/gmock.h>

#include "ranks_fixture.hpp"
#include "runtime/threads/thread_transport.hpp"
#include "runtime/transport/mpi/mpi_transport.hpp"

namespace longhaul::testing {
namespace {

Exchange exchange_of(const std::vector<std::int64_t>& mine, std::vector<std::int64_t>& result) {
  return {ExchangeType::i64, std::as_bytes(std::span{mine}),
          std::as_writable_bytes(std::span{result})};
}

using ::testing::ElementsAre;

template <typename Kind>
class TransportTest : public ::testing::Test {};

template <typename Kind>
class TransportTestOnRank : public OnRanks {
public:
  /// Threads have a transport of their own.
  static bool is_here() { return std::is_same_v<Kind, ThreadTransport> == (thread_ranks() > 0); }

protected:
  TransportTestOnRank() : transport_{ranks().world(), ranks().board()} {}

  /// Looks until all of `tickets` are done.
  std::map<Ticket, std::size_t> finish(std::vector<Ticket> tickets) {
    std::map<Ticket, std::size_t> sizes;
    while (true) {
      const std::uint32_t bell = ranks().board().bell();
      std::vector<Completion> done;
      transport_.advance(done);
      for (const Completion& completion : done) sizes[completion.ticket] = completion.size_bytes;
      if (std::ranges::all_of(tickets, [&](Ticket t) { return sizes.contains(t); })) return sizes;
      if (done.empty()) ranks().board().sleep(bell, now() + std::chrono::milliseconds{1});
    }
  }
  static std::span<const std::byte> bytes(const auto& object) {
    return std::as_bytes(std::span{object});
  }
  static std::span<std::byte> writable(auto& object) {
    return std::as_writable_bytes(std::span{object});
  }
  static Rank next() { return Rank{(self() + 1) % ranks().count()}; }
  static Rank previous() { return Rank{(self() + ranks().count() - 1) % ranks().count()}; }

  Kind transport_;
};

using Transports = ::testing::Types<MpiTransport, ThreadTransport>;
TYPED_TEST_SUITE(TransportTest, Transports);

RANKS_TYPED_TEST(TransportTest, MovesBytesSmallAndLarge) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20U}) {
    const std::vector<std::uint8_t> out(size, static_cast<std::uint8_t>(this->self() + 1));
    std::vector<std::uint8_t> in(size, 0);
    const auto received = this->transport_.receive(this->previous(), 3, this->writable(in));
    const auto sent = this->transport_.send(this->next(), 3, this->bytes(out));
    this->transport_.ring(this->next());
    EXPECT_EQ(this->finish({received, sent})[received], size);
    EXPECT_THAT(in, ::testing::Each(static_cast<int>(this->previous()) + 1));
  }
}

RANKS_TYPED_TEST(TransportTest, KeepsTheOrderOfOneTagAndTellsTagsApart) {
  const std::array<std::array<int, 1>, 4> out{{{10}, {11}, {20}, {21}}};
  std::array<std::array<int, 1>, 4> in{};
  std::vector<Ticket> tickets;
  // Tag 2 is received before tag 1, though it is sent behind it.
  for (const std::size_t i : {2, 3, 0, 1})
    tickets.push_back(
        this->transport_.receive(this->previous(), i < 2 ? 1 : 2, this->writable(in[i])));
  for (std::size_t i = 0; i < out.size(); ++i)
    tickets.push_back(this->transport_.send(this->next(), i < 2 ? 1 : 2, this->bytes(out[i])));
  this->transport_.ring(this->next());
  this->finish(tickets);
  EXPECT_EQ(in, out);
}

RANKS_TYPED_TEST(TransportTest, ReportsWhatNobodyReceived) {
  const std::array<int, 1> word{1};
  EXPECT_EQ(this->transport_.unclaimed(), 0);
  this->ranks().world().barrier();
  this->finish({this->transport_.send(this->next(), 9, this->bytes(word))});
  this->ranks().world().barrier();
  EXPECT_EQ(this->transport_.unclaimed(), 1);
}

RANKS_TYPED_TEST(TransportTest, GathersAndReducesWithinGroups) {
  std::vector<Rank> members;
  for (int rank = 0; rank < this->ranks().count(); ++rank) members.push_back(Rank{rank});
  const auto n = members.size();
  this->transport_.prepare_group(members);
  const std::int64_t me = this->self();
  const std::vector<std::int64_t> one{100 + me};
  std::vector<std::int64_t> all(n, 0);
  this->finish(
      {this->transport_.collective(CollectiveKind::all_gather, members, exchange_of(one, all))});
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(all[i], 100 + static_cast<std::int64_t>(i));

  std::vector<std::int64_t> mine(n);
  for (std::size_t i = 0; i < n; ++i) mine[i] = 10 * static_cast<std::int64_t>(i) + me;
  std::vector<std::int64_t> part(1, 0);
  const auto sum_of_ranks = static_cast<std::int64_t>(n * (n - 1) / 2);
  this->finish({this->transport_.collective(CollectiveKind::reduce_scatter, members,
                                            exchange_of(mine, part))});
  EXPECT_THAT(part, ElementsAre(10 * me * static_cast<std::int64_t>(n) + sum_of_ranks));

  std::vector<std::int64_t> total(1, 0);
  const std::vector<std::int64_t> rank{me};
  this->finish(
      {this->transport_.collective(CollectiveKind::all_reduce, members, exchange_of(rank, total))});
  EXPECT_THAT(total, ElementsAre(sum_of_ranks));
}

}  // namespace
}  // namespace longhaul::testing
