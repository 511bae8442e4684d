#pragma once

// A message that two pipelines relay, made by hand: rank 0 and 1 in west, 2 and 3 in east; ranks 0
// and 2 are the owner's. 11 bytes in pieces of 6 and 5.
#include <cstdint>
#include <string>

#include "trace/timeline/timeline.hpp"

namespace longhaul::testing {

enum Row : std::size_t {
  produced,
  scatter_out,
  wan_out_0,
  scatter_in,
  wan_out_1,
  consumed,
  wan_in_0,
  gather_in,
  wan_in_1,
  gather_out,
};

struct Span {
  std::int64_t start, end;
};

class RelayMaker {
public:
  RelayMaker() {
    timeline.schedules = {"hand-made"};
    timeline.datacenters = {"west", "east"};
  }
  TimelineRow& add(int rank, RowKind kind, const std::string& lane, Span span) {
    TimelineRow row;
    row.op = static_cast<std::int64_t>(timeline.rows.size());
    row.rank = rank;
    row.replica = rank % 2;
    row.device = row.datacenter = rank / 2;
    row.lane = static_cast<std::int32_t>(timeline.lanes.size());
    timeline.lanes.push_back(lane);
    row.kind = kind;
    row.chunk = row.device;
    row.microbatch = MicrobatchId{5};
    row.ready_ns = row.start_ns = span.start;
    row.end_ns = span.end;
    row.planned_ns = span.end - span.start;
    return timeline.rows.emplace_back(row);
  }
  void leg(int rank, int peer, bool sends, MessageLeg leg, int piece, Span span) {
    TimelineRow& row =
        add(rank, sends ? RowKind::send : RowKind::recv, std::string{to_string(leg)} + ">", span);
    row.chunk = ChunkId{0};
    row.peer = peer;
    row.leg = leg;
    row.piece = piece;
    row.pieces = 2;
    row.size_bytes = piece == 0 ? 6 : 5;
  }
  Timeline timeline;
};

/// The relay's piece is there at 110 and waits for its turn until 125.
inline Timeline relayed() {
  RelayMaker maker;
  maker.add(0, RowKind::F, "compute", {0, 100});
  maker.leg(0, 1, true, MessageLeg::scatter, 1, {100, 110});
  maker.leg(0, 2, true, MessageLeg::wan, 0, {100, 130});
  maker.leg(1, 0, false, MessageLeg::scatter, 1, {100, 110});
  maker.leg(1, 3, true, MessageLeg::wan, 1, {125, 155});
  maker.timeline.rows.back().ready_ns = 110;
  maker.add(2, RowKind::F, "compute", {215, 315}).bound_by = gather_in;
  maker.timeline.rows.back().bound_kind = BoundKind::dependency;
  maker.leg(2, 0, false, MessageLeg::wan, 0, {100, 180});
  maker.leg(2, 3, false, MessageLeg::gather, 1, {205, 215});
  maker.leg(3, 1, false, MessageLeg::wan, 1, {125, 205});
  maker.leg(3, 2, true, MessageLeg::gather, 1, {205, 215});
  return maker.timeline;
}

}  // namespace longhaul::testing
