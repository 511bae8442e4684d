#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace longhaul::cli {

/// Properties of a link by one file of a network benchmark.
struct LinkMeasurement {
  std::string file;
  std::string format;                    ///< "iperf3", "OSU latency", "nccl-tests", ...
  std::optional<Duration> latency{};     ///< one way
  std::optional<Bandwidth> bandwidth{};  ///< between two nodes, one way
  std::optional<Bandwidth> aggregate{};  ///< of several pairs of ranks together
  std::optional<int> connections{};      ///< TCP connections that `bandwidth` took
  std::optional<double> spread{};        ///< of the rate over time: standard deviation over mean
  std::optional<std::int64_t> retransmits{};
  std::string note;  ///< how latency and bandwidth were taken from the file
};

/// Reads a result of iperf3 -J, of an OSU micro-benchmark between two ranks or of nccl-tests, told
/// apart by its content. Throws Error "file: what (why). What to do.": no such file, none of
/// these, cut off, a failed run, a test that says nothing of a link.
[[nodiscard]] LinkMeasurement read_link_measurement(const std::string& file);

// The readers of single formats; `file` is for messages.
[[nodiscard]] LinkMeasurement read_iperf3(std::string_view text, const std::string& file);
[[nodiscard]] LinkMeasurement read_osu(std::string_view text, const std::string& file);
[[nodiscard]] LinkMeasurement read_nccl_tests(std::string_view text, const std::string& file);

/// A line of a report whose first word is a size: its words, and where it stands.
struct ReportRow {
  std::size_t line = 0;
  std::int64_t size = 0;
  std::vector<std::string_view> words;
};

/// Words of a line between blanks.
[[nodiscard]] std::vector<std::string_view> words_between_blanks(std::string_view line);
/// The rows of a report; its headings and the noise of launchers are left out.
[[nodiscard]] std::vector<ReportRow> report_rows(std::string_view text);
/// Word `column` of a row, a number of at least 0. Throws Error with the line where it is missing.
[[nodiscard]] double report_value(const ReportRow& row, std::size_t column,
                                  const std::string& file);
/// The row of the smallest message where that is small enough to show a latency (4 KiB).
[[nodiscard]] const ReportRow* smallest_message(const std::vector<ReportRow>& rows);

}  // namespace longhaul::cli
