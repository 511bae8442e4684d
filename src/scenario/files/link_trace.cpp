#include "scenario/files/link_trace.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "scenario/files/embedded_files.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::int64_t kLongestTime = std::int64_t{1} << 60;  // as of any time of a scenario
constexpr double kMostRate = 1e18;                            // bits per second

enum TraceColumn : std::size_t { kTime, kLatency, kBandwidth, kTraceColumns };
constexpr std::array<std::string_view, kTraceColumns> kTraceColumnNames{"time", "latency",
                                                                        "bandwidth"};

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 6> kTimeUnits{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 6e10}, {"h", 3.6e12}}};
constexpr std::array<Unit, 5> kRateUnits{
    {{"bps", 1}, {"kbps", 1e3}, {"mbps", 1e6}, {"gbps", 1e9}, {"tbps", 1e12}}};

/// Where a column stands, and what its numbers are multiplied by; without a factor cells carry
/// their unit.
struct ColumnPlace {
  std::size_t at = 0;
  std::optional<double> factor;
};
using Places = std::array<std::optional<ColumnPlace>, kTraceColumns>;

std::string_view trimmed(std::string_view word) {
  while (word.starts_with(' ') || word.starts_with('\t')) word.remove_prefix(1);
  while (word.ends_with(' ') || word.ends_with('\t')) word.remove_suffix(1);
  return word;
}

const std::vector<std::string>& known_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string_view name : kTraceColumnNames) {
      all.emplace_back(name);
      const auto add = [&](const Unit& unit) {
        all.push_back(fmt::format("{}_{}", name, unit.name));
      };
      if (name == kTraceColumnNames[kBandwidth])
        for (const Unit& unit : kRateUnits) add(unit);
      else
        for (const Unit& unit : kTimeUnits) add(unit);
    }
    return all;
  }();
  return names;
}

std::optional<double> factor_of(TraceColumn column, std::string_view unit) {
  const auto find = [&](const auto& units) -> std::optional<double> {
    for (const Unit& known : units)
      if (known.name == unit) return known.factor;
    return std::nullopt;
  };
  return column == kBandwidth ? find(kRateUnits) : find(kTimeUnits);
}

/// Identifies a column by its name. Throws Error for an unknown one.
TraceColumn column_of(const CsvLine& header, std::string_view name, std::optional<double>& factor) {
  for (std::size_t i = 0; i < kTraceColumns; ++i) {
    if (name == kTraceColumnNames[i]) return static_cast<TraceColumn>(i);
    if (!name.starts_with(kTraceColumnNames[i]) || name[kTraceColumnNames[i].size()] != '_')
      continue;
    factor = factor_of(static_cast<TraceColumn>(i), name.substr(kTraceColumnNames[i].size() + 1));
    if (factor) return static_cast<TraceColumn>(i);
  }
  header.refuse("unknown column \"{}\" (the first line names time and what the link gives). {}",
                shown(name), suggestion(std::string{name.substr(0, 60)}, known_names()));
}

Places read_header(const CsvLine& header) {
  Places places;
  for (std::size_t i = 0; i < header.words.size(); ++i) {
    ColumnPlace place{i, std::nullopt};
    const std::string_view name = trimmed(header.words[i]);
    std::optional<ColumnPlace>& known = places[column_of(header, name, place.factor)];
    if (known) header.refuse("column \"{}\" says what another one says. Keep one.", shown(name));
    known = place;
  }
  if (!places[kTime] || (!places[kLatency] && !places[kBandwidth]))
    header.refuse(
        "this is no trace of a link (it needs the column time_s, and latency_ms, bandwidth_gbps or "
        "both). Add what is missing.");
  return places;
}

/// The cell's value in nanoseconds or bits per second; `with_unit` reads one that carries its unit.
template <typename Read>
double value_of(const CsvLine& line, const ColumnPlace& place, std::string_view name,
                Read with_unit) {
  const std::string_view word = trimmed(line.words[place.at]);
  double value = 0;
  if (place.factor) {
    const char* const end = word.data() + word.size();
    const auto [rest, status] = std::from_chars(word.data(), end, value);
    if (status != std::errc{} || rest != end || !std::isfinite(value))
      line.refuse("{} = \"{}\" is no number (the first line gives the unit). Correct the line.",
                  name, shown(word));
    return value * *place.factor;
  }
  if (word.size() > 64)
    line.refuse("{} = \"{}\" is no value. Correct the line.", name, shown(word));
  try {
    return with_unit(word);
  } catch (const Error& error) {
    line.refuse("{}: {}", name, error.what());
  }
}

Duration read_time(const CsvLine& line, const ColumnPlace& place, std::string_view name) {
  const double value = value_of(line, place, name, [](std::string_view word) {
    return static_cast<double>(parse_duration(word).count());
  });
  if (!(value >= 0 && value <= static_cast<double>(kLongestTime)))
    line.refuse("{} = \"{}\" is out of range (0 to 36 years). Correct the line.", name,
                shown(trimmed(line.words[place.at])));
  return Duration{std::llround(value)};
}

