#include "cli/link/link_import.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{64} << 20;
constexpr std::int64_t kSmallMessage = 4096;

std::string read_bounded(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    fail("{}: cannot be read (there is no such file). Check the path.", file);
  if (!std::filesystem::is_regular_file(file, ignored))
    fail("{}: cannot be read (this is no file). Name the output of a benchmark.", file);
  std::ifstream stream{file, std::ios::binary};
  if (!stream) fail("{}: cannot be read (it may not be opened). Check its permissions.", file);
  const auto size = std::filesystem::file_size(file, ignored);
  if (size > kLargestFile)
    fail("{}: larger than {} bytes (no result of these benchmarks is). Check the file.", file,
         kLargestFile);
  std::string text(to_size(size), '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(to_size(stream.gcount()));
  return text;
}

bool holds(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace

std::vector<std::string_view> words_between_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  constexpr std::size_t kMostWords = 64;
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks);
       at != std::string_view::npos && words.size() < kMostWords;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<ReportRow> report_rows(std::string_view text) {
  std::vector<ReportRow> rows;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ReportRow row{++number, 0, words_between_blanks(text.substr(begin, end - begin))};
    begin = end + 1;
    if (row.words.empty()) continue;
    const std::string_view first = row.words.front();
    const char* const stop = first.data() + first.size();
    const auto [rest, status] = std::from_chars(first.data(), stop, row.size);
    if (status == std::errc{} && rest == stop && row.size >= 0) rows.push_back(std::move(row));
  }
  return rows;
}

double report_value(const ReportRow& row, std::size_t column, const std::string& file) {
  double value = 0;
  if (column < row.words.size()) {
    const std::string_view word = row.words[column];
    const char* const end = word.data() + word.size();
    const auto [rest, status] = std::from_chars(word.data(), end, value);
    if (status == std::errc{} && rest == end && std::isfinite(value) && value >= 0) return value;
  }
  fail(
      "{}:{}: the result of {} bytes is not whole (column {} holds no number). Use the file of a "
      "run that ended.",
      file, row.line, row.size, column + 1);
}

const ReportRow* smallest_message(const std::vector<ReportRow>& rows) {
  const auto smallest = std::ranges::min_element(rows, {}, &ReportRow::size);
  return smallest == rows.end() || smallest->size > kSmallMessage ? nullptr : &*smallest;
}

LinkMeasurement read_link_measurement(const std::string& file) {
  const std::string text = read_bounded(file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    fail("{}: the file is empty (the benchmark wrote nothing). Run it again.", file);
  if (text[first] == '{') return read_iperf3(text, file);
  if (holds(text, "# OSU ")) return read_osu(text, file);
  if (holds(text, "algbw") && holds(text, "busbw")) return read_nccl_tests(text, file);
  fail(
      "{}: no result of a benchmark that is known ({}). Name the output of iperf3 -J, of an OSU "
      "micro-benchmark or of nccl-tests.",
      file, text[first] == '<' ? "it looks like a web page" : "neither JSON nor their tables");
}

}  // namespace longhaul::cli
