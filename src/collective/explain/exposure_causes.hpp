#pragma once

#include <array>
#include <string>
#include <vector>

#include "collective/iteration/iteration_times.hpp"

namespace longhaul::collective {

/// What kept a communication from being hidden: what it moves came late; another rank's part did;
/// what its messages hold was taken; the one before it on its lane was not over (or the overlap has
/// it wait for an operation); it is gathered so many units ahead and no more; memory had no room
/// for it earlier; it takes longer than all that could be beside it.
#define LONGHAUL_EXPOSURE_CAUSES(X) \
  X(late_data, "late_data")         \
  X(late_rank, "late_rank")         \
  X(resource, "resource")           \
  X(lane_order, "lane_order")       \
  X(prefetch_depth, "prefetch_depth") X(memory, "memory") X(length, "length")
LONGHAUL_LISTED_ENUM(ExposureCause, LONGHAUL_EXPOSURE_CAUSES);

/// By ExposureCause.
using TimeByCause = std::array<Duration, kCountOf<ExposureCause>>;

/// Time of a communication beside an operator's computation.
struct HiddenBeside {
  std::string name;  ///< of the operator; "optimizer"
  BlockKind work = BlockKind::F;
  Duration time{};
};

/// A rank's part of a communication: its span is what is hidden and what is exposed.
struct ExplainedCommunication {
  CommunicationRef of;
  Span span;
  std::vector<HiddenBeside> beside;  ///< in the order of the device
  TimeByCause exposed{};
  [[nodiscard]] Duration hidden() const;
  [[nodiscard]] Duration total_exposed() const;
};

/// Of a rank with ops and times of its own, in the order in which they begin, in whole nanoseconds.
///
/// Exposed is what lies in the span while the device computes nothing. Of that, where no message of
/// it is on its way, the next one waited for what it holds, or for another rank. The rest would
/// have been hidden had it begun earlier: the latest thing that it waited for answers for as much
/// as lies between that and the second latest, and so on; what is left after the start of the
/// iteration is its length.
[[nodiscard]] std::vector<ExplainedCommunication> explained(const IterationPlan& plan,
                                                            const LoweredIteration& lowered,
                                                            const OpTimes& times, Rank rank);

}  // namespace longhaul::collective
