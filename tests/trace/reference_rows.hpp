#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "trace/reference_pieces.hpp"
#include "trace/timeline/columns.hpp"
#include "trace/timeline/iteration_view.hpp"
#include "trace/validate/check_context.hpp"

/// The rules about rows as plainly as they can be said, with all rows in memory: what the checks
/// that read rows piece by piece are held against.
namespace longhaul::testing {

inline constexpr std::int32_t kMostPieces = 255;  // the most that a plan can have

inline bool within(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

class ReferenceRows {
public:
  ReferenceRows(const Timeline& timeline, const char* group, std::int64_t slack_ns,
                trace::Diagnostics& findings)
      : timeline_{timeline}, group_{group}, slack_ns_{slack_ns}, findings_{findings} {}

  void run() {
    bool sound = true;
    for (const TimelineRow& row : timeline_.rows) sound = check_values(row) && sound;
    if (!sound) return;  // the rest relies on indices and sums
    const std::span rows{timeline_.rows};
    for (std::size_t first = 0; first < rows.size();) {
      std::size_t last = first + 1;
      while (last < rows.size() && key(rows[last]) == key(rows[first])) ++last;
      check_iteration(rows.subspan(first, last - first));
      first = last;
    }
  }

private:
  static std::pair<std::int32_t, std::int32_t> key(const TimelineRow& row) {
    return {row.schedule, row.iteration};
  }

  /// The row for people: "measured: op 7 (schedule 0, iteration 2)".
  [[nodiscard]] std::string to_text(const TimelineRow& row) const {
    return fmt::format("{}: op {} (schedule {}, iteration {}, rank {})", group_, row.op,
                       row.schedule, row.iteration, row.rank);
  }
  template <typename... Args>
  bool wrong(const char* sort, const TimelineRow& row, fmt::format_string<Args...> format,
             Args&&... args) {
    findings_.add(fmt::format("{}: {}", group_, sort),
                  to_text(row) + " " + fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  bool check_values(const TimelineRow& row) { return check_indices(row) && check_times(row); }

  bool check_indices(const TimelineRow& row) {
    for (const trace::NameColumn& table : trace::name_columns()) {
      const auto names = static_cast<std::int64_t>((timeline_.*table.names).size());
      const std::int32_t index = row.*table.index;
      if (!within(index, table.lowest, names - 1))
        return wrong("index outside its table", row, "has {} {} ({} has {} names).", table.column,
                     index, table.name, names);
    }
    if (static_cast<int>(row.kind) >= kCountOf<RowKind> ||
        static_cast<int>(row.bound_kind) >= kCountOf<BoundKind>)
      return wrong("unknown kind", row, "has kind {} and bound_kind {} (unknown).",
                   static_cast<int>(row.kind), static_cast<int>(row.bound_kind));
    if (row.rank < 0 || row.peer < -1 || row.replica < 0 || row.device < 0)
      return wrong("rank that cannot be", row, "has peer {}, replica {}, device {} (out of range).",
                   row.peer, row.replica, row.device);
    if (row.iteration < 0 || row.op < 0 || row.chunk < -1 || row.microbatch < -1 || row.part < 0 ||
        row.part >= row.parts)
      return wrong("id that cannot be", row, "has chunk {}, microbatch {}, part {} of {}.",
                   row.chunk, row.microbatch, row.part, row.parts);
    const bool message = row.kind == RowKind::send || row.kind == RowKind::recv;
    if (static_cast<int>(row.leg) >= kCountOf<MessageLeg> ||
        (row.leg != MessageLeg::whole && !message))
      return wrong("unknown leg", row, "has leg {} (of a {}).", static_cast<int>(row.leg),
                   to_string(row.kind));
    if (row.owner < 0 || row.piece < 0 || row.piece >= row.pieces || row.pieces > kMostPieces)
      return wrong("piece that cannot be", row, "has owner {}, piece {} of {}.", row.owner,
                   row.piece, row.pieces);
    if (row.bound_by < -1)
      return wrong("id that cannot be", row, "is bound by op {}.", row.bound_by);
    return true;
  }

  bool check_times(const TimelineRow& row) {
    if (row.start_ns > row.end_ns)
      return wrong("end before start", row, "ends at {} ns, before its start at {} ns.", row.end_ns,
                   row.start_ns);
    if (row.start_ns < 0 || row.end_ns > trace::kLargestValue || row.planned_ns < 0 ||
        row.planned_ns > trace::kLargestValue ||
        !within(row.ready_ns, -trace::kLargestValue, trace::kLargestValue))
      return wrong("time out of range", row, "has ready {}, start {}, end {}, planned {} ns.",
                   row.ready_ns, row.start_ns, row.end_ns, row.planned_ns);
    const bool message = row.kind == RowKind::send || row.kind == RowKind::recv;
    if (!within(row.size_bytes, message ? 0 : -trace::kLargestValue, trace::kLargestValue))
      return wrong("size out of range", row, "has a size of {} bytes.", row.size_bytes);
    return true;
  }

  void check_iteration(std::span<const TimelineRow> rows) {
    if (!seen_.insert(key(rows.front())).second)
      wrong("iteration in pieces", rows.front(), "begins a second piece of its iteration.");
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i].op <= rows[i - 1].op) {
        wrong("order of ops", rows[i], "stands behind op {} (rows are ordered by op).",
              rows[i - 1].op);
        return;  // rows cannot be looked up
      }
    }
    // Every rank has ops, so there are no more ranks than rows.
    const auto beyond = std::ranges::find_if(
        rows, [&](const TimelineRow& row) { return !std::cmp_less(row.rank, rows.size()); });
    if (beyond != rows.end()) {
      wrong("rank that cannot be", *beyond, "is one of only {} ops (lower ranks have none).",
            rows.size());
      return;
    }
    check_bounds(rows);
    check_lanes(rows);
    check_resources(rows);
    check_messages(rows);
    const ReportPiece report = [&](const char* sort, const TimelineRow& row,
                                   const std::string& what) { wrong(sort, row, "{}", what); };
    ReferencePieces{rows, slack_ns_, report}.run();
    check_places(rows);
  }

  void check_bounds(std::span<const TimelineRow> rows) {
    const trace::RowIndex index{rows};
    for (const TimelineRow& row : rows) {
      if (row.bound_by >= 0 && index.find(row.bound_by) == trace::kNoRow)
        wrong("bound by nothing", row, "is bound by op {} (no such op).", row.bound_by);
    }
  }

  /// Ops of a lane lie together: a lane is an order, and a device runs one block at a time.
  void check_lanes(std::span<const TimelineRow> rows) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const TimelineRow& before = rows[i - 1];
      const TimelineRow& row = rows[i];
      if (before.rank != row.rank || before.lane != row.lane) continue;
      const bool blocks = is_compute(before.kind) && is_compute(row.kind);
      const std::int64_t earliest = (blocks ? before.end_ns : before.start_ns) - slack_ns_;
      if (row.start_ns < earliest)
        wrong("lane out of order", row, "starts at {} ns, before op {} of its lane {} at {} ns.",
              row.start_ns, before.op, blocks ? "ends" : "starts",
              blocks ? before.end_ns : before.start_ns);
    }
  }

  /// The ops that must not hold a resource together: all transfers on it; of collectives those of
  /// one rank, since its members hold a collective's resources together.
  static std::pair<std::int32_t, std::int32_t> exclusion_of(const TimelineRow& row) {
    return {row.resource, row.kind == RowKind::send ? -1 : row.rank};
  }

  void check_resources(std::span<const TimelineRow> rows) {
    std::vector<const TimelineRow*> holders;
    for (const TimelineRow& row : rows) {
      const bool holds = row.kind == RowKind::send || is_collective(row.kind);
      if (holds && row.resource >= 0) holders.push_back(&row);
    }
    std::ranges::sort(holders, {}, [](const TimelineRow* row) {
      return std::tuple{exclusion_of(*row), row->start_ns, row->end_ns, row->op};
    });
    for (std::size_t i = 1; i < holders.size(); ++i) {
      const TimelineRow& before = *holders[i - 1];
      const TimelineRow& row = *holders[i];
      if (exclusion_of(before) == exclusion_of(row) && row.start_ns < before.end_ns - slack_ns_)
        wrong("resource held twice", row, "takes resource {} at {} ns (op {} holds it until {}).",
              timeline_.resources[static_cast<std::size_t>(row.resource)], row.start_ns, before.op,
              before.end_ns);
    }
  }

  void check_messages(std::span<const TimelineRow> rows) {
    const std::vector<std::size_t> other = trace::match_messages(rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const TimelineRow& row = rows[i];
      if (row.kind != RowKind::send && row.kind != RowKind::recv) continue;
      if (other[i] == trace::kNoRow) {
        wrong("message with one side", row, "is a {} whose other side, on rank {}, is missing.",
              to_string(row.kind), row.peer);
      } else if (row.kind == RowKind::recv && row.end_ns < rows[other[i]].start_ns - slack_ns_) {
        wrong("arrival before departure", row, "arrives at {} ns (op {} sends it at {} ns).",
              row.end_ns, rows[other[i]].op, rows[other[i]].start_ns);
      }
      if (row.kind != RowKind::recv || other[i] == trace::kNoRow) continue;
      if (row.size_bytes != rows[other[i]].size_bytes)
        wrong("message of two sizes", row, "brings {} bytes (op {} sends {}).", row.size_bytes,
              rows[other[i]].op, rows[other[i]].size_bytes);
    }
  }

  /// A rank is one device in one place.
  void check_places(std::span<const TimelineRow> rows) {
    std::int32_t ranks = 0;
    for (const TimelineRow& row : rows) ranks = std::max(ranks, row.rank + 1);
    std::vector<const TimelineRow*> first(static_cast<std::size_t>(ranks), nullptr);
    for (const TimelineRow& row : rows) {
      const TimelineRow*& seen = first[static_cast<std::size_t>(row.rank)];
      if (seen == nullptr) seen = &row;
      if (row.datacenter != seen->datacenter || row.device != seen->device ||
          row.replica != seen->replica)
        wrong("rank in two places", row, "has another datacenter, device or replica than op {}.",
              seen->op);
    }
  }

  const Timeline& timeline_;
  const char* group_;
  std::int64_t slack_ns_;
  trace::Diagnostics& findings_;
  std::set<std::pair<std::int32_t, std::int32_t>> seen_;
};

}  // namespace longhaul::testing
