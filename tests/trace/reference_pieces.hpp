#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "trace/timeline/timeline.hpp"

/// The rules about pieces as plainly as they can be said, with all rows in memory: what the checks
/// that read rows piece by piece are held against.
namespace longhaul::testing {

/// Takes a finding: its sort, the row that it is about, what is wrong with it.
using ReportPiece = std::function<void(const char* sort, const TimelineRow& row, std::string what)>;

/// One message: owner, chunk, microbatch, part, and the two devices.
using MessageName =
    std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
/// What passes through one relay: rank, owner, chunk, microbatch, part, piece. An activation and a
/// gradient may share it: the gradient comes later, for it depends on the activation.
using RelayName =
    std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

inline std::pair<std::int64_t, std::int64_t> by_time(const TimelineRow* row) {
  return {row->start_ns, row->op};
}

class ReferencePieces {
public:
  ReferencePieces(std::span<const TimelineRow> rows, std::int64_t slack_ns,
                  const ReportPiece& report)
      : rows_{rows}, slack_ns_{slack_ns}, report_{report} {}

  void run() {
    for (const TimelineRow& row : rows_) device_of_[row.rank] = row.device;
    for (const TimelineRow& row : rows_) sort_in(row);
    for (const auto& [name, pieces] : wan_sends_) check_message(pieces);
    for (const auto& [name, relay] : relays_) {
      check_passed_on(relay.scattered, relay.sent, "scatter", "wan");
      check_passed_on(relay.arrived, relay.gathered, "wan", "gather");
    }
  }

private:
  using Rows = std::vector<const TimelineRow*>;
  struct Relay {
    Rows scattered, sent, arrived, gathered;
  };

  void sort_in(const TimelineRow& row) {
    const bool sends = row.kind == RowKind::send;
    if (row.leg == MessageLeg::whole || (!sends && row.kind != RowKind::recv)) return;
    if (row.leg == MessageLeg::wan && sends) {
      const auto peer = device_of_.find(row.peer);
      wan_sends_[{row.owner, row.chunk, row.microbatch, row.part, row.device,
                  peer == device_of_.end() ? -1 : peer->second}]
          .push_back(&row);
    }
    if (row.replica == row.owner) return;  // not a relay's
    Relay& relay = relays_[{row.rank, row.owner, row.chunk, row.microbatch, row.part, row.piece}];
    if (row.leg == MessageLeg::scatter && !sends) relay.scattered.push_back(&row);
    if (row.leg == MessageLeg::wan) (sends ? relay.sent : relay.arrived).push_back(&row);
    if (row.leg == MessageLeg::gather && sends) relay.gathered.push_back(&row);
  }

  /// The sends over the WAN of one name: an activation and a gradient where they share it. The n-th
  /// of each piece make up a message.
  void check_message(Rows sends) {
    std::ranges::sort(sends, {}, by_time);
    const TimelineRow& first = *sends.front();
    std::vector<Rows> of_piece(static_cast<std::size_t>(first.pieces));
    for (const TimelineRow* send : sends) {
      if (send->pieces != first.pieces)
        return report_("pieces of a message", *send,
                       fmt::format("is one of {} pieces (op {} is one of {}).", send->pieces,
                                   first.op, first.pieces));
      of_piece[static_cast<std::size_t>(send->piece)].push_back(send);
    }
    for (std::size_t k = 0; k < of_piece.size(); ++k) {
      if (of_piece[k].size() == of_piece.front().size()) continue;
      return report_("pieces of a message", first,
                     fmt::format("belongs to a message of {} pieces, of which piece 0 is there {} "
                                 "times and piece {} {} times.",
                                 first.pieces, of_piece.front().size(), k, of_piece[k].size()));
    }
    for (std::size_t n = 0; n < of_piece.front().size(); ++n) {
      Rows message;
      for (const Rows& piece : of_piece) message.push_back(piece[n]);
      check_sizes(message);
    }
  }

  void check_sizes(const Rows& of_piece) {
    const std::int64_t least = of_piece.back()->size_bytes;
    for (std::size_t k = 0; k < of_piece.size(); ++k) {
      const std::int64_t size = of_piece[k]->size_bytes;
      const std::int64_t more = k == 0 ? static_cast<std::int64_t>(of_piece.size()) - 1 : 0;
      if (least <= size && size <= least + more) continue;
      return report_("sizes of pieces", *of_piece[k],
                     fmt::format("has {} bytes, piece {} of {} (the last one has {}; a message is "
                                 "cut evenly).",
                                 size, k, of_piece.size(), least));
    }
  }

  /// The pieces that a relay got and passed on.
  void check_passed_on(Rows got, Rows passed, const char* from, const char* to) {
    std::ranges::sort(got, {}, by_time);
    std::ranges::sort(passed, {}, by_time);
    for (std::size_t i = 0; i < std::max(got.size(), passed.size()); ++i) {
      if (i >= got.size())
        return report_("relay without its partner", *passed[i],
                       fmt::format("passes on ({}) a piece that it did not get ({}).", to, from));
      if (i >= passed.size())
        return report_("relay without its partner", *got[i],
                       fmt::format("gets ({}) a piece that it does not pass on ({}).", from, to));
      if (passed[i]->size_bytes != got[i]->size_bytes)
        return report_("relay without its partner", *passed[i],
                       fmt::format("passes on {} bytes (op {} brought {}).", passed[i]->size_bytes,
                                   got[i]->op, got[i]->size_bytes));
      if (passed[i]->start_ns < got[i]->end_ns - slack_ns_)
        return report_("relay without its partner", *passed[i],
                       fmt::format("starts at {} ns, before op {} brings the piece at {} ns.",
                                   passed[i]->start_ns, got[i]->op, got[i]->end_ns));
    }
  }

  std::span<const TimelineRow> rows_;
  std::int64_t slack_ns_;
  const ReportPiece& report_;
  std::map<std::int32_t, std::int32_t> device_of_;  ///< by rank
  std::map<MessageName, Rows> wan_sends_;
  std::map<RelayName, Relay> relays_;
};

}  // namespace longhaul::testing
