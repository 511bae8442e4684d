#include "runtime/message.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul {

Payloads::Payloads(std::uint64_t seed, Bytes largest)
    : seed_{seed},
      largest_{std::max(sizeof(MessageId), static_cast<std::size_t>(largest.count()))},
      pattern_(2 * largest_ + sizeof(std::uint64_t)) {
  Random random{seed};
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= pattern_.size();
       at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(pattern_.data() + at, &word, sizeof word);
  }
}

std::size_t Payloads::bytes_for(Bytes nominal) const {
  return std::clamp(static_cast<std::size_t>(nominal.count()), sizeof(MessageId), largest_);
}

const std::byte* Payloads::pattern_of(const MessageId& id) const {
  const std::uint64_t draw =
      derived_seed(seed_, id.send, static_cast<std::uint64_t>(id.iteration) << 32U | id.run);
  return pattern_.data() + draw % largest_;
}

void Payloads::fill(const MessageId& id, std::span<std::byte> payload) const {
  LONGHAUL_ASSERT(payload.size() >= sizeof id && payload.size() <= largest_, "payload of {} bytes",
                  payload.size());
  std::memcpy(payload.data(), &id, sizeof id);
  std::memcpy(payload.data() + sizeof id, pattern_of(id), payload.size() - sizeof id);
}

Payloads::Verdict Payloads::check(const MessageId& expected,
                                  std::span<const std::byte> payload) const {
  MessageId found;
  if (payload.size() < sizeof found) return Verdict::corrupted;
  std::memcpy(&found, payload.data(), sizeof found);
  if (found != expected) return Verdict::wrong_message;
  const auto rest = payload.subspan(sizeof found);
  return std::equal(rest.begin(), rest.end(), pattern_of(expected)) ? Verdict::right
                                                                    : Verdict::corrupted;
}

MessageId message_id(const Plan& plan, OpId send, std::uint32_t run, int iteration) {
  const Op& op = plan.op(send);
  const Lane& lane = plan.lane_of(send);
  MessageId id;
  id.run = run;
  id.iteration = iteration;
  id.send = static_cast<std::uint32_t>(send);
  id.sequence = static_cast<std::uint32_t>(index(send) - index(lane.first));
  id.replica = plan.ranks[index(lane.rank)].replica;
  id.chunk = op.chunk;
  id.microbatch = op.microbatch;
  id.kind = static_cast<std::uint8_t>(op.block_kind);
  id.part = op.part;
  id.parts = op.parts;
  id.size_bytes = op.size.count();
  return id;
}

}  // namespace longhaul
