#include "trace/validate/check_pieces.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::trace {
namespace {

using Sides = std::vector<PieceSide>;
using Role = PieceSide::Role;

/// Most pieces of one name; a message has 255 at most, and a gradient may share the name.
constexpr std::size_t kMostOfOneName = std::size_t{1} << 16;

auto message_of(const PieceSide& side) {
  return std::tie(side.owner, side.chunk, side.microbatch, side.part, side.from_device,
                  side.to_device);
}

/// The identity of a piece at one relay. An activation and a gradient may share it: the gradient
/// comes later, for it depends on the activation.
auto relay_of(const PieceSide& side) {
  return std::tie(side.rank, side.owner, side.chunk, side.microbatch, side.part, side.piece);
}

auto time_of(const PieceSide& side) { return std::tie(side.start_ns, side.op); }

Sides of_role(const Sides& sides, Role role) {
  Sides some;
  std::ranges::copy_if(sides, std::back_inserter(some),
                       [&](const PieceSide& side) { return side.role == role; });
  return some;
}

/// Hands over, one by one, the groups of what shares a name.
template <typename Sorted, typename Name, typename Visit>
void for_groups(Sorted& sorted, Name&& name, Visit&& visit) {
  Sides group;
  while (const PieceSide* side = sorted.take()) {
    if (!group.empty() && (name(group.front()) != name(*side) || group.size() == kMostOfOneName)) {
      visit(group);
      group.clear();
    }
    group.push_back(*side);
  }
  if (!group.empty()) visit(group);
}

}  // namespace

bool PieceOfMessageLess::operator()(const PieceSide& a, const PieceSide& b) const {
  const auto order = message_of(a) <=> message_of(b);
  return order != 0 ? order < 0 : time_of(a) < time_of(b);
}

bool PieceOfRelayLess::operator()(const PieceSide& a, const PieceSide& b) const {
  const auto order = relay_of(a) <=> relay_of(b);
  return order != 0 ? order < 0 : time_of(a) < time_of(b);
}

template <typename... Args>
void PieceCheck::wrong(const char* sort, const PieceSide& side, fmt::format_string<Args...> format,
                       Args&&... args) {
  context_.add(findings_, sort, {side.op, key_.schedule, key_.iteration, side.rank}, format,
               std::forward<Args>(args)...);
}

void PieceCheck::add(const TimelineRow& row,
                     const std::function<std::int32_t(std::int32_t)>& device_of) {
  const bool sends = row.kind == RowKind::send;
  if (row.leg == MessageLeg::whole || (!sends && row.kind != RowKind::recv)) return;
  PieceSide side{row.rank,   row.owner,
                 row.chunk,  row.microbatch,
                 row.part,   row.piece,
                 row.pieces, row.device,
                 -1,         sends ? Role::sent : Role::arrived,
                 row.op,     row.start_ns,
                 row.end_ns, row.size_bytes};
  if (row.leg == MessageLeg::wan && sends) {
    side.to_device = device_of(row.peer);
    messages_.push(side);
  }
  if (row.replica == row.owner) return;  // not a relay's
  if (row.leg == MessageLeg::scatter) side.role = Role::scattered;
  if (row.leg == MessageLeg::gather) side.role = Role::gathered;
  // The other ends of these legs are the owner's.
  if ((side.role == Role::scattered && sends) || (side.role == Role::gathered && !sends)) return;
  relays_.push(side);
}

Diagnostics PieceCheck::finish() {
  for_groups(messages_, message_of, [&](const Sides& sends) { check_message(sends); });
  for_groups(relays_, relay_of, [&](const Sides& sides) { check_relay(sides); });
  return findings_;
}

/// The sends over the WAN of one name: an activation and a gradient where they share it. The n-th
/// of each piece make up a message.
void PieceCheck::check_message(const Sides& sends) {
  const PieceSide& first = sends.front();
  std::vector<Sides> of_piece(to_size(first.pieces));
  for (const PieceSide& send : sends) {
    if (send.pieces != first.pieces)
      return wrong("pieces of a message", send, "is one of {} pieces (op {} is one of {}).",
                   send.pieces, first.op, first.pieces);
    of_piece[at(send.piece)].push_back(send);
  }
  for (std::size_t k = 0; k < of_piece.size(); ++k) {
    if (of_piece[k].size() == of_piece.front().size()) continue;
    return wrong("pieces of a message", first,
                 "belongs to a message of {} pieces, of which piece 0 is there {} times and piece "
                 "{} {} times.",
                 first.pieces, of_piece.front().size(), k, of_piece[k].size());
  }
  for (std::size_t n = 0; n < of_piece.front().size(); ++n) {
    Sides message;
    for (const Sides& piece : of_piece) message.push_back(piece[n]);
    check_sizes(message);
  }
}

void PieceCheck::check_sizes(const Sides& of_piece) {
  const std::int64_t least = of_piece.back().size_bytes;
  for (std::size_t k = 0; k < of_piece.size(); ++k) {
    const std::int64_t size = of_piece[k].size_bytes;
    const std::int64_t more = k == 0 ? static_cast<std::int64_t>(of_piece.size()) - 1 : 0;
    if (least <= size && size <= least + more) continue;
    return wrong("sizes of pieces", of_piece[k],
                 "has {} bytes, piece {} of {} (the last one has {}; a message is cut evenly).",
                 size, k, of_piece.size(), least);
  }
}

void PieceCheck::check_relay(const Sides& sides) {
  check_passed_on(of_role(sides, Role::scattered), of_role(sides, Role::sent), "scatter", "wan");
  check_passed_on(of_role(sides, Role::arrived), of_role(sides, Role::gathered), "wan", "gather");
}

/// Compares the pieces that a relay got with those that it passed on.
void PieceCheck::check_passed_on(const Sides& got, const Sides& passed, const char* from,
                                 const char* to) {
  const char* const sort = "relay without its partner";
  for (std::size_t i = 0; i < std::max(got.size(), passed.size()); ++i) {
    if (i >= got.size())
      return wrong(sort, passed[i], "passes on ({}) a piece that it did not get ({}).", to, from);
    if (i >= passed.size())
      return wrong(sort, got[i], "gets ({}) a piece that it does not pass on ({}).", from, to);
    if (passed[i].size_bytes != got[i].size_bytes)
      return wrong(sort, passed[i], "passes on {} bytes (op {} brought {}).", passed[i].size_bytes,
                   got[i].op, got[i].size_bytes);
    if (passed[i].start_ns < got[i].end_ns - context_.slack_ns)
      return wrong(sort, passed[i], "starts at {} ns, before op {} brings the piece at {} ns.",
                   passed[i].start_ns, got[i].op, got[i].end_ns);
  }
}

}  // namespace longhaul::trace
