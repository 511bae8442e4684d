#pragma once

#include <unordered_set>
#include <vector>

#include "engine/engine_state.hpp"

namespace longhaul::engine {

/// This rank's receives. Those that depend on nothing (decoupled plans) are posted early, a window
/// of them in each lane, in the order of the sends; the others (grouped plans) when what they wait
/// for is done, and then the sender is told so. Posted is the receive of the header; room for the
/// payload is taken, and its transfer begins, when the header has been seen: so no stamp of a
/// header waits for the copy of a payload. The nominal
/// transfer counts from when this rank sees the message's header, the latency from its end: by this
/// rank's clock alone, never by a stamp of the sender's. What is checked at once is checked before
/// the receive ends, so before a block or a relay's send takes it.
class RecvLanes {
public:
  explicit RecvLanes(EngineState& state);
  void begin_iteration();

  /// Posts what can be posted; true if anything moved.
  bool advance();
  void header_came(OpId recv, std::size_t size, TimePoint at);
  void payload_came(OpId recv, const comm::Completion& completion, TimePoint at);
  /// The message has arrived: transfer and latency are over.
  void arrived(OpId recv, TimePoint due, TimePoint at);
  /// It counted as right and was not.
  void found_late(const LateVerdict& late);

private:
  static constexpr std::uint32_t kWindow = 16;
  struct ReceiveCursor : LaneCursor {
    std::uint32_t open = 0;  ///< posted, payload not there yet
  };
  struct MessageInFlight {
    OpId op = kNone<OpId>;
    ReceiveCursor* lane = nullptr;
    TimePoint start{};                              ///< its header was seen
    TimePoint transferred = kNever, over = kNever;  ///< by the transport's stamps
    std::int64_t go_ahead_lag_ns = 0;               ///< the word for the sender
    MessageHeader header;
    Payload payload;
    Payloads::Verdict verdict{};  ///< on header and payload together
    PayloadId found;              ///< what the payload says that it is, where that is wrong
  };

  void post(ReceiveCursor& lane, OpId recv);
  void receive_payload(MessageInFlight& flight);
  void finish_transfer(MessageInFlight& flight, TimePoint at);
  void check(MessageInFlight& flight, std::size_t size) const;
  void count(const MessageInFlight& flight);
  void count_wrong(const WrongMessage& wrong);
  void pass_on(MessageInFlight& flight);
  MessageInFlight& flight_of(OpId op);

  EngineState& state_;
  std::vector<ReceiveCursor> lanes_;
  std::unordered_set<OpId> counted_wrong_;                 ///< in this iteration
  std::vector<std::unique_ptr<MessageInFlight>> flights_;  ///< reused; op none: free
};

}  // namespace longhaul::engine
