#include "plan/lowering/relay_lowering.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"

namespace longhaul::plan {

RelayLowering::RelayLowering(const Schedule& schedule, const Scenario& scenario,
                             const schedule::BlockCosts& costs, Plan& plan, Network& network,
                             const std::vector<LaneId>& compute_lanes)
    : schedule_{schedule},
      scenario_{scenario},
      costs_{costs},
      plan_{plan},
      network_{network},
      compute_lanes_{compute_lanes},
      turns_{schedule} {}

std::optional<Refusal> RelayLowering::begin(const CellMessages& cell) {
  if (turns_.stated_twice()) return turns_.stated_twice();
  cell_ = cell;
  pairs_.clear();
  const Messages& first = cell.of(0);
  for (std::size_t c = 0; c < first.channels.size(); ++c) {
    const auto& channel = first.channels[c];
    if (!carries(channel)) continue;
    Result<std::vector<Turn>> turns = turns_.of(cell, c);
    if (!turns) return turns.refusal();
    pairs_.push_back({channel.from, channel.to, *std::move(turns), {}, {}});
  }
  const auto ranks = to_size(schedule_.devices * pipelines());
  const auto exchanges = ranks * to_size(pipelines());
  scatters_.assign(ranks, {});
  gathers_.assign(ranks, {});
  scatter_send_.assign(exchanges, {});
  gather_send_.assign(exchanges, {});
  scatter_recv_.assign(exchanges, kNone<LaneId>);
  gather_recv_.assign(exchanges, kNone<LaneId>);
  wan_send_.assign(pairs_.size() * to_size(pipelines()), {});
  wan_recv_.assign(wan_send_.size(), kNone<LaneId>);
  order_scatters();
  order_gathers();
  return std::nullopt;
}

bool RelayLowering::carries(const Messages::Channel& channel) const {
  return scenario_.datacenter_of(rank(0, channel.from)) !=
         scenario_.datacenter_of(rank(0, channel.to));
}

/// A message cannot be scattered before any that its owner sends earlier in the same turns.
void RelayLowering::order_scatters() {
  for (std::uint32_t p = 0; p < pairs_.size(); ++p) {
    Pair& pair = pairs_[p];
    std::vector<std::int32_t> latest(to_size(pipelines()), -1);
    for (std::uint32_t t = 0; t < pair.turns.size(); ++t) {
      const Turn& turn = pair.turns[t];
      std::int32_t& row = latest[at(turn.owner)];
      row = std::max(row, message(turn).sent_after);
      scatters_[slot(pair.from, turn.owner)].push_back({row, p, t});
    }
    pair.scatter_at.resize(pair.turns.size());
  }
  for (std::vector<Place>& places : scatters_) {
    std::ranges::sort(places);
    for (std::uint32_t i = 0; i < places.size(); ++i)
      pairs_[places[i].pair].scatter_at[places[i].turn] = i;
  }
}

/// A message is needed as early as any that comes after it in the same turns.
void RelayLowering::order_gathers() {
  for (std::uint32_t p = 0; p < pairs_.size(); ++p) {
    Pair& pair = pairs_[p];
    std::vector<std::int32_t> earliest(to_size(pipelines()),
                                       std::numeric_limits<std::int32_t>::max());
    for (auto t = static_cast<std::uint32_t>(pair.turns.size()); t-- > 0;) {
      const Turn& turn = pair.turns[t];
      std::int32_t& row = earliest[at(turn.owner)];
      row = std::min(row, message(turn).needed_before);
      gathers_[slot(pair.to, turn.owner)].push_back({row, p, t});
    }
    pair.gather_at.resize(pair.turns.size());
  }
  for (std::vector<Place>& places : gathers_) {
    std::ranges::sort(places);
    for (std::uint32_t i = 0; i < places.size(); ++i)
      pairs_[places[i].pair].gather_at[places[i].turn] = i;
  }
}

RelayLowering::SendLane RelayLowering::add_send_lane(const char* what, Rank from, Rank to,
                                                     std::size_t count) {
  if (count == 0) return {};
  const LaneId lane =
      add_lane(plan_, fmt::format("{}>{}", what, index(to)), OpKind::send, from, to, count);
  return {lane, network_.route(from, to)};
}

LaneId RelayLowering::add_recv_lane(const char* what, Rank from, Rank to, std::size_t count) {
  if (count == 0) return kNone<LaneId>;
  return add_lane(plan_, fmt::format("{}<{}", what, index(from)), OpKind::recv, to, from, count);
}

void RelayLowering::add_send_lanes(int local, DeviceId device) {
  const Rank own = rank(local, device);
  for (int other = 0; other < pipelines(); ++other) {
    if (other == local) continue;
    scatter_send_[slot(device, local, other)] =
        add_send_lane("scatter", own, rank(other, device), scatters_[slot(device, local)].size());
  }
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    if (pairs_[p].from != device) continue;
    wan_send_[wan(p, local)] =
        add_send_lane("wan", own, rank(local, pairs_[p].to), pairs_[p].turns.size());
  }
  for (int other = 0; other < pipelines(); ++other) {
    if (other == local) continue;
    gather_send_[slot(device, local, other)] =
        add_send_lane("gather", own, rank(other, device), gathers_[slot(device, other)].size());
  }
}

