#include "trace/timeline/columns.hpp"
#include "trace/validate/check_context.hpp"

namespace longhaul::trace {
namespace {

constexpr std::int32_t kMostPieces = 255;  // the most that a plan can have

bool within(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

class ValueCheck {
public:
  ValueCheck(const TimelineRow& row, const CheckContext& context, Diagnostics& findings)
      : row_{row}, context_{context}, findings_{findings} {}

  [[nodiscard]] bool run() { return check_indices() && check_ids() && check_times(); }

private:
  template <typename... Args>
  bool wrong(const char* sort, fmt::format_string<Args...> format, Args&&... args) {
    context_.add(findings_, sort, name_of_row(row_), format, std::forward<Args>(args)...);
    return false;
  }

  bool check_indices() {
    for (const NameColumn& table : name_columns()) {
      const auto names = static_cast<std::int64_t>((context_.names->*table.names).size());
      const std::int32_t index = row_.*table.index;
      if (!within(index, table.lowest, names - 1))
        return wrong("index outside its table", "has {} {} ({} has {} names).", table.column, index,
                     table.name, names);
    }
    if (!is_listed(row_.kind) || !is_listed(row_.bound_kind))
      return wrong("unknown kind", "has kind {} and bound_kind {} (unknown).",
                   static_cast<int>(row_.kind), static_cast<int>(row_.bound_kind));
    return true;
  }

  bool check_ids() {
    const TimelineRow& row = row_;
    if (row.rank < 0 || row.peer < -1 || row.replica < 0 || row.device < 0)
      return wrong("rank that cannot be", "has peer {}, replica {}, device {} (out of range).",
                   row.peer, row.replica, row.device);
    if (row.iteration < 0 || row.op < 0 || row.chunk < -1 || row.microbatch < -1 || row.part < 0 ||
        row.part >= row.parts)
      return wrong("id that cannot be", "has chunk {}, microbatch {}, part {} of {}.", row.chunk,
                   row.microbatch, row.part, row.parts);
    const bool message = row.kind == RowKind::send || row.kind == RowKind::recv;
    if (!is_listed(row.leg) || (row.leg != MessageLeg::whole && !message))
      return wrong("unknown leg", "has leg {} (of a {}).", static_cast<int>(row.leg),
                   longhaul::to_string(row.kind));
    if (row.owner < 0 || row.piece < 0 || row.piece >= row.pieces || row.pieces > kMostPieces)
      return wrong("piece that cannot be", "has owner {}, piece {} of {}.", row.owner, row.piece,
                   row.pieces);
    if (row.step < -1 || row.layer < -1 || row.version < -1 ||
        !within(row.level, -1, kCountOf<NetworkLevel> - 1))
      return wrong("id that cannot be", "has step {}, level {}, layer {}, version {}.", row.step,
                   row.level, row.layer, row.version);
    if (row.request < -1 || row.tokens < -1)
      return wrong("id that cannot be", "has request {}, tokens {}.", row.request, row.tokens);
    if (row.slice < 0 || row.slice >= row.slices)
      return wrong("slice that cannot be", "has slice {} of {}.", row.slice, row.slices);
    if (!within(row.outcome, 0, kCountOf<Outcome> - 1))
      return wrong("unknown outcome", "has outcome {} (unknown).", row.outcome);
    if (row.bound_by < -1) return wrong("id that cannot be", "is bound by op {}.", row.bound_by);
    return true;
  }

  bool check_times() {
    const TimelineRow& row = row_;
    if (row.start_ns > row.end_ns)
      return wrong("end before start", "ends at {} ns, before its start at {} ns.", row.end_ns,
                   row.start_ns);
    if (row.start_ns < 0 || row.end_ns > kLargestValue || row.planned_ns < 0 ||
        row.planned_ns > kLargestValue || !within(row.ready_ns, -kLargestValue, kLargestValue))
      return wrong("time out of range", "has ready {}, start {}, end {}, planned {} ns.",
                   row.ready_ns, row.start_ns, row.end_ns, row.planned_ns);
    const bool message = row.kind == RowKind::send || row.kind == RowKind::recv;
    if (!within(row.size_bytes, message ? 0 : -kLargestValue, kLargestValue))
      return wrong("size out of range", "has a size of {} bytes.", row.size_bytes);
    return true;
  }

  const TimelineRow& row_;
  const CheckContext& context_;
  Diagnostics& findings_;
};

}  // namespace

bool check_values(const TimelineRow& row, const CheckContext& context, Diagnostics& findings) {
  return ValueCheck{row, context, findings}.run();
}

}  // namespace longhaul::trace
