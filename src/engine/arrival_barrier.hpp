#pragma once

#include <vector>

#include "engine/engine_state.hpp"

namespace longhaul::engine {

/// Tells its members when all of them have come, without anyone waiting in a call: dissemination,
/// ceil(log2 n) rounds of small messages. Who came last travels along as an age, so that no two
/// clocks are compared.
class ArrivalBarrier {
public:
  /// `op` is this rank's op that waits (none: a barrier); `members` ascending, this rank is one.
  ArrivalBarrier(EngineState& state, std::vector<Rank> members, int tag, OpId op);

  /// This rank has come.
  void enter(TimePoint at, Duration lag = {});
  /// One of our receives is done.
  void received(TimePoint at);
  [[nodiscard]] bool complete() const { return entered_ && round_ == rounds_; }
  /// The op of the member that came last, as far as this rank knows, and when.
  [[nodiscard]] const Cause& latest() const { return latest_; }
  /// By how much later it would be complete without credit.
  [[nodiscard]] Duration lag() const { return seen_.lag(); }

private:
  struct Word {
    std::int64_t age_ns = 0;  ///< how long ago `op` came, when this was sent
    std::int64_t lag_ns = 0;  ///< by how much later it would have been sent without credit
    std::uint32_t op = 0;
    std::uint32_t reserved = 0;
  };
  void send_round(TimePoint at);
  [[nodiscard]] Rank member(std::size_t ahead) const {
    return members_[(self_ + ahead) % members_.size()];
  }

  EngineState& state_;
  std::vector<Rank> members_;
  int tag_;
  OpId op_;
  std::size_t self_ = 0;
  std::size_t rounds_ = 0;
  std::size_t round_ = 0;  ///< rounds that are over
  bool entered_ = false;
  Cause latest_;
  ShadowTime seen_;             ///< what it has waited for so far
  std::vector<Word> out_, in_;  ///< of each round
};

/// Ranks 0 to count - 1.
[[nodiscard]] std::vector<Rank> all_ranks(int count);

}  // namespace longhaul::engine