Bandwidth read_rate(const CsvLine& line, const ColumnPlace& place) {
  if (!place.factor && trimmed(line.words[place.at]) == "unlimited") return Bandwidth::unlimited();
  const double value =
      value_of(line, place, kTraceColumnNames[kBandwidth],
               [](std::string_view word) { return parse_bandwidth(word).bits_per_second(); });
  if (!(value > 0 && value <= kMostRate))
    line.refuse(
        "bandwidth = \"{}\" is out of range (above 0, at most 1e18 bps; a time in which nothing "
        "moves is link.outage). Correct the line.",
        shown(trimmed(line.words[place.at])));
  return Bandwidth{value};
}

LinkState read_state(const CsvLine& line, const Places& places) {
  LinkState state;
  state.at = read_time(line, *places[kTime], kTraceColumnNames[kTime]);
  if (places[kLatency])
    state.latency = read_time(line, *places[kLatency], kTraceColumnNames[kLatency]);
  if (places[kBandwidth]) state.bandwidth = read_rate(line, *places[kBandwidth]);
  return state;
}

void add(LinkTrace& trace, const LinkState& state, const CsvLine& line) {
  if (trace.states.empty() && state.at != Duration::zero())
    line.refuse("the first time is {} (nothing says what the link gives before). Begin at 0.",
                longhaul::to_text(state.at));
  if (!trace.states.empty() && state.at <= trace.states.back().at)
    line.refuse("time {} does not lie behind {} (times ascend). Sort the lines; keep one of each.",
                longhaul::to_text(state.at), longhaul::to_text(trace.states.back().at));
  if (trace.states.size() == kMostStates)
    line.refuse("there are more than {} lines (that is the limit). Take coarser steps.",
                kMostStates);
  trace.states.push_back(state);
}

}  // namespace

LinkTrace parse_link_trace(std::string_view csv, const std::string& source) {
  if (csv.size() > kLargestTrace)
    fail("{}: the trace is larger than {} bytes (that is the limit). Take coarser steps.", source,
         kLargestTrace);
  LinkTrace trace;
  std::optional<Places> places;
  std::size_t columns = 0;
  each_csv_line(csv, source, [&](const CsvLine& line) {
    if (!places) {
      places = read_header(line);
      columns = line.words.size();
      return;
    }
    if (line.words.size() != columns)
      line.refuse("{} values ({} columns are named in the first line). Correct the line.",
                  line.words.size(), columns);
    add(trace, read_state(line, *places), line);
  });
  if (trace.states.empty())
    fail(
        "{}: there is no state of a link in it (it is empty, or has a first line alone). Write "
        "time_s,latency_ms,bandwidth_gbps and a line for each change below.",
        source);
  trace.gives_latency = (*places)[kLatency].has_value();
  trace.gives_bandwidth = (*places)[kBandwidth].has_value();
  return trace;
}

std::string write_link_trace(const LinkTrace& trace) {
  std::string csv = "time";
  if (trace.gives_latency) csv += ",latency";
  if (trace.gives_bandwidth) csv += ",bandwidth";
  csv += '\n';
  for (const LinkState& state : trace.states) {
    const auto out = std::back_inserter(csv);
    fmt::format_to(out, "{}ns", state.at.count());
    if (trace.gives_latency) fmt::format_to(out, ",{}ns", state.latency.count());
    if (trace.gives_bandwidth && state.bandwidth.is_unlimited()) csv += ",unlimited";
    if (trace.gives_bandwidth && !state.bandwidth.is_unlimited())
      fmt::format_to(out, ",{}bps", state.bandwidth.bits_per_second());
    csv += '\n';
  }
  return csv;
}

TraceStore::TraceStore(const ConfigNode& root) : root_{root} {}

std::shared_ptr<const LinkTrace> TraceStore::find(const Field& field) {
  const std::string name = read_text(field);
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return known->second;
  LinkTrace trace = read(field, name);
  trace.name = name;
  return by_name_[name] = std::make_shared<const LinkTrace>(std::move(trace));
}

LinkTrace TraceStore::read(const Field& field, const std::string& name) {
  (void)read_file_name(field, "a CSV");
  if (const ConfigNode* own = own_file(root_, "traces", name))
    return parse_link_trace(read_text({own, "traces." + shown(name)}),
                            to_text(own->place) + ": traces." + shown(name));
  const std::filesystem::path beside{*root_.place.origin};
  const std::filesystem::path file = beside.parent_path() / name;
  try {
    const std::string csv = read_csv_file(file, kLargestTrace, "the trace of a link", field.path);
    LinkTrace trace = parse_link_trace(csv, file.string());
    of_files_.push_back(name);
    return trace;
  } catch (const Error& error) {
    fail_at(field.node->place, "{}", error.what());
  }
}

std::string TraceStore::held_text() const {
  std::string text{of_files_.empty() ? "" : "\n"};
  for (const std::string& name : of_files_)
    text += scenario::held_text("trace", name, write_link_trace(*by_name_.at(name)));
  return text;
}

}  // namespace longhaul::scenario
