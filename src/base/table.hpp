#pragma once

#include <string>
#include <vector>

namespace longhaul {

enum class Align { left, right };

/// A text table for people: columns as wide as their widest cell, two spaces between them.
///
///     Table table{{{"stage", Align::left}, {"forward"}}};
///     table.add_row({"s0", "21 ms"});
///     fmt::print("{}", table.text());
class Table {
public:
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}

  /// Missing cells at the end are empty; surplus cells are an internal error.
  void add_row(std::vector<std::string> cells);
  /// Header, rule, rows; every line ends with '\n' and has no trailing blanks.
  [[nodiscard]] std::string text() const;

private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace longhaul