void RelayLowering::add_recv_lanes(int local, DeviceId device) {
  const Rank own = rank(local, device);
  for (int other = 0; other < pipelines(); ++other) {
    if (other == local) continue;
    scatter_recv_[slot(device, other, local)] =
        add_recv_lane("scatter", rank(other, device), own, scatters_[slot(device, other)].size());
  }
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    if (pairs_[p].to != device) continue;
    wan_recv_[wan(p, local)] =
        add_recv_lane("wan", rank(local, pairs_[p].from), own, pairs_[p].turns.size());
  }
  for (int other = 0; other < pipelines(); ++other) {
    if (other == local) continue;
    gather_recv_[slot(device, other, local)] =
        add_recv_lane("gather", rank(other, device), own, gathers_[slot(device, local)].size());
  }
}

void RelayLowering::fill() {
  for (const Pair& pair : pairs_) {
    for (std::uint32_t t = 0; t < pair.turns.size(); ++t) {
      const Turn& turn = pair.turns[t];
      const Bytes size = costs_.message(message(turn).producer);
      for (int piece = 0; piece < pipelines(); ++piece)
        fill_piece({&pair, t, turn.owner, piece, share(size, pipelines(), piece)});
    }
  }
}

void RelayLowering::fill_piece(const Piece& piece) {
  const Pair& pair = *piece.pair;
  const Message& m = message(pair.turns[piece.turn]);
  const bool relayed = piece.number != piece.owner;
  OpId done =
      op_at(plan_, compute_lanes_[index(rank(piece.owner, pair.from))], to_size(m.sent_after));
  if (relayed) {
    const std::size_t lane = slot(pair.from, piece.owner, piece.number);
    done = fill_leg(MessageLeg::scatter, scatter_send_[lane], scatter_recv_[lane],
                    pair.scatter_at[piece.turn], piece, done);
  }
  const std::size_t over = wan(to_size(&pair - pairs_.data()), piece.number);
  done = fill_leg(MessageLeg::wan, wan_send_[over], wan_recv_[over], piece.turn, piece, done);
  if (!relayed) return;
  const std::size_t lane = slot(pair.to, piece.number, piece.owner);
  (void)fill_leg(MessageLeg::gather, gather_send_[lane], gather_recv_[lane],
                 pair.gather_at[piece.turn], piece, done);
}

/// Gives back the receive, which the next leg waits for.
OpId RelayLowering::fill_leg(MessageLeg leg, const SendLane& from, LaneId to,
                             std::uint32_t position, const Piece& piece, OpId after) {
  const OpId send = op_at(plan_, from.lane, position);
  const OpId recv = op_at(plan_, to, position);
  join_sides(plan_, send, recv, message(piece.pair->turns[piece.turn]).producer, piece.size,
             from.route);
  for (const OpId side : {send, recv}) {
    Op& op = plan_.ops[index(side)];
    op.leg = leg;
    op.piece = static_cast<std::uint8_t>(piece.number);
    op.pieces = static_cast<std::uint8_t>(pipelines());
    op.owner = static_cast<std::uint8_t>(piece.owner);
  }
  plan_.add_after(plan_.ops[index(send)], after);
  return recv;
}

void RelayLowering::append_waits(int local, DeviceId device, Waits& waits) const {
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    const Pair& pair = pairs_[p];
    if (pair.to != device) continue;
    for (std::uint32_t t = 0; t < pair.turns.size(); ++t) {
      if (pair.turns[t].owner != local) continue;
      const std::int32_t row = message(pair.turns[t]).needed_before;
      for (int piece = 0; piece < pipelines(); ++piece) {
        const bool own = piece == local;
        const LaneId lane =
            own ? wan_recv_[wan(p, local)] : gather_recv_[slot(device, piece, local)];
        waits.emplace_back(row, op_at(plan_, lane, own ? t : pair.gather_at[t]));
      }
    }
  }
}

}  // namespace longhaul::plan
