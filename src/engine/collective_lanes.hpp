#pragma once

#include <vector>

#include "engine/arrival_barrier.hpp"
#include "engine/engine_state.hpp"

namespace longhaul {

/// This rank's collectives. The members find each other, exchange what the data plane says by the
/// transport's own collective (the data plane checks it), and hold what that leaves of the nominal
/// time.
class CollectiveLanes {
public:
  explicit CollectiveLanes(EngineState& core);
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
    ArrivalBarrier gathering;
    TimePoint start{};
  };
  struct LaneState {
    LaneId lane{};
    std::uint32_t next = 0, end = 0;  ///< op ids
    bool busy = false;
  };
  void begin(CollectiveState& meeting, TimePoint at);
  CollectiveState& meeting_of(OpId op);

  EngineState& core_;
  std::vector<LaneState> lanes_;
  std::vector<std::unique_ptr<CollectiveState>>
      meetings_;  ///< of this rank's collectives, by op id
};

}  // namespace longhaul
