#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/link/link_import.hpp"
#include "report/record_file.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// The measurement of all files together: of each value the best that any shows, since whatever
/// else ran beside a test only made it worse.
struct Combined {
  const LinkMeasurement* latency = nullptr;
  const LinkMeasurement* bandwidth = nullptr;
  const LinkMeasurement* aggregate = nullptr;
  const LinkMeasurement* spread = nullptr;  ///< of the file that gives the bandwidth, or any
  const LinkMeasurement* single = nullptr;  ///< the fastest single TCP connection
};

Combined combine(const std::vector<LinkMeasurement>& measured) {
  Combined best;
  for (const LinkMeasurement& one : measured) {
    if (one.latency && (!best.latency || *one.latency < *best.latency->latency))
      best.latency = &one;
    if (one.bandwidth && (!best.bandwidth || *one.bandwidth > *best.bandwidth->bandwidth))
      best.bandwidth = &one;
    if (one.aggregate && (!best.aggregate || *one.aggregate > *best.aggregate->aggregate))
      best.aggregate = &one;
    if (one.connections == 1 && (!best.single || *one.bandwidth > *best.single->bandwidth))
      best.single = &one;
    if (one.spread && !best.spread) best.spread = &one;
  }
  if (best.bandwidth && best.bandwidth->spread) best.spread = best.bandwidth;
  return best;
}

// Shortest texts that read back as the same nanosecond and bit per second.
std::string toml_text(Duration time) {
  return fmt::format("{}ms", static_cast<double>(time.count()) / 1e6);
}
std::string toml_text(Bandwidth rate) {
  return fmt::format("{}Mbps", std::round(rate.bits_per_second()) / 1e6);
}

/// Bytes in flight of one connection: what a single one showed, at least its share of all.
std::int64_t window_bytes(const Combined& best) {
  const double all = best.bandwidth->bandwidth->bits_per_second();
  double each = all / *best.bandwidth->connections;
  if (best.single) each = std::max(each, best.single->bandwidth->bits_per_second());
  const double seconds = static_cast<double>(best.latency->latency->count()) / 1e9;
  return static_cast<std::int64_t>(std::ceil(each * seconds / 8));
}

/// Rate of a link, by connections where a test with several tells their number and the latency is
/// known.
std::string rate_lines(const Combined& best) {
  if (!best.bandwidth) return {};
  const std::string rate = toml_text(*best.bandwidth->bandwidth);
  const auto connections = best.bandwidth->connections;
  if (!connections || *connections < 2 || !best.latency)
    return fmt::format("bandwidth = \"{}\"{}\n", rate,
                       connections ? fmt::format("  # of {} TCP connection{}", *connections,
                                                 *connections == 1 ? "" : "s")
                                   : "");
  return fmt::format(
      "connections = {}\nwindow = \"{}B\"  # in flight of each, {}\nnode_cap = \"{}\"  # the most "
      "that was measured\n",
      *connections, window_bytes(best),
      best.single ? "as one alone showed" : "its share; nobody measured one alone", rate);
}

void require_name(const std::string& option, const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (name.empty() || name.size() > 60 || !std::ranges::all_of(name, good))
    fail("{}: \"{}\" is no name of a datacenter (letters, digits, - and _). Correct it.", option,
         scenario::shown(name));
}

std::string ends_lines(const LinkArguments& link) {
  const bool one_way = !link.from.empty() || !link.to.empty();
  if (one_way && !link.between.empty())
    fail("--between and --{} are both given (they set the same). Keep one.",
         link.from.empty() ? "to" : "from");
  if (one_way) {
    require_name("--from", link.from);
    require_name("--to", link.to);
    return fmt::format("from = \"{}\"\nto = \"{}\"\n", link.from, link.to);
  }
  const std::string both = link.between.empty() ? "a,b" : link.between;
  const std::size_t comma = std::min(both.find(','), both.size());
  const std::string first = both.substr(0, comma);
  const std::string second = comma < both.size() ? both.substr(comma + 1) : "";
  require_name("--between", first);
  require_name("--between", second);
  return fmt::format("between = [\"{}\", \"{}\"]\n", first, second);
}

std::string snippet(const Combined& best, const LinkArguments& link) {
  std::string text = "[[link]]\n" + ends_lines(link);
  if (best.latency) text += fmt::format("latency = \"{}\"\n", toml_text(*best.latency->latency));
  text += rate_lines(best);
  if (best.aggregate)
    text += fmt::format("aggregate = \"{}\"  # at least: what all pairs reached together\n",
                        toml_text(*best.aggregate->aggregate));
  if (best.spread)
    text += fmt::format("jitter = {{transfer = {:.4f}, correlation = 1}}\n",
                        std::min(2.0, *best.spread->spread));
  return text;
}

std::string table_of(const std::vector<LinkMeasurement>& measured) {
  Table table{{{"file", Align::left},
               {"from", Align::left},
               {"latency"},
               {"bandwidth"},
               {"connections"},
               {"retransmits"},
               {"spread"},
               {"taken", Align::left}}};
  for (const LinkMeasurement& one : measured)
    table.add_row({one.file, one.format, one.latency ? to_text(*one.latency) : "-",
                   one.bandwidth ? to_text(*one.bandwidth) : "-",
                   one.connections ? std::to_string(*one.connections) : "-",
                   one.retransmits ? std::to_string(*one.retransmits) : "-",
                   one.spread ? fmt::format("{:.1f}%", 100 * *one.spread) : "-", one.note});
  return table.text();
}

template <typename Value, typename Number>
ordered_json number_or_null(const std::optional<Value>& value, Number number) {
  return value ? ordered_json(number(*value)) : ordered_json(nullptr);
}

ordered_json measurement_json(const LinkMeasurement& one) {
  const auto same = [](auto value) { return value; };
  const auto rate = [](Bandwidth value) { return value.bits_per_second(); };
  return {{"file", one.file},
          {"format", one.format},
          {"latency_ns", number_or_null(one.latency, [](Duration time) { return time.count(); })},
          {"rate_bits_per_second", number_or_null(one.bandwidth, rate)},
          {"aggregate_bits_per_second", number_or_null(one.aggregate, rate)},
          {"connections", number_or_null(one.connections, same)},
          {"retransmits", number_or_null(one.retransmits, same)},
          {"spread_ratio", number_or_null(one.spread, same)},
          {"taken", one.note}};
}

}  // namespace

Answer link_import_command(const Options& options) {
  std::vector<LinkMeasurement> measured;
  for (const std::string& file : options.files) measured.push_back(read_link_measurement(file));
  const std::string toml = snippet(combine(measured), options.link);
  if (!options.json) return {toml + '\n' + table_of(measured)};
  ordered_json json =
      report::record_header({.creator = "longhaul", .command_line = options.command_line});
  json["link"] = toml;
  json["files"] = ordered_json::array();
  for (const LinkMeasurement& one : measured) json["files"].push_back(measurement_json(one));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
