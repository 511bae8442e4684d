#pragma once

#include <vector>

#include "engine/core.hpp"
#include "engine/gathering.hpp"

namespace longhaul {

/// This rank's collectives. The members find each other, exchange what the cargo says by the
/// transport's own collective (the cargo checks it), and hold what that leaves of the nominal time.
class CollectiveSide {
public:
  explicit CollectiveSide(Core& core);
  void begin_iteration();

  /// Enters what can be entered; true if anything moved.
  bool advance(TimePoint at);
  void gathered(OpId op, TimePoint at);
  /// The real exchange is done.
  void exchanged(OpId op, TimePoint at);
  void over(OpId op, TimePoint due, TimePoint at);

private:
  struct Meeting {
    OpId op{};
    std::vector<Rank> members;
    Gathering gathering;
    TimePoint start{};
  };
  struct LaneState {
    LaneId lane{};
    std::uint32_t next = 0, end = 0;  ///< op ids
    bool busy = false;
  };
  void begin(Meeting& meeting, TimePoint at);
  Meeting& meeting_of(OpId op);

  Core& core_;
  std::vector<LaneState> lanes_;
  std::vector<std::unique_ptr<Meeting>> meetings_;  ///< of this rank's collectives, by op id
};

}  // namespace longhaul
