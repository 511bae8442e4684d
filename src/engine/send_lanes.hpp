#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/engine_state.hpp"

namespace longhaul::engine {

/// This rank's sends. A send waits, in its lane's turn, for its inputs, then (grouped plans) for
/// the receiver's go-ahead, and asks for its link, for which several of a lane may wait; it holds
/// the link for what the real transfer leaves of its nominal time.
class SendLanes {
public:
  explicit SendLanes(EngineState& state);
  void begin_iteration();

  /// Starts what can start; true if anything moved.
  bool advance(TimePoint at);
  void go_ahead(OpId send, TimePoint at);
  /// The header has left.
  void sent(OpId send, TimePoint at);
  /// The payload has left, and with it has passed what the transport held of its time.
  void payload_sent(OpId send, const comm::Completion& completion, TimePoint at);
  /// The nominal time of the transfer is over.
  void hold_over(OpId send, TimePoint due, TimePoint at);

private:
  /// A send that may begin as soon as it has its link.
  struct Asked {
    OpId op = kNone<OpId>;
    Cause cause;
    ShadowTime causes;  ///< as they were seen, with and without credit
  };
  struct SendCursor : LaneCursor {
    bool is_ready = false;  ///< the inputs of the op at the head are there
    Cause cause;            ///< of the op at the head, so far
    std::deque<Asked> asked;
    OpId last = kNone<OpId>;  ///< that began last, and when
    ShadowTime last_start{};
    bool has_go_ahead = false;  ///< of the op at the head
    ShadowTime go_ahead_at{};
    std::int64_t go_ahead_word = 0;  ///< the receiver's lag
  };
  struct MessageInFlight {
    OpId op = kNone<OpId>;
    int unsent = 0;  ///< header and payload
    bool holding = false;
    Duration lag{};           ///< of its start, without credit
    Duration credit{};        ///< of its hold
    ShadowTime end{};         ///< so far
    TimePoint over = kNever;  ///< the transport's hold
    MessageHeader header;
    Payload payload;
  };

  bool ask_next(SendCursor& lane, TimePoint at);
  void expect_go_ahead(SendCursor& lane);
  bool start_first(SendCursor& lane, TimePoint at);
  [[nodiscard]] bool is_full(const SendCursor& lane) const;
  void start(const SendCursor& lane, const Asked& asked, TimePoint at);
  void post(const MessageInFlight& flight, const cuda::LanePace& pace);
  void hold(MessageInFlight& flight, TimePoint begin, Duration nominal);
  void load(MessageInFlight& flight);
  int apply_fault(MessageInFlight& flight) const;
  void finish_if_over(MessageInFlight& flight, TimePoint due, TimePoint at);
  MessageInFlight& new_flight(OpId op);
  MessageInFlight& flight_of(OpId op);

  EngineState& state_;
  std::vector<SendCursor> lanes_;
  std::vector<std::unique_ptr<MessageInFlight>> flights_;  ///< reused; op none: free
};

}  // namespace longhaul::engine
