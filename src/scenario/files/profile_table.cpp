#include "scenario/files/profile_table.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "base/index.hpp"
#include "base/suggest.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 50;

/// A table whose columns are found by their names.
class NamedColumns {
public:
  NamedColumns(std::vector<std::string> names, const char* what)
      : names_{std::move(names)}, what_{what} {}

  /// The first line that says something; false where it was taken as the header.
  [[nodiscard]] bool take(CsvLine& line) {
    std::string_view& first = line.words.front();
    if (first.starts_with("\xEF\xBB\xBF")) first.remove_prefix(3);
    if (places_.empty()) {
      read_header(line);
      return false;
    }
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i] >= line.words.size())
        line.refuse("there are {} columns and no \"{}\". Give each line all columns.",
                    line.words.size(), names_[i]);
    if (++rows_ > kMostProfileRows)
      line.refuse("there are more than {} rows (the limit). Take fewer.", kMostProfileRows);
    return true;
  }
  [[nodiscard]] std::string text(const CsvLine& line, std::size_t column) const {
    return std::string{line.words[places_[column]]};
  }
  [[nodiscard]] std::int64_t number(const CsvLine& line, std::size_t column,
                                    std::int64_t most) const {
    const std::string_view text = line.words[places_[column]];
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size() || value < 0 || value > most)
      line.refuse("{} \"{}\" is no whole number from 0 to {}. Correct it.", names_[column],
                  shown(text), most);
    return value;
  }
  [[nodiscard]] Duration time(const CsvLine& line, std::size_t column) const {
    return Duration{number(line, column, kLongestProfileCall.count())};
  }

private:
  void read_header(const CsvLine& line) {
    std::vector<std::string> given(line.words.begin(), line.words.end());
    for (const std::string& name : names_) {
      const auto at = std::ranges::find(given, name);
      if (at == given.end())
        line.refuse("the column \"{}\" is missing ({} has {}). Add it.", name, what_,
                    fmt::join(names_, ", "));
      places_.push_back(to_size(at - given.begin()));
    }
  }

  std::vector<std::string> names_;
  const char* what_;
  std::vector<std::size_t> places_;
  std::size_t rows_ = 0;
};

auto key_of(const ProfileRow& row) {
  return std::tie(row.operation, row.shape, row.type, row.part, row.block);
}

}  // namespace

const ProfileRow* ProfileTable::find(const ProfileRow& wanted) const {
  const ProfileRow* const found = find_anywhere(wanted);
  return found != nullptr && key_of(*found) == key_of(wanted) ? found : nullptr;
}

const ProfileRow* ProfileTable::find_anywhere(const ProfileRow& wanted) const {
  const auto exact = std::ranges::lower_bound(
      rows, wanted, [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
  const auto same = [&](auto at) {
    return at->operation == wanted.operation && at->shape == wanted.shape &&
           at->type == wanted.type;
  };
  if (exact != rows.end() && same(exact)) return &*exact;
  if (exact != rows.begin() && same(exact - 1)) return &*(exact - 1);
  return nullptr;
}

ProfileTable read_profile_table(std::string_view csv, const std::string& source) {
  NamedColumns columns{{"part", "block", "operator", "shape", "type", "calls", "median_ns"},
                       "a profile of operators"};
  ProfileTable table{source, {}};
  each_csv_line(csv, source, [&](CsvLine& line) {
    if (!columns.take(line)) return;
    table.rows.push_back({columns.text(line, 0), columns.text(line, 1), columns.text(line, 2),
                          columns.text(line, 3), columns.text(line, 4),
                          columns.number(line, 5, kMostProfileCalls), columns.time(line, 6),
                          line.number});
  });
  if (table.rows.empty())
    fail("{}: there is no operator in it (a line each is needed). Name a profile.", source);
  std::ranges::stable_sort(table.rows,
                           [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
  const auto twice = std::ranges::adjacent_find(
      table.rows, [](const auto& a, const auto& b) { return key_of(a) == key_of(b); });
  if (twice != table.rows.end())
    fail("{}:{}: {} of {} in block {} of part {} stands twice (also in line {}). Keep one.", source,
         (twice + 1)->line, shown(twice->operation), shown(twice->shape), shown(twice->block),
         shown(twice->part), twice->line);
  return table;
}

std::optional<Duration> CollectiveTable::time(std::string_view operation, std::int64_t ranks,
                                              std::int64_t nodes, std::int64_t size) const {
  constexpr std::int64_t kFarthest = 4;
  const auto key = [](const CollectiveRow& row) {
    return std::tuple{std::string_view{row.operation}, row.ranks, row.nodes, row.size};
  };
  const std::tuple wanted{operation, ranks, nodes, size};
  const auto after = std::ranges::lower_bound(rows, wanted, {}, key);
  const auto fits = [&](auto at) {
    return at->operation == operation && at->ranks == ranks && at->nodes == nodes;
  };
  const bool has_after = after != rows.end() && fits(after);
  const bool has_before = after != rows.begin() && fits(after - 1);
  if (has_after && after->size == size) return after->median;
  if (has_after && has_before) {
    const CollectiveRow& low = *(after - 1);
    return low.median + portion(after->median - low.median, Duration{size - low.size},
                                Duration{after->size - low.size});
  }
  if (!has_after && !has_before) return std::nullopt;
  const CollectiveRow& end = has_after ? *after : *(after - 1);
  if (end.size == 0 || size > kFarthest * end.size || end.size > kFarthest * size)
    return std::nullopt;
  return portion(end.median, Duration{size}, Duration{end.size});
}

CollectiveTable read_collective_table(std::string_view csv, const std::string& source) {
  NamedColumns columns{{"operation", "ranks", "nodes", "size_bytes", "median_ns"},
                       "a table of collectives"};
  CollectiveTable table{source, {}};
  each_csv_line(csv, source, [&](CsvLine& line) {
    if (!columns.take(line)) return;
    table.rows.push_back({columns.text(line, 0), columns.number(line, 1, 1 << 20),
                          columns.number(line, 2, 1 << 20), columns.number(line, 3, kMostCount),
                          columns.time(line, 4)});
  });
  std::ranges::stable_sort(table.rows, {}, [](const CollectiveRow& row) {
    return std::tuple{std::string_view{row.operation}, row.ranks, row.nodes, row.size};
  });
  return table;
}

std::vector<TaskRow> TaskTable::of(const std::string& operation, const std::string& shape) const {
  for (const std::string& name : {operation + ' ' + shape, operation}) {
    const auto found = std::ranges::equal_range(rows, name, {}, &TaskRow::operation);
    if (!found.empty()) return {found.begin(), found.end()};
  }
  return {};
}

TaskTable read_task_table(std::string_view csv, const std::string& source) {
  NamedColumns columns{{"operator", "kernel", "position", "median_ns", "gap_ns"},
                       "a table of tasks"};
  TaskTable table;
  each_csv_line(csv, source, [&](CsvLine& line) {
    if (!columns.take(line)) return;
    table.rows.push_back({columns.text(line, 0), columns.text(line, 1),
                          columns.number(line, 2, 1 << 20), columns.time(line, 3),
                          columns.time(line, 4)});
    if (table.rows.back().kernel.empty())
      line.refuse("a kernel has no name (tables show it). Give it one.");
  });
  std::ranges::stable_sort(table.rows, [](const TaskRow& a, const TaskRow& b) {
    return std::tie(a.operation, a.position) < std::tie(b.operation, b.position);
  });
  return table;
}

}  // namespace longhaul::scenario
