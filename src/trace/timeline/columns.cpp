#include "trace/timeline/columns.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/error.hpp"

namespace longhaul::trace {
namespace {

static_assert(std::is_standard_layout_v<TimelineRow> && std::is_trivially_copyable_v<TimelineRow>);
static_assert(sizeof(TimelineRow) == 184, "iteration_view.hpp names it");

#define LONGHAUL_COLUMN(member, type) \
  Column { #member, ColumnType::type, offsetof(TimelineRow, member), kFirstSchema }
#define LONGHAUL_COLUMN_OF_3(name, member, type) \
  Column { name, ColumnType::type, offsetof(TimelineRow, member), 3 }
#define LONGHAUL_COLUMN_OF_4(name, member, type) \
  Column { name, ColumnType::type, offsetof(TimelineRow, member), 4 }
constexpr std::array kColumns{LONGHAUL_COLUMN(schedule, int32),
                              LONGHAUL_COLUMN(iteration, int32),
                              LONGHAUL_COLUMN(op, int64),
                              LONGHAUL_COLUMN(rank, int32),
                              LONGHAUL_COLUMN(replica, int32),
                              LONGHAUL_COLUMN(device, int32),
                              LONGHAUL_COLUMN(datacenter, int32),
                              LONGHAUL_COLUMN(lane, int32),
                              LONGHAUL_COLUMN(resource, int32),
                              LONGHAUL_COLUMN(kind, row_kind),
                              LONGHAUL_COLUMN(chunk, int32),
                              LONGHAUL_COLUMN(microbatch, int32),
                              LONGHAUL_COLUMN(part, int32),
                              LONGHAUL_COLUMN(parts, int32),
                              LONGHAUL_COLUMN(peer, int32),
                              LONGHAUL_COLUMN(leg, row_leg),
                              LONGHAUL_COLUMN(owner, int32),
                              LONGHAUL_COLUMN(piece, int32),
                              LONGHAUL_COLUMN(pieces, int32),
                              LONGHAUL_COLUMN_OF_3("collective", collective, int32),
                              LONGHAUL_COLUMN_OF_3("step", step, int32),
                              LONGHAUL_COLUMN_OF_3("level", level, level),
                              LONGHAUL_COLUMN_OF_3("layer", layer, int32),
                              LONGHAUL_COLUMN_OF_3("operator", operator_index, int32),
                              LONGHAUL_COLUMN_OF_3("slice", slice, int32),
                              LONGHAUL_COLUMN_OF_3("slices", slices, int32),
                              LONGHAUL_COLUMN_OF_3("outcome", outcome, outcome),
                              LONGHAUL_COLUMN_OF_3("version", version, int32),
                              LONGHAUL_COLUMN_OF_4("request", request, int32),
                              LONGHAUL_COLUMN_OF_4("tokens", tokens, int32),
                              LONGHAUL_COLUMN(size_bytes, int64),
                              LONGHAUL_COLUMN(planned_ns, int64),
                              LONGHAUL_COLUMN(ready_ns, int64),
                              LONGHAUL_COLUMN(start_ns, int64),
                              LONGHAUL_COLUMN(end_ns, int64),
                              LONGHAUL_COLUMN(bound_by, int64),
                              LONGHAUL_COLUMN(bound_kind, bound_kind)};
#undef LONGHAUL_COLUMN
#undef LONGHAUL_COLUMN_OF_3
#undef LONGHAUL_COLUMN_OF_4
static_assert(kColumns.size() < 64, "a ColumnSet has so many bits");

/// The columns that may be empty lie together, so that a row that has none of them is seen at once.
constexpr std::size_t kFirstThatMayBeEmpty = offsetof(TimelineRow, collective);
constexpr std::size_t kBytesThatMayBeEmpty =
    offsetof(TimelineRow, tokens) + sizeof(TimelineRow::tokens) - kFirstThatMayBeEmpty;
static_assert(std::ranges::all_of(kColumns, [](const Column& column) {
  const bool among = column.offset - kFirstThatMayBeEmpty < kBytesThatMayBeEmpty;
  return among == may_be_empty(column);
}));

constexpr ColumnSet kMayBeEmpty = [] {
  ColumnSet columns = 0;
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    columns |= ColumnSet{may_be_empty(kColumns[i]) ? 1U : 0U} << i;
  return columns;
}();

constexpr std::array kNameColumns{
    NameColumn{"schedules", "schedule", &Timeline::schedules, &TimelineRow::schedule, 0, 2},
    NameColumn{"datacenters", "datacenter", &Timeline::datacenters, &TimelineRow::datacenter, 0, 2},
    NameColumn{"lanes", "lane", &Timeline::lanes, &TimelineRow::lane, 0, 2},
    NameColumn{"resources", "resource", &Timeline::resources, &TimelineRow::resource, -1, 2},
    NameColumn{"collectives", "collective", &Timeline::collectives, &TimelineRow::collective, -1,
               3},
    NameColumn{"operators", "operator", &Timeline::operators, &TimelineRow::operator_index, -1, 3}};

/// Calls `copy(row member, position in values)` with the width as a constant, so that each copy is
/// one move.
template <typename Visit>
void for_width(ColumnType type, Visit&& visit) {
  switch (size_of(type)) {
    case 1: return visit(std::integral_constant<std::size_t, 1>{});
    case 4: return visit(std::integral_constant<std::size_t, 4>{});
    default: return visit(std::integral_constant<std::size_t, 8>{});
  }
}

}  // namespace

std::size_t size_of(ColumnType type) {
  switch (type) {
    case ColumnType::int32:
    case ColumnType::level:
    case ColumnType::outcome: return 4;
    case ColumnType::int64: return 8;
    case ColumnType::row_kind:
    case ColumnType::row_leg:
    case ColumnType::bound_kind: return 1;
  }
  return 0;
}

std::span<const Column> timeline_columns() { return kColumns; }
std::span<const NameColumn> name_columns() { return kNameColumns; }

ColumnSet columns_in_use(std::span<const TimelineRow> rows) {
  static const TimelineRow kSaysNothing;
  const auto bytes_of = [](const TimelineRow& row, std::size_t offset) {
    return reinterpret_cast<const std::byte*>(&row) + offset;
  };
  const auto differs = [&](const TimelineRow& row, std::size_t offset, std::size_t bytes) {
    return std::memcmp(bytes_of(row, offset), bytes_of(kSaysNothing, offset), bytes) != 0;
  };
  ColumnSet in_use = ((ColumnSet{1} << kColumns.size()) - 1) & ~kMayBeEmpty;
  for (const TimelineRow& row : rows) {
    if (!differs(row, kFirstThatMayBeEmpty, kBytesThatMayBeEmpty)) continue;
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      in_use |= ColumnSet{differs(row, kColumns[i].offset, size_of(kColumns[i].type)) ? 1U : 0U}
                << i;
  }
  return in_use;
}

void fill(const TimelineRow& from, ColumnSet columns, std::span<TimelineRow> rows) {
  if (columns == kMayBeEmpty) {  // in one pass, for traces that say nothing in any of them
    for (TimelineRow& row : rows)
      std::memcpy(reinterpret_cast<std::byte*>(&row) + kFirstThatMayBeEmpty,
                  reinterpret_cast<const std::byte*>(&from) + kFirstThatMayBeEmpty,
                  kBytesThatMayBeEmpty);
    return;
  }
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if ((columns >> i & 1U) == 0) continue;
    for_width(kColumns[i].type, [&](auto width) {
      const std::size_t offset = kColumns[i].offset;
      for (TimelineRow& row : rows)
        std::memcpy(reinterpret_cast<std::byte*>(&row) + offset,
                    reinterpret_cast<const std::byte*>(&from) + offset, width);
    });
  }
}

void gather(std::span<const TimelineRow> rows, const Column& column, std::span<std::byte> values) {
  LONGHAUL_ASSERT(values.size() == rows.size() * size_of(column.type), "{} bytes for {} rows",
                  values.size(), rows.size());
  for_width(column.type, [&](auto width) {
    const auto* from = reinterpret_cast<const std::byte*>(rows.data()) + column.offset;
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(values.data() + i * width, from + i * sizeof(TimelineRow), width);
  });
}

void scatter(std::span<const std::byte> values, const Column& column, std::span<TimelineRow> rows) {
  LONGHAUL_ASSERT(values.size() == rows.size() * size_of(column.type), "{} bytes for {} rows",
                  values.size(), rows.size());
  for_width(column.type, [&](auto width) {
    auto* to = reinterpret_cast<std::byte*>(rows.data()) + column.offset;
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(to + i * sizeof(TimelineRow), values.data() + i * width, width);
  });
}

}  // namespace longhaul::trace
