#pragma once

#include "trace/validate/check_context.hpp"
#include "trace/validate/external_sort.hpp"

namespace longhaul::trace {

/// One side of a message: what names it, and what its other side has to agree with.
struct MessageSide {
  std::int32_t from, to, chunk, microbatch, part, owner, piece, collective, step;
  MessageLeg leg;
  bool receives, ran;
  std::int64_t op;
  std::int64_t time_ns;  ///< start of a send, end of a receive
  std::int64_t size_bytes;
  [[nodiscard]] bool names_as(const MessageSide& other) const;
};
struct MessageSideLess {
  bool operator()(const MessageSide& a, const MessageSide& b) const;
};

/// Every message has both sides, arrives no earlier than it starts, and brings the bytes that were
/// sent: what is left out of a send would load no link. Sides come in order of op; where messages
/// share a name, the n-th send and the n-th receive belong together, as in match_messages(). Of one
/// iteration.
class MessageCheck {
public:
  MessageCheck(const CheckContext& context, IterationKey key)
      : context_{context}, key_{key}, sides_{context.sort_bytes} {}
  void add(const TimelineRow& row);
  [[nodiscard]] Diagnostics finish();

private:
  [[nodiscard]] RowName row_of(const MessageSide& side) const;
  void lacks_a_side(const MessageSide& side);
  void check_pair(const MessageSide& send, const MessageSide& receive);

  const CheckContext& context_;
  IterationKey key_;
  ExternalSort<MessageSide, MessageSideLess> sides_;
  UnorderedFindings findings_;
};

}  // namespace longhaul::trace
