#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/events/live_ops.hpp"
#include "engine/payloads/data_plane.hpp"
#include "engine/payloads/message.hpp"

namespace longhaul::engine {

/// Goes before a payload, also where there is none, so that no receive is left open: the send does
/// not run. It is sent as soon as the start is fixed.
struct EventHeader {
  MessageHeader message;
  std::int64_t starts_in_ns = 0;
  std::int64_t takes_ns = -1;  ///< on its links, where a source said so
  std::uint32_t skipped = 0;
  std::uint32_t reserved = 0;
};
/// The receiver's side is ready, since so long; or it does not run. Its lane lets it start since so
/// long (below 0: in so long).
struct ReadyWord {
  std::int64_t ready_ago_ns = 0;
  std::int64_t lane_ago_ns = 0;
  std::int64_t said_at_ns = 0;  ///< by the receiver's clock
  std::uint32_t skipped = 0;
  std::uint32_t reserved = 0;
};

/// One side of a message of an iteration, from when its lane reaches it until nothing of it is on
/// the way any more.
struct EventMessage {
  OpInstance* op = nullptr;  ///< nullptr: it is over
  EventHeader header;
  ReadyWord word;
  Payload payload;
  int on_the_way = 0;  ///< operations of the transport
  int unsent = 0;      ///< of these header and payload
  bool holding = false;
  bool from_this_host = false;
  bool counts = false;  ///< both sides count its word (OpBoard)
  bool told = false;    ///< the header, or the word, has been sent
};

/// Messages that are used again.
class EventMessages {
public:
  EventMessage& open(OpInstance& op) {
    if (free_.empty()) free_.push_back(std::make_unique<EventMessage>());
    EventMessage& message = *used_.emplace_back(std::move(free_.back()));
    free_.pop_back();
    message = {};
    message.op = &op;
    op.message = &message;
    return message;
  }
  /// Frees it, if nothing of it is on its way and its op is over.
  void close_if_over(EventMessage& message) {
    if (message.op != nullptr || message.on_the_way > 0) return;
    for (auto& each : used_) {
      if (each.get() != &message) continue;
      std::swap(each, used_.back());
      free_.push_back(std::move(used_.back()));
      return used_.pop_back();
    }
  }
  [[nodiscard]] bool none() const { return used_.empty(); }

private:
  std::vector<std::unique_ptr<EventMessage>> used_, free_;
};

}  // namespace longhaul::engine
