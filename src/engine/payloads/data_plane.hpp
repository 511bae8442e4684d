#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/transport.hpp"
#include "engine/payloads/fault.hpp"
#include "engine/payloads/message.hpp"

namespace longhaul::engine {

/// Bytes of a message, in whatever memory its data plane keeps them; they live as long as `owner`.
struct Payload {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner;
};

/// A later verdict on a payload that check() took for right, as it could not tell yet.
struct LateVerdict {
  OpId recv{};
  Payloads::Verdict verdict{};  ///< not right
  PayloadId found;
};

/// The contents of a rank's messages and collectives: synthetic bytes that can be told from any
/// others (timed blocks), or the tensors that its blocks make and need (real ones). The engine
/// knows when, the data plane knows what. Calls return at once; one thread. The engine's calls for
/// one message, on its sender and on its receiver:
///     const Payload payload = sender.make(send);
///     Payload room = receiver.room(recv);           // the transport fills room.bytes
///     const auto verdict = receiver.check(recv, room.bytes, found);
///     receiver.deliver(recv, std::move(room));      // before the block that needs it
class DataPlane {
public:
  DataPlane() = default;
  virtual ~DataPlane() = default;
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  /// `run` numbers the plans that these ranks have run.
  virtual void begin_iteration(std::uint32_t run, int iteration) = 0;
  /// After the last block and message of the iteration; may wait.
  [[nodiscard]] virtual std::vector<LateVerdict> end_iteration() { return {}; }

  /// The payload of `send`, whose dependencies are done. Not asked for what a relay takes on: that
  /// goes on as it came.
  [[nodiscard]] virtual Payload make(OpId send) = 0;
  /// Room for what `recv` brings.
  [[nodiscard]] virtual Payload room(OpId recv) = 0;
  /// Is it what it should be? `found`: where it is another message, which.
  [[nodiscard]] virtual Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                PayloadId& found) = 0;
  /// It has come and stays on this rank: before what waits for `recv` starts.
  virtual void deliver(OpId /*recv*/, Payload /*payload*/) {}
  /// Corrupts the payload of `send` as the fault says.
  virtual void corrupt(OpId send, FaultKind how, Payload& payload) = 0;

  /// Memory of this rank's collective, whose inputs are there.
  [[nodiscard]] virtual comm::Exchange exchange(OpId collective) = 0;
  /// It is done; is the result right?
  [[nodiscard]] virtual bool exchanged(OpId collective) = 0;
};

}  // namespace longhaul::engine
