#pragma once

#include <vector>

#include "engine/arrival_barrier.hpp"
#include "engine/engine_state.hpp"

namespace longhaul::engine {

/// This rank's collectives. The members find each other, exchange what the data plane says by the
/// transport's own collective (the data plane checks it), and hold what that leaves of the nominal
/// time.
class CollectiveLanes {
public:
  explicit CollectiveLanes(EngineState& state);
  void begin_iteration();

  /// Enters what can be entered; true if anything moved.
  bool advance(TimePoint at);
  void gathered(OpId op, TimePoint at);
  /// The real exchange is done.
  void exchanged(OpId op, TimePoint at);
  void over(OpId op, TimePoint due, TimePoint at);

private:
  struct CollectiveState {
    OpId op{};
    std::vector<Rank> members;
    ArrivalBarrier barrier;
    TimePoint start{};
    Cause cause{};  ///< of this rank's coming
  };
  struct CollectiveCursor : LaneCursor {
    bool busy = false;
    Cause free;  ///< when the one before was over
    ShadowTime free_seen;
  };
  void begin(CollectiveState& collective, TimePoint at);
  CollectiveState& state_of(OpId op);

  EngineState& state_;
  std::vector<CollectiveCursor> lanes_;
  std::vector<std::unique_ptr<CollectiveState>> states_;  ///< of this rank's collectives, by op id
};

}  // namespace longhaul::engine
