// Readers of tables: OSU micro-benchmarks and nccl-tests.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"
#include "cli/link/link_import.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::cli {
namespace {

/// "Latency Test v7.1" of "# OSU MPI-CUDA Latency Test v7.1": the first word names the library.
std::string_view osu_title(std::string_view text, const std::string& file) {
  constexpr std::string_view kMark = "# OSU ";
  const std::size_t mark = text.find(kMark);
  if (text.find(kMark, mark + 1) != std::string_view::npos)
    fail(
        "{}: holds more than one OSU benchmark (one would hide the other). Split it into one file "
        "each.",
        file);
  std::string_view title = text.substr(mark + kMark.size());
  title = title.substr(0, std::min(title.find_first_of("\r\n"), title.size()));
  title.remove_prefix(std::min(title.find(' '), title.size()));
  title.remove_prefix(std::min(title.find_first_not_of(' '), title.size()));
  return title;
}

/// The number of pairs in "# [ pairs: 2 ] [ window size: 64 ]"; 1 where it is missing.
int pairs_of(std::string_view text) {
  constexpr std::string_view kMark = "pairs:";
  const std::size_t mark = text.find(kMark);
  if (mark == std::string_view::npos) return 1;
  const auto words = words_between_blanks(text.substr(mark + kMark.size(), 32));
  int pairs = 1;
  if (!words.empty()) std::from_chars(words[0].data(), words[0].data() + words[0].size(), pairs);
  return std::clamp(pairs, 1, 1 << 20);
}

double largest_value(const std::vector<ReportRow>& rows, std::size_t column,
                     const std::string& file) {
  double largest = 0;
  for (const ReportRow& row : rows) largest = std::max(largest, report_value(row, column, file));
  if (largest <= 0) fail("{}: no rate above zero (nothing was measured). Run it again.", file);
  return largest;
}

std::vector<ReportRow> rows_of(std::string_view text, const std::string& file) {
  std::vector<ReportRow> rows = report_rows(text);
  if (rows.empty())
    fail("{}: there are headings but no results (the run was cut off). Run it again.", file);
  return rows;
}

Duration from_microseconds(double time, const std::string& file) {
  if (!(time > 0 && time < 1e9))
    fail("{}: a latency of {} us (none is). Run it again.", file, time);
  return Duration{std::llround(time * 1000)};
}

void read_osu_latency(const std::vector<ReportRow>& rows, LinkMeasurement& measured) {
  measured.format = "OSU latency";
  for (const ReportRow& row : rows) (void)report_value(row, 1, measured.file);
  const ReportRow* const row = smallest_message(rows);
  if (row == nullptr)
    fail(
        "{}: no small message (the transfer of the smallest of {} takes time of its own). Run it "
        "from 1 byte on.",
        measured.file, rows.size());
  measured.latency = from_microseconds(report_value(*row, 1, measured.file), measured.file);
  measured.note = fmt::format("half a round trip of {} bytes", row->size);
}

void read_osu_bandwidth(std::string_view text, const std::vector<ReportRow>& rows, bool both_ways,
                        LinkMeasurement& measured) {
  measured.format = both_ways ? "OSU two-way bandwidth" : "OSU bandwidth";
  const double whole = largest_value(rows, 1, measured.file) * 8e6;
  const int pairs = pairs_of(text);
  measured.bandwidth = Bandwidth{whole / pairs / (both_ways ? 2 : 1)};
  measured.note = both_ways ? "half of the largest rate" : "largest rate";
  if (pairs == 1) return;
  measured.aggregate = Bandwidth{whole};
  measured.note += fmt::format(" of {} pairs, over {}", pairs, pairs);
}

}  // namespace

LinkMeasurement read_osu(std::string_view text, const std::string& file) {
  const std::string_view title = osu_title(text, file);
  const std::vector<ReportRow> rows = rows_of(text, file);
  LinkMeasurement measured{file, {}, {}, {}, {}, {}, {}, {}, {}};
  const auto is = [&](std::string_view name) { return title.starts_with(name); };
  if (is("Latency Test") || is("Multi Latency Test"))
    read_osu_latency(rows, measured);
  else if (is("Bandwidth Test") || is("Multiple Bandwidth"))
    read_osu_bandwidth(text, rows, false, measured);
  else if (is("Bi-Directional Bandwidth Test"))
    read_osu_bandwidth(text, rows, true, measured);
  else
    fail(
        "{}: OSU \"{}\" says nothing of a link (it is not between two ranks). Use osu_latency, "
        "osu_bw, osu_bibw or osu_mbw_mr.",
        file, scenario::shown(title));
  return measured;
}

LinkMeasurement read_nccl_tests(std::string_view text, const std::string& file) {
  const std::size_t mark = text.find("algbw");
  const std::size_t begin = text.rfind('\n', mark) + 1;  // npos + 1 is 0
  const std::size_t end = std::min(text.find('\n', mark), text.size());
  auto heading = words_between_blanks(text.substr(begin, end - begin));
  if (!heading.empty() && heading.front() == "#") heading.erase(heading.begin());
  const auto column = [&](std::string_view name) {
    const auto found = std::ranges::find(heading, name);
    if (found == heading.end())
      fail(
          "{}: no table of nccl-tests (its heading has no column \"{}\"). Name what a test "
          "printed.",
          file, name);
    return at(found - heading.begin());
  };
  const std::size_t time = column("time");
  const std::size_t rate = column("busbw");
  const std::vector<ReportRow> rows = rows_of(text.substr(end), file);
  LinkMeasurement measured{file, "nccl-tests", {}, {}, {}, {}, {}, {}, {}};
  measured.bandwidth = Bandwidth{largest_value(rows, rate, file) * 8e9};
  measured.note = "largest busbw";
  const ReportRow* const row = smallest_message(rows);
  const bool between_two =
      text.find("sendrecv") != std::string_view::npos || file.find("sendrecv") != std::string::npos;
  if (row != nullptr && between_two) {
    measured.latency = from_microseconds(report_value(*row, time, file), file);
    measured.note += fmt::format("; time of {} bytes", row->size);
  } else {
    measured.note += "; no latency (no small message, or not known to be sendrecv_perf)";
  }
  return measured;
}

}  // namespace longhaul::cli
