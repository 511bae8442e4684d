#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "profile/machine.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::profile {
namespace {

constexpr double kLatencyShare = 0.4;

using Table = std::vector<AllReduceTable::Measured>;

double on_lines(std::span<const AllReduceTable::Measured> of_ranks, double bytes) {
  const auto above =
      std::ranges::lower_bound(of_ranks, bytes, {}, &AllReduceTable::Measured::bytes);
  if (above == of_ranks.begin())
    return above->ns * (kLatencyShare + (1 - kLatencyShare) * bytes / above->bytes);
  const auto& below = *std::prev(above);
  if (above == of_ranks.end()) return below.ns * bytes / below.bytes;
  const double share = (bytes - below.bytes) / (above->bytes - below.bytes);
  return below.ns + share * (above->ns - below.ns);
}

/// 2 (n - 1) / n of equation 1.
double passes(int ranks) { return 2.0 * (ranks - 1) / ranks; }

}  // namespace

AllReduceTable::AllReduceTable(Table table, double faster)
    : table_{std::move(table)}, faster_{faster} {
  std::ranges::sort(table_, {}, [](const Measured& each) {
    return std::tuple{each.ranks, each.bytes};
  });
}

double AllReduceTable::ns(int ranks, double bytes) const {
  if (ranks < 2 || bytes <= 0 || table_.empty()) return 0;
  const auto next = std::ranges::lower_bound(table_, ranks, {}, &Measured::ranks);
  const int taken = next == table_.end() ? table_.back().ranks : next->ranks;
  const auto of_taken = std::ranges::equal_range(table_, taken, {}, &Measured::ranks);
  const double scale = taken < ranks ? passes(ranks) / passes(taken) : 1;
  return on_lines({of_taken.begin(), of_taken.end()}, bytes) * scale / faster_;
}

Table read_all_reduce_table(std::string_view csv, const std::string& source) {
  Table table;
  bool header = true;
  scenario::each_csv_line(csv, source, [&](const scenario::CsvLine& line) {
    if (std::exchange(header, false)) return;
    std::array<double, 3> values{};
    if (line.words.size() != values.size())
      line.refuse("{} values (ranks, size_bytes and ns are 3). Correct the line.",
                  line.words.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view word = line.words[i];
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), values[i]);
      if (error != std::errc{} || end != word.data() + word.size() || !(values[i] >= 1) ||
          values[i] > 1e15)
        line.refuse("\"{}\" is no number from 1 on. Correct it.", scenario::shown(word));
    }
    if (values[0] > 4096) line.refuse("{} ranks in one node. Correct it.", values[0]);
    table.push_back({static_cast<int>(values[0]), values[1], values[2]});
  });
  return table;
}

}  // namespace longhaul::profile
