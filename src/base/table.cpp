#include "base/table.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul {
namespace {

/// Columns on the terminal: code points, since every glyph we print is one column wide.
std::size_t width(const std::string& cell) {
  return to_size(std::count_if(cell.begin(), cell.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

std::string padded(const std::string& cell, std::size_t to, Align align) {
  const std::string blanks(to - std::min(to, width(cell)), ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  LONGHAUL_ASSERT(cells.size() <= columns_.size(), "{} cells in a table of {} columns",
                  cells.size(), columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t widest = width(columns_[c].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[c]));
    widths.push_back(widest);
  }
  std::string out;
  const auto add_line = [&](auto&& cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c > 0) line += "  ";
      line += padded(cell_of(c), widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  add_line([&](std::size_t c) { return columns_[c].title; });
  add_line([&](std::size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
  return out;
}

}  // namespace longhaul
