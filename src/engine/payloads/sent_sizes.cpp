#include "engine/payloads/sent_sizes.hpp"

#include <algorithm>

#include "engine/payloads/collective_data_plane.hpp"
#include "engine/payloads/message.hpp"
#include "engine/payloads/relay_buffers.hpp"

namespace longhaul::engine {
namespace {

Bytes longest_step(const plan::CollectiveSteps& steps) {
  Bytes longest;
  for (const plan::StepMessage& message : steps.messages) longest = std::max(longest, message.size);
  return longest;
}

SentSize of_steps(const SteppedCollective& stepped, const SendCaps& caps) {
  const Bytes nominal = longest_step(*stepped.steps);
  plan::Collective kept = stepped.collective;
  kept.size = kept_vector(stepped, caps);
  if (kept.size == stepped.collective.size) return {nominal, nominal};
  return {longest_step(plan::steps_of(kept)), nominal};
}

/// Rooms for large payloads of a lane: those that leave are made ahead, those that come are one
/// more than have not left.
Bytes memory_of_lane(const Plan& plan, const Lane& lane, const RelayTable& relays, Bytes cap) {
  Bytes largest, relayed;
  for (std::uint32_t place = 0; place < lane.count; ++place) {
    const OpId id{static_cast<std::uint32_t>(index(lane.first)) + place};
    if (is_step(plan.op(id))) continue;
    const Bytes size = std::min(plan.op(id).size, cap);
    largest = std::max(largest, size);
    const bool is_kept = lane.kind == OpKind::recv && relays.send_after(id) != kNone<OpId>;
    if (is_kept) relayed += size;
  }
  const std::uint32_t most = lane.kind == OpKind::send ? kMostUnsent + kMadeAhead : kMostUnsent + 1;
  return relayed + largest * std::min(lane.count, most);
}

/// The vector, and at most as much again in messages that come and in those that leave.
Bytes memory_of_steps(const SteppedCollective& stepped, const SendCaps& caps) {
  plan::Collective kept = stepped.collective;
  kept.size = kept_vector(stepped, caps);
  return CollectiveDataPlane::memory_of(kept) * 3;
}

/// Numbers that a member brings and gets in one call.
Bytes memory_of_calls(const Plan& plan, const Lane& lane, Bytes cap) {
  Bytes total;
  for (std::uint32_t place = 0; place < lane.count; ++place) {
    const Op& op = plan.ops[index(lane.first) + place];
    total += std::min(op.size, cap) * 2;
  }
  return total;
}

}  // namespace

SentSize& SentSize::operator|=(const SentSize& other) {
  if (other.nominal > nominal) *this = other;
  return *this;
}

Bytes largest_payload(const Plan& plan, Bytes cap) {
  Bytes largest;
  for (const Op& op : plan.ops)
    if (op.kind != OpKind::compute && !is_step(op)) largest = std::max(largest, op.size);
  return std::min(largest, cap);
}

Bytes kept_vector(const SteppedCollective& stepped, const SendCaps& caps) {
  const Bytes longest = longest_step(*stepped.steps);
  const Bytes size = stepped.collective.size;
  if (longest <= caps.message) return std::min(size, caps.vector);
  const double part =
      static_cast<double>(caps.message.count()) / static_cast<double>(longest.count());
  const auto capped = static_cast<std::int64_t>(part * static_cast<double>(size.count()));
  return std::min(Bytes{std::max<std::int64_t>(capped, stepped.collective.pieces)}, caps.vector);
}

SentSizes sent_sizes(const Plan& plan, const SendCaps& caps) {
  SentSizes sizes;
  for (const Op& op : plan.ops) {
    const SentSize size{std::min(op.size, caps.message), op.size};
    if (op.kind == OpKind::send && !is_step(op)) sizes.messages |= size;
    if (op.kind == OpKind::collective) sizes.collectives |= size;
  }
  for (const SteppedCollective& stepped : plan.stepped)
    sizes.collectives |= of_steps(stepped, caps);
  return sizes;
}

Bytes payload_memory(const Plan& plan, Rank rank, const SendCaps& caps) {
  const RelayTable relays{plan, rank};
  Bytes total = largest_payload(plan, caps.message) * 2;  // of which payloads take windows
  Bytes largest;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank) continue;
    if (lane.kind == OpKind::collective) total += memory_of_calls(plan, lane, caps.message);
    if (lane.kind != OpKind::send && lane.kind != OpKind::recv) continue;
    total += memory_of_lane(plan, lane, relays, caps.message);
    for (std::uint32_t place = 0; place < lane.count; ++place)
      if (const Op& op = plan.ops[index(lane.first) + place]; !is_step(op))
        largest = std::max(largest, std::min(op.size, caps.message));
  }
  for (const SteppedCollective& stepped : plan.stepped)
    if (std::ranges::binary_search(stepped.collective.members, rank))
      total += memory_of_steps(stepped, caps);
  return total + largest * kMostUncompared;
}

}  // namespace longhaul::engine
