#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"

namespace longhaul {

/// Why an op did not start earlier than it did: nothing (it could start with the iteration), an op
/// it depends on that ended last, the op before it on its lane, the op that held a resource it
/// needs, or its other side (the matching receive or send, a member of the group). X(enumerator,
/// name, number in a trace).
#define LONGHAUL_BOUND_KINDS(X)  \
  X(start, "start", 0)           \
  X(dependency, "dependency", 1) \
  X(lane, "lane", 2) X(resource, "resource", 3) X(rendezvous, "rendezvous", 4)
LONGHAUL_NUMBERED_ENUM(BoundKind, LONGHAUL_BOUND_KINDS);

/// When an op ran, from the start of the iteration, and what it waited for last.
struct OpTime {
  Duration ready{}, start{}, end{};
  OpId bound_by = kNone<OpId>;  ///< kNone where bound_kind is start
  BoundKind bound_kind = BoundKind::start;
};
static_assert(sizeof(OpTime) == 32, "two to a cache line: the simulator's speed rests on it");

/// Times of every op of a plan (index: op id), as sim and the engine both give them.
using OpTimes = std::vector<OpTime>;

/// Times of every op, and what few plans have: ops that may not run, or that note a version. An op
/// that did not run has times of 0. Empty tables: all ran, none has a version.
struct OpResults {
  OpTimes times;
  std::vector<Outcome> outcomes{};
  std::vector<std::int32_t> versions{};
};

/// One op of one iteration of one schedule, predicted or measured. Times are from the iteration's
/// start (the first op on any rank). Absent ids are -1; a member with the value that it has here
/// says nothing.
///  - block: start..end is the computation; `size_bytes` is the activation memory it takes at its
///    start (positive) or releases at its end (negative).
///  - send: start..end is the transfer (the link held); `peer` is the receiver's rank.
///  - recv: start is the transfer's start, end the arrival (transfer + latency).
///  - collective: start..end as all members see it; `peer` is the lowest rank of the group.
struct TimelineRow {
  std::int32_t schedule = 0;  ///< index into Timeline::schedules
  std::int32_t iteration = 0;
  std::int64_t op = 0;
  std::int32_t rank = 0;
  std::int32_t replica = 0;
  std::int32_t device = 0;
  std::int32_t datacenter = 0;  ///< index into Timeline::datacenters
  std::int32_t lane = 0;        ///< index into Timeline::lanes
  std::int32_t resource = -1;   ///< index into Timeline::resources: the narrowest it held
  RowKind kind = RowKind::F;
  std::int32_t chunk = -1;
  std::int32_t microbatch = -1;
  std::int32_t part = 0;
  std::int32_t parts = 1;
  std::int32_t peer = -1;
  MessageLeg leg = MessageLeg::whole;
  /// The replica whose block or message it is, of a collective its first member's; `replica` is the
  /// rank's.
  std::int32_t owner = 0;
  std::int32_t piece = 0;  ///< of the message, from 0
  std::int32_t pieces = 1;
  std::int32_t collective = -1;      ///< that it is of: index into Timeline::collectives
  std::int32_t step = -1;            ///< of that collective, from 0
  std::int32_t level = -1;           ///< of a message: its NetworkLevel
  std::int32_t layer = -1;           ///< of the model, from 0
  std::int32_t operator_index = -1;  ///< index into Timeline::operators; column "operator"
  std::int32_t slice = 0;            ///< of the block's or message's tensor, from 0
  std::int32_t slices = 1;
  std::int32_t outcome = 0;   ///< an Outcome
  std::int32_t version = -1;  ///< of the weights that it uses, from 0
  std::int32_t request = -1;  ///< from outside, that it is of
  std::int32_t tokens = -1;   ///< of that request's prompt, that it computes or carries
  std::int64_t size_bytes = 0;
  std::int64_t planned_ns = 0;  ///< duration by plan: block, transfer, latency (recv), collective
  std::int64_t ready_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t bound_by = -1;  ///< op id
  BoundKind bound_kind = BoundKind::start;
  friend bool operator==(const TimelineRow&, const TimelineRow&) = default;
};

/// Does the row say when something was? Others have times of 0.
[[nodiscard]] constexpr bool has_run(const TimelineRow& row) {
  return has_run(static_cast<Outcome>(row.outcome));
}

/// One iteration of one schedule.
struct IterationKey {
  int schedule = 0;  ///< index into Timeline::schedules, position in a run's list
  int iteration = 0;
  friend auto operator<=>(const IterationKey&, const IterationKey&) = default;
};

/// Rows of a file that are left out, since their kind is none of RowKind: a newer program's.
struct RowsLeftOut {
  int kind = 0;      ///< number in the file
  std::string name;  ///< in the file
  std::uint64_t rows = 0;
};

/// Ends the name of a lane whose ops may pass each other: it chooses, or some of them may not run.
inline constexpr std::string_view kAnyOrder = " (any order)";

/// Rows and the names that they refer to by index. Rows of one (schedule, iteration) lie together,
/// ordered by op id.
struct Timeline {
  std::vector<std::string> schedules;
  std::vector<std::string> datacenters;
  std::vector<std::string> lanes;
  std::vector<std::string> resources;
  std::vector<std::string> collectives;  ///< such as "all_reduce of chunk 3"
  std::vector<std::string> operators;
  std::vector<TimelineRow> rows;
  std::vector<RowsLeftOut> left_out;  ///< of the whole file that they were read from

  /// The names alone.
  [[nodiscard]] Timeline without_rows() const {
    return {schedules, datacenters, lanes, resources, collectives, operators, {}, left_out};
  }
};

}  // namespace longhaul
