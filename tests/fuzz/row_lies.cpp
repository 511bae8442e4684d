#include <cstring>

#include "fuzz/lies.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::fuzz {
namespace {

constexpr std::size_t kMostRows = 4096;

void lie_in_value(Timeline& timeline, Input& input) {
  if (timeline.rows.empty()) return;
  const auto columns = trace::timeline_columns();
  const trace::Column& column = columns[input.below(columns.size())];
  TimelineRow& row = timeline.rows[input.below(timeline.rows.size())];
  const std::int64_t value = input.number();
  std::memcpy(reinterpret_cast<std::byte*>(&row) + column.offset, &value,
              trace::size_of(column.type));
}

void lie_in_names(Timeline& timeline, Input& input) {
  const auto tables = trace::name_columns();
  std::vector<std::string>& names = timeline.*tables[input.below(tables.size())].names;
  const std::string name{input.text(64)};
  const std::size_t place = input.below(names.size() + 1);
  if (place == names.size())
    names.push_back(name);
  else if (name.empty())
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(place));
  else
    names[place] = name;
}

void lie_in_order(Timeline& timeline, Input& input) {
  auto& rows = timeline.rows;
  if (rows.empty()) return;
  const std::size_t a = input.below(rows.size());
  const std::size_t b = input.below(rows.size());
  switch (input.below(3)) {
    case 0: std::swap(rows[a], rows[b]); break;
    case 1: rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(a)); break;
    default:
      if (rows.size() >= kMostRows) break;
      const TimelineRow copied = rows[a];
      rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(b), copied);
  }
}

}  // namespace

void lie_in_rows(Timeline& timeline, Input& input) {
  switch (input.below(4)) {
    case 0: return lie_in_names(timeline, input);
    case 1: return lie_in_order(timeline, input);
    default: return lie_in_value(timeline, input);
  }
}

}  // namespace longhaul::fuzz
