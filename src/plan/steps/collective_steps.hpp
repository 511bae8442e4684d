#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/steps/collective.hpp"

namespace longhaul::plan {

/// Consecutive items of the vector that a collective works on.
struct ItemRange {
  std::uint32_t first = 0, count = 0;
  [[nodiscard]] std::uint32_t end() const { return first + count; }
  friend bool operator==(const ItemRange&, const ItemRange&) = default;
};

/// A message of a collective, from one member to another. Members go by their place in the group.
/// Before its step, all that came in earlier steps is there: a member puts what arrives in place
/// (or adds it up) when its own messages of that step have left.
struct StepMessage {
  std::int32_t from = 0, to = 0;
  std::int32_t piece = 0;
  std::int32_t stream = 0;        ///< a member's messages of one stream follow each other
  std::int32_t step = 0;          ///< ascending along a stream
  std::int32_t left_before = -1;  ///< the message of `from` that must have left before it; -1: none
  /// One of an earlier piece that must have left, too (kPiecesInFlight); -1: none.
  std::int32_t left_of_piece = -1;
  bool adds = false;  ///< its numbers are added to the receiver's; otherwise they take over
  Bytes size;
  std::uint32_t first_range = 0, range_count = 0;  ///< the items that it carries
  std::uint32_t first_after = 0, after_count = 0;  ///< messages to `from` that must have arrived
};

/// So many pieces of a member are in one phase at a time: fewer would wait for latencies, more
/// would all be in the first phase at once instead of one after the other through the levels.
inline constexpr int kPiecesInFlight = 2;

/// All messages of a collective, in an order in which each comes after those that it waits for.
///
/// Its items are shards: item i is what member i brings to a gather and gets of a scatter. In an
/// all-to-all of n members, item s * n + d goes from member s to member d.
struct CollectiveSteps {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int members = 0;
  int pieces = 1;
  std::vector<StepMessage> messages;
  std::vector<ItemRange> ranges;
  std::vector<std::uint32_t> after;

  [[nodiscard]] std::span<const ItemRange> ranges_of(const StepMessage& message) const {
    return {ranges.data() + message.first_range, message.range_count};
  }
  [[nodiscard]] std::span<const std::uint32_t> after_of(const StepMessage& message) const {
    return {after.data() + message.first_after, message.after_count};
  }
  /// In one piece.
  [[nodiscard]] std::uint32_t items() const {
    const auto count = static_cast<std::uint32_t>(members);
    return kind == CollectiveKind::all_to_all ? count * count : count;
  }
};

/// The messages of a collective that why_no_steps() says nothing about. The ring of n members: in
/// step k of an all-gather member i sends shard i-k to i+1, of a reduce-scatter its sum of shard
/// i-k-1 (mod n); an all-reduce is both. Halving begins with the partner that is furthest away, as
/// a binomial tree does. Sources: Thakur, Rabenseifner, Gropp 2005 (ring, halving, tree); Sanders,
/// Speck, Traeff 2009 (two trees).
[[nodiscard]] CollectiveSteps steps_of(const Collective& collective);

/// Does the member have the item before the collective?
[[nodiscard]] bool brings(const CollectiveSteps& steps, int member, std::uint32_t item);
/// Is it to have the item afterwards?
[[nodiscard]] bool gets(const CollectiveSteps& steps, int member, std::uint32_t item);

}  // namespace longhaul::plan
