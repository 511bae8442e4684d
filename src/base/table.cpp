#include "base/table.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul {
namespace {

constexpr std::size_t kBetween = 2;

bool begins_a_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

/// Columns on the terminal: code points, since every glyph we print is one column wide.
std::size_t width(const std::string& cell) {
  return to_size(std::count_if(cell.begin(), cell.end(), begins_a_character));
}

std::string padded(const std::string& cell, std::size_t to, Align align) {
  const std::string blanks(to - std::min(to, width(cell)), ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

/// Its end, after three points: names of files differ there.
std::string shortened(const std::string& cell, std::size_t to) {
  const std::size_t wide = width(cell);
  if (wide <= to) return cell;
  std::size_t dropped = wide - to + 3;
  std::size_t at = 0;
  for (; at < cell.size(); ++at) {
    if (begins_a_character(cell[at]) && dropped-- == 0) break;
  }
  return "..." + cell.substr(at);
}

std::size_t sum_of(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  LONGHAUL_ASSERT(cells.size() <= columns_.size(), "{} cells in a table of {} columns",
                  cells.size(), columns_.size());
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(TableWidth width) const {
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  std::vector<std::size_t> widths = widths_of(shown);
  if (width == TableWidth::whole || columns_.empty()) return lines_of(shown, widths);
  std::vector<std::size_t> left_out;
  while (sum_of(widths) > kTableWidth) {
    const auto rank = [&](std::size_t c) {
      return columns_[c].leaves == 0 ? std::numeric_limits<int>::max() : columns_[c].leaves;
    };
    const auto from_the_end = std::ranges::min_element(shown.rbegin(), shown.rend(), {}, rank);
    if (columns_[*from_the_end].leaves == 0) break;
    left_out.push_back(*from_the_end);
    shown.erase(std::next(from_the_end).base());
    widths = widths_of(shown);
  }
  while (sum_of(widths) > kTableWidth) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const bool cuts = columns_[shown[i]].align == Align::left && widths[i] > 16;
      if (cuts && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
  }
  std::string text = lines_of(shown, widths);
  if (left_out.empty()) return text;
  std::ranges::sort(left_out);
  std::string names;
  for (const std::size_t c : left_out) names += (names.empty() ? "" : ", ") + columns_[c].title;
  return text + "(--wide shows the rest: " + names + ")\n";
}

std::vector<std::size_t> Table::widths_of(const std::vector<std::size_t>& shown) const {
  std::vector<std::size_t> widths;
  for (const std::size_t c : shown) {
    std::size_t widest = width(columns_[c].title);
    for (const auto& row : rows_) widest = std::max(widest, width(row[c]));
    widths.push_back(widest);
  }
  return widths;
}

std::string Table::lines_of(const std::vector<std::size_t>& shown,
                            const std::vector<std::size_t>& widths) const {
  std::string out;
  const auto add_line = [&](auto&& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i > 0) line += std::string(kBetween, ' ');
      line += padded(shortened(cell_of(shown[i], widths[i]), widths[i]), widths[i],
                     columns_[shown[i]].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  add_line([&](std::size_t c, std::size_t) { return columns_[c].title; });
  add_line([](std::size_t, std::size_t wide) { return std::string(wide, '-'); });
  for (const auto& row : rows_) add_line([&](std::size_t c, std::size_t) { return row[c]; });
  return out;
}

}  // namespace longhaul
