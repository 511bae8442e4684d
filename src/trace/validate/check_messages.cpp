#include "trace/validate/check_messages.hpp"

#include <deque>
#include <tuple>

namespace longhaul::trace {
namespace {

/// Most messages of one name and kind that wait for their other sides; no trace has so many.
constexpr std::size_t kMostWaiting = std::size_t{1} << 16;

auto name_of_message(const MessageSide& side) {
  return std::tie(side.from, side.to, side.chunk, side.microbatch, side.part, side.leg, side.owner,
                  side.piece, side.collective, side.step);
}

}  // namespace

bool MessageSide::names_as(const MessageSide& other) const {
  return name_of_message(*this) == name_of_message(other);
}

bool MessageSideLess::operator()(const MessageSide& a, const MessageSide& b) const {
  const auto order = name_of_message(a) <=> name_of_message(b);
  return order != 0 ? order < 0 : a.op < b.op;
}

void MessageCheck::add(const TimelineRow& row) {
  if (row.kind == RowKind::send) {
    sides_.push({row.rank, row.peer, row.chunk, row.microbatch, row.part, row.owner, row.piece,
                 row.collective, row.step, row.leg, false, has_run(row), row.op, row.start_ns,
                 row.size_bytes});
  } else if (row.kind == RowKind::recv) {
    sides_.push({row.peer, row.rank, row.chunk, row.microbatch, row.part, row.owner, row.piece,
                 row.collective, row.step, row.leg, true, has_run(row), row.op, row.end_ns,
                 row.size_bytes});
  }
}

RowName MessageCheck::row_of(const MessageSide& side) const {
  return {side.op, key_.schedule, key_.iteration, side.receives ? side.to : side.from};
}

void MessageCheck::lacks_a_side(const MessageSide& side) {
  context_.add(findings_, "message with one side", row_of(side),
               "is a {} whose other side, on rank {}, is missing.",
               longhaul::to_string(side.receives ? RowKind::recv : RowKind::send),
               side.receives ? side.from : side.to);
}

void MessageCheck::check_pair(const MessageSide& send, const MessageSide& receive) {
  if (receive.time_ns < send.time_ns - context_.slack_ns)
    context_.add(findings_, "arrival before departure", row_of(receive),
                 "arrives at {} ns (op {} sends it at {} ns).", receive.time_ns, send.op,
                 send.time_ns);
  if (receive.size_bytes != send.size_bytes)
    context_.add(findings_, "message of two sizes", row_of(receive),
                 "brings {} bytes (op {} sends {}).", receive.size_bytes, send.op, send.size_bytes);
  if (receive.ran && !send.ran)
    context_.add(findings_, "arrival without a departure", row_of(receive),
                 "arrives (op {} does not run).", send.op);
}

Diagnostics MessageCheck::finish() {
  std::deque<MessageSide> waiting;  // of one name, all sends or all receives
  while (const MessageSide* side = sides_.take()) {
    while (!waiting.empty() &&
           (!waiting.front().names_as(*side) || waiting.size() > kMostWaiting)) {
      lacks_a_side(waiting.front());
      waiting.pop_front();
    }
    if (waiting.empty() || waiting.front().receives == side->receives) {
      waiting.push_back(*side);
      continue;
    }
    const MessageSide& other = waiting.front();
    side->receives ? check_pair(other, *side) : check_pair(*side, other);
    waiting.pop_front();
  }
  for (const MessageSide& side : waiting) lacks_a_side(side);
  return findings_.ordered();
}

}  // namespace longhaul::trace
