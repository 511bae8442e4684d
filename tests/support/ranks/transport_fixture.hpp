#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include <gmock/gmock.h>

#include "base/bf16.hpp"
#include "base/random.hpp"
#include "comm/transport.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {

using Bytes8 = std::vector<std::uint8_t>;

/// Payloads in the host's memory.
class HostMemory {
public:
  explicit HostMemory(std::size_t size) : bytes_(size) {}
  [[nodiscard]] std::span<std::byte> span() { return std::as_writable_bytes(std::span{bytes_}); }
  void write(const Bytes8& bytes) { bytes_ = bytes; }
  [[nodiscard]] Bytes8 read() const { return bytes_; }

private:
  Bytes8 bytes_;
};

template <typename Kind>
class TransportTest : public ::testing::Test {};

template <typename Kind>
class TransportTestOnRank : public OnRanks {
public:
  static std::string why_not() { return Kind::why_not(); }

protected:
  using Memory = typename Kind::Memory;

  /// Looks until all of `requests` are done.
  std::map<comm::RequestId, std::size_t> finish(const std::vector<comm::RequestId>& requests) {
    std::map<comm::RequestId, std::size_t> sizes;
    while (true) {
      const std::uint32_t doorbell = ranks().host_ranks().doorbell();
      std::vector<comm::Completion> done;
      transport_->advance(done);
      for (const comm::Completion& completion : done)
        sizes[completion.request] = completion.size_bytes;
      if (std::ranges::all_of(requests, [&](comm::RequestId t) { return sizes.contains(t); }))
        return sizes;
      if (done.empty()) ranks().host_ranks().sleep(doorbell, now() + std::chrono::milliseconds{1});
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
  static std::vector<Rank> everyone() {
    std::vector<Rank> members;
    for (int rank = 0; rank < ranks().count(); ++rank) members.push_back(Rank{rank});
    return members;
  }
  /// The bytes that `from` sends as message `number`: no two are equal.
  static Bytes8 pattern(Rank from, std::uint64_t number, std::size_t size) {
    Bytes8 bytes(size);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (i % 8 == 0) word = derived_seed(index(from) << 32U | number, i);
      bytes[i] = static_cast<std::uint8_t>(word >> 8U * (i % 8));
    }
    return bytes;
  }
  static cuda::LanePace lane(std::uint32_t number) { return {LaneId{number}, {}, {}}; }

  /// A payload that this rank sends or gets, with its memory.
  struct Moving {
    Memory memory;
    comm::RequestId request{};
  };
  Moving send(Rank to, int tag, const Bytes8& bytes, const cuda::LanePace& pace) {
    Moving moving{Memory{bytes.size()}};
    moving.memory.write(bytes);
    moving.request = transport_->send_payload(to, tag, moving.memory.span(), pace);
    transport_->ring_doorbell(to);
    return moving;
  }
  Moving receive(Rank from, int tag, std::size_t size, const cuda::LanePace& pace) {
    Moving moving{Memory{size}};
    moving.request = transport_->receive_payload(from, tag, moving.memory.span(), pace);
    return moving;
  }

  /// The numbers that this rank gets of a collective of all ranks.
  template <typename Number, typename Make, typename Value>
  std::vector<Number> expected_of(CollectiveKind kind, std::size_t all, const Make& make,
                                  const Value& value) {
    const std::size_t n = everyone().size();
    const auto me = static_cast<std::size_t>(self());
    const CollectiveFacts& facts = facts_of(kind);
    std::vector<Number> expected;
    const std::size_t got = facts.got(all, n, me);
    if (kind == CollectiveKind::scatter || kind == CollectiveKind::all_to_all) {
      const std::size_t share = all / n;
      for (std::size_t i = 0; i < got; ++i)
        expected.push_back(make(value(i / share, me * share + i % share)));
      return expected;
    }
    if (facts.merging == Merging::side_by_side) {
      if (got == 0) return expected;
      for (std::size_t rank = 0; rank < n; ++rank)
        for (std::size_t i = 0; i < facts.brought(all, n, rank); ++i)
          expected.push_back(make(value(rank, i)));
      return expected;
    }
    const std::size_t first = facts.gets == Portion::share ? me * got : 0;
    for (std::size_t i = first; i < first + got; ++i) {
      std::int64_t total = 0;
      for (std::size_t rank = 0; rank < n; ++rank) total += value(rank, i);
      expected.push_back(make(total));
    }
    return expected;
  }

  /// All kinds of collectives on numbers of one type: element i of what a rank brings is
  /// `value(rank, i)`, small enough that sums are exact.
  template <typename Number, typename Make, typename Value>
  void check_collectives(NumberType type, std::size_t share, const Make& make, const Value& value) {
    const std::vector<Rank> members = everyone();
    const std::size_t n = members.size();
    const auto me = static_cast<std::size_t>(self());
    for (const CollectiveKind kind : every<CollectiveKind>()) {
      const bool divides = facts_of(kind).brings == Portion::share ||
                           facts_of(kind).gets == Portion::share ||
                           kind == CollectiveKind::all_to_all;
      const std::size_t all = share * n + (divides ? 0 : 1);  // no multiple of the ranks
      std::vector<Number> in(facts_of(kind).brought(all, n, me));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = make(value(me, i));
      const std::size_t size = in.size() * sizeof(Number);
      Memory from{std::max<std::size_t>(size, 1)};  // a member may bring nothing
      const std::size_t got = facts_of(kind).got(all, n, me) * sizeof(Number);
      Memory to{std::max<std::size_t>(got, 1)};  // or get nothing
      Bytes8 raw(std::max<std::size_t>(size, 1));
      if (size > 0) std::memcpy(raw.data(), in.data(), size);
      from.write(raw);
      finish({transport_->collective(kind, members,
                                     {type, from.span().first(size), to.span().first(got)})});
      raw = to.read();
      raw.resize(got);
      const std::vector<Number> expected = expected_of<Number>(kind, all, make, value);
      std::vector<Number> out(raw.size() / sizeof(Number));
      if (!raw.empty()) std::memcpy(out.data(), raw.data(), raw.size());
      ASSERT_EQ(out, expected) << to_text(kind);
    }
  }

  std::unique_ptr<comm::Transport> below_;  ///< what the transport uses, of this test alone
  std::unique_ptr<comm::Transport> transport_ = Kind::make(below_);
};

}  // namespace longhaul::testing
