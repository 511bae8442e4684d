#include "scenario/regions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "scenario/built_in_regions.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::size_t kLargestTable = std::size_t{4} << 20;
constexpr std::size_t kMostRegions = 1000;
constexpr double kLongestRoundTrip = 1e6;  // ms
constexpr double kMostThroughput = 1e15;   // bits per second

enum RegionColumn : std::size_t { kFrom, kTo, kRoundTrip, kThroughput, kRegionColumns };
constexpr std::array<std::string_view, kRegionColumns> kRegionColumnNames{
    "src_region", "dst_region", "rtt_avg_ms", "throughput_received_bps"};

/// Where the needed columns stand.
std::array<std::size_t, kRegionColumns> columns_of(const CsvLine& header) {
  std::array<std::size_t, kRegionColumns> places{};
  for (std::size_t i = 0; i < kRegionColumns; ++i) {
    const auto found = std::ranges::find(header.words, kRegionColumnNames[i]);
    if (found == header.words.end())
      header.refuse(
          "this is no table of regions (its first line \"{}\" has no column {}). Name a CSV with "
          "the columns {}.",
          shown(header.words.front()), kRegionColumnNames[i], fmt::join(kRegionColumnNames, ", "));
    places[i] = at(found - header.words.begin());
  }
  return places;
}

std::string read_region(const CsvLine& line, std::string_view word) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"-_:."}.find(c) != std::string_view::npos;
  };
  if (word.empty() || word.size() > 60 || !std::ranges::all_of(word, good))
    line.refuse(
        "\"{}\" is no region (letters, digits and - _ : . without quotes). Correct the line.",
        shown(word));
  return std::string{word};
}

/// A number in (0, most].
double read_positive(const CsvLine& line, std::string_view name, std::string_view word,
                     double most) {
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, status] = std::from_chars(word.data(), end, value);
  if (status != std::errc{} || rest != end || !(value > 0 && value <= most))
    line.refuse("{} = \"{}\" is no measurement (a number above 0, at most {:g}). Correct the line.",
                name, shown(word), most);
  return value;
}

RegionPair read_pair(const CsvLine& line, std::string_view round_trip, std::string_view rate) {
  const double time =
      read_positive(line, kRegionColumnNames[kRoundTrip], round_trip, kLongestRoundTrip);
  return {scaled(Duration{1'000'000}, time),
          Bandwidth{read_positive(line, kRegionColumnNames[kThroughput], rate, kMostThroughput)}};
}

}  // namespace

RegionTable RegionTable::parse(std::string_view csv, const std::string& source) {
  if (csv.size() > kLargestTable)
    fail("{}: the table of regions is larger than {} bytes (none is). Check the file.", source,
         kLargestTable);
  RegionTable table;
  table.source_ = source;
  std::array<std::size_t, kRegionColumns> at{};
  std::size_t columns = 0;
  each_csv_line(csv, source, [&](const CsvLine& line) {
    if (columns == 0) {
      at = columns_of(line);
      columns = line.words.size();
      return;
    }
    if (line.words.size() != columns)
      line.refuse("{} values ({} columns are named in the first line). Correct the line.",
                  line.words.size(), columns);
    const std::string from = read_region(line, line.words[at[kFrom]]);
    const std::string to = read_region(line, line.words[at[kTo]]);
    const RegionPair pair =
        read_pair(line, line.words[at[kRoundTrip]], line.words[at[kThroughput]]);
    if (!table.pairs_.try_emplace({from, to}, pair).second)
      line.refuse("{} to {} is there already (a pair has one line). Keep one.", from, to);
    table.regions_.insert({from, to});
    if (table.regions_.size() > kMostRegions)
      line.refuse("there are more than {} regions (no cloud has). Check the file.", kMostRegions);
  });
  if (table.pairs_.empty())
    fail(
        "{}: there is no pair of regions in it (it is empty, or has a first line alone). Name a "
        "CSV with the columns {}.",
        source, fmt::join(kRegionColumnNames, ", "));
  return table;
}

RegionTable RegionTable::load(const std::filesystem::path& file) {
  return parse(read_csv_file(file, kLargestTable, "the table of regions", "wan.regions"),
               file.string());
}

const RegionTable& RegionTable::built_in() {
  static const RegionTable table = parse(kBuiltInRegions, "the built-in table of regions");
  return table;
}

std::string RegionTable::text() const {
  std::string csv = fmt::format("{}\n", fmt::join(kRegionColumnNames, ","));
  for (const auto& [ends, pair] : pairs_) {
    const double time = std::max(static_cast<double>(pair.round_trip.count()), 0.1) / 1e6;
    csv += fmt::format("{},{},{},{}\n", ends.first, ends.second, time,
                       pair.throughput.bits_per_second());
  }
  return csv;
}

const RegionPair* RegionTable::find(const std::string& from, const std::string& to) const {
  const auto found = pairs_.find({from, to});
  return found == pairs_.end() ? nullptr : &found->second;
}

}  // namespace longhaul::scenario
