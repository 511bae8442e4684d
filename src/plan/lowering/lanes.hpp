#pragma once

#include <string>
#include <utility>

#include "plan/network/network.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// Appends a lane of `count` empty ops. A rank's lanes must be added one after the other.
inline LaneId add_lane(Plan& plan, std::string name, OpKind kind, Rank rank, Rank peer,
                       std::size_t count) {
  const auto first = static_cast<std::uint32_t>(plan.ops.size());
  const LaneId id{static_cast<std::uint32_t>(plan.lanes.size())};
  plan.lanes.push_back(
      {std::move(name), kind, rank, peer, OpId{first}, static_cast<std::uint32_t>(count)});
  Op op;
  op.lane = id;
  op.peer = peer;
  plan.ops.resize(plan.ops.size() + count, op);
  return id;
}

/// Id of the op at `position` of a lane.
[[nodiscard]] inline OpId op_at(const Plan& plan, LaneId lane, std::size_t position) {
  return OpId{static_cast<std::uint32_t>(index(plan.lanes[index(lane)].first) + position)};
}

inline void set_block(Op& op, const Block& block) {
  op.block_kind = block.kind;
  op.part = block.part;
  op.parts = block.parts;
  op.chunk = block.chunk;
  op.microbatch = block.microbatch;
}

/// Makes two ops the sides of one transfer of `size` bytes of what `producer` passes on.
inline void join_sides(Plan& plan, OpId send_id, OpId recv_id, const Block& producer, Bytes size,
                       const Route& route) {
  Op& send = plan.ops[index(send_id)];
  Op& recv = plan.ops[index(recv_id)];
  send.kind = OpKind::send;
  recv.kind = OpKind::recv;
  set_block(send, producer);
  set_block(recv, producer);
  send.match = static_cast<std::uint32_t>(index(recv_id));
  recv.match = static_cast<std::uint32_t>(index(send_id));
  send.resources = recv.resources = route.resources;
  send.size = recv.size = size;
  send.duration = size / route.rate;
  recv.duration = route.latency;
}

}  // namespace longhaul::plan
