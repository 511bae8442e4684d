#include "engine/payloads/message.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"

namespace longhaul::engine {
namespace {

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
  return static_cast<std::uint64_t>(high) << 32U | low;
}

std::uint64_t pair_of(std::int32_t high, std::int32_t low) {
  return pair_of(static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(low));
}

}  // namespace

bool same_message(const MessageHeader& a, const MessageHeader& b) {
  return a.payload == b.payload && a.send == b.send && a.sequence == b.sequence && a.leg == b.leg;
}

Payloads::Payloads(std::uint64_t seed, Bytes largest)
    : seed_{seed},
      largest_{std::max(sizeof(PayloadId), to_size(largest.count()))},
      pattern_(2 * largest_ + sizeof(std::uint64_t)) {
  Random random{seed};
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= pattern_.size();
       at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(pattern_.data() + at, &word, sizeof word);
  }
}

std::size_t Payloads::bytes_for(Bytes nominal) const {
  return std::clamp(to_size(nominal.count()), sizeof(PayloadId), largest_);
}

std::size_t Payloads::window(const PayloadId& id) const {
  const std::uint32_t block =
      std::uint32_t{id.kind} << 16U | std::uint32_t{id.part} << 8U | id.parts;
  const std::uint64_t when = derived_seed(
      seed_, pair_of(id.run, static_cast<std::uint32_t>(id.iteration)), pair_of(id.piece, block));
  const std::uint64_t draw =
      derived_seed(when, pair_of(id.replica, id.chunk), static_cast<std::uint32_t>(id.microbatch));
  return draw % largest_;
}

void Payloads::fill(const PayloadId& id, std::span<std::byte> payload) const {
  LONGHAUL_ASSERT(payload.size() >= sizeof id && payload.size() <= largest_, "payload of {} bytes",
                  payload.size());
  std::memcpy(payload.data(), &id, sizeof id);
  std::memcpy(payload.data() + sizeof id, pattern_.data() + window(id), payload.size() - sizeof id);
}

Payloads::Verdict Payloads::check(const PayloadId& expected,
                                  std::span<const std::byte> payload) const {
  PayloadId found;
  if (payload.size() < sizeof found) return Verdict::corrupted;
  std::memcpy(&found, payload.data(), sizeof found);
  if (found != expected) return Verdict::wrong_message;
  const auto rest = payload.subspan(sizeof found);
  // std::equal() goes byte by byte, for std::byte is no integer: five times the time of memcmp().
  return std::memcmp(rest.data(), pattern_.data() + window(expected), rest.size()) == 0
             ? Verdict::right
             : Verdict::corrupted;
}

PayloadId payload_id(const Plan& plan, OpId send, std::uint32_t run, int iteration) {
  const Op& op = plan.op(send);
  PayloadId id;
  id.run = run;
  id.iteration = iteration;
  id.replica = number(plan.owner_of(send));
  id.chunk = op.chunk;
  id.microbatch = op.microbatch;
  id.kind = static_cast<std::uint8_t>(op.block_kind);
  id.part = op.part;
  id.parts = op.parts;
  id.piece = op.piece;
  id.pieces = op.pieces;
  id.size_bytes = op.size.count();
  return id;
}

MessageHeader message_header(const Plan& plan, OpId send, std::uint32_t run, int iteration) {
  MessageHeader header;
  header.payload = payload_id(plan, send, run, iteration);
  header.send = static_cast<std::uint32_t>(send);
  header.sequence = static_cast<std::uint32_t>(index(send) - index(plan.lane_of(send).first));
  header.leg = static_cast<std::uint8_t>(plan.op(send).leg);
  return header;
}

std::string to_text(const PayloadId& id) {
  if (id.kind > static_cast<std::uint8_t>(BlockKind::R)) return "no message of ours";
  if (id.chunk < 0)
    return fmt::format("step {} of a collective, iteration {}", id.microbatch, id.iteration);
  const Block block{static_cast<BlockKind>(id.kind), id.part, id.parts, id.chunk, id.microbatch};
  const std::string piece =
      id.pieces > 1 ? fmt::format(", piece {} of {}", id.piece, id.pieces) : std::string{};
  return fmt::format("{} of replica {}{}, iteration {}", longhaul::to_text(block), id.replica,
                     piece, id.iteration);
}

}  // namespace longhaul::engine
