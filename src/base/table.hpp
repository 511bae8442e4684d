#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhaul {

enum class Align { left, right };

/// How wide a table may be: kTableWidth, for a terminal, or as wide as it is.
enum class TableWidth : std::uint8_t { fitting, whole };
inline constexpr std::size_t kTableWidth = 120;

/// A text table for people: columns as wide as their widest cell, two spaces between them.
///
///     Table table{{{"stage", Align::left}, {"forward"}, {"backward", Align::right, 1}}};
///     table.add_row({"s0", "21 ms", "42 ms"});
///     fmt::print("{}", table.text());
class Table {
public:
  struct Column {
    std::string title;
    Align align = Align::right;
    /// Where the table is too wide columns leave in this order, 1 first and of equals the last; 0
    /// stays.
    int leaves = 0;
  };
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}

  /// Missing cells at the end are empty; surplus cells are an internal error.
  void add_row(std::vector<std::string> cells);
  /// Header, rule, rows; every line ends with '\n' and has no trailing blanks. `fitting`: columns
  /// leave until it fits, and a last line names them and --wide, which the program must have; where
  /// it is still too wide, left-aligned cells lose their beginning.
  [[nodiscard]] std::string text(TableWidth width = TableWidth::whole) const;

private:
  [[nodiscard]] std::vector<std::size_t> widths_of(const std::vector<std::size_t>& shown) const;
  [[nodiscard]] std::string lines_of(const std::vector<std::size_t>& shown,
                                     const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace longhaul
