#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/link/link_import.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::cli {
namespace {

using Json = nlohmann::json;

/// The value below the keys; null where one is missing.
const Json& below(const Json& node, std::initializer_list<const char*> keys) {
  static const Json nothing;
  const Json* at = &node;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return nothing;
    at = &at->at(key);
  }
  return *at;
}

/// A finite number above 0.
std::optional<double> positive(const Json& node, std::initializer_list<const char*> keys) {
  const Json& value = below(node, keys);
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number > 0 ? std::optional{number} : std::nullopt;
}

bool is_set(const Json& node, std::initializer_list<const char*> keys) {
  const Json& value = below(node, keys);
  return (value.is_boolean() && value.get<bool>()) || positive(node, keys).has_value();
}

/// The least round trip in microseconds that the sender's kernel saw; that is nearest to the wire,
/// since queues only add to it.
std::optional<double> least_round_trip(const Json& result) {
  std::optional<double> least;
  const auto take = [&](std::optional<double> value) {
    if (value && (!least || *value < *least)) least = value;
  };
  for (const Json& stream : below(result, {"end", "streams"}))
    take(positive(stream, {"sender", "min_rtt"}));
  if (least) return least;
  for (const Json& interval : below(result, {"intervals"})) {
    for (const Json& stream : below(interval, {"streams"})) take(positive(stream, {"rtt"}));
  }
  return least;
}

/// Standard deviation over mean of the rates of whole intervals; nullopt below three of them.
std::optional<double> spread_of_rates(const Json& result) {
  double longest = 0;
  for (const Json& interval : below(result, {"intervals"}))
    longest = std::max(longest, positive(interval, {"sum", "seconds"}).value_or(0));
  std::vector<double> rates;
  for (const Json& interval : below(result, {"intervals"})) {
    const auto rate = positive(interval, {"sum", "bits_per_second"});
    const bool whole = positive(interval, {"sum", "seconds"}).value_or(0) > longest / 2;
    if (rate && whole && !is_set(interval, {"sum", "omitted"})) rates.push_back(*rate);
  }
  if (rates.size() < 3) return std::nullopt;
  const auto count = static_cast<double>(rates.size());
  const double mean = std::accumulate(rates.begin(), rates.end(), 0.0) / count;
  double squares = 0;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  return std::sqrt(squares / (count - 1)) / mean;
}

void refuse_what_says_nothing(const Json& result, const std::string& file) {
  if (const Json& error = below(result, {"error"}); error.is_string())
    fail("{}: the run of iperf3 failed (it says: {}). Run it again.", file,
         scenario::shown(error.get<std::string>()));
  if (below(result, {"end"}).is_null() || below(result, {"start"}).is_null())
    fail(
        "{}: no result of iperf3 (JSON without \"start\" and \"end\"). Name a file that iperf3 -J "
        "wrote.",
        file);
  const Json& protocol = below(result, {"start", "test_start", "protocol"});
  if (protocol.is_string() && protocol.get<std::string>() != "TCP")
    fail("{}: iperf3 without TCP (it sends at the rate that it is told). Run it without -u.", file);
}

}  // namespace

LinkMeasurement read_iperf3(std::string_view text, const std::string& file) {
  const Json result = Json::parse(text, nullptr, false);
  if (result.is_discarded())
    fail(
        "{}: no whole JSON (cut off, or not written by iperf3 -J). Use the file of a run that "
        "ended.",
        file);
  refuse_what_says_nothing(result, file);
  LinkMeasurement measured{file, "iperf3", {}, {}, {}, {}, {}, {}, {}};
  auto rate = positive(result, {"end", "sum_received", "bits_per_second"});
  measured.note = "rate received, least round trip over 2";
  if (!rate) {
    rate = positive(result, {"end", "sum_sent", "bits_per_second"});
    measured.note = "rate sent, least round trip over 2";
  }
  if (!rate) fail("{}: iperf3 moved nothing (end.sum_received has no rate). Run it again.", file);
  measured.bandwidth = Bandwidth{*rate};
  if (const auto round_trip = least_round_trip(result); round_trip && *round_trip < 1e9)
    measured.latency = Duration{std::llround(*round_trip * 500)};
  if (const auto streams = positive(result, {"start", "test_start", "num_streams"});
      streams && *streams <= 65536)
    measured.connections = static_cast<int>(*streams);
  const Json& again = below(result, {"end", "sum_sent", "retransmits"});
  if (again.is_number_integer()) measured.retransmits = again.get<std::int64_t>();
  measured.spread = spread_of_rates(result);
  if (is_set(result, {"start", "test_start", "reverse"}))
    measured.note += "; -R: from server to client";
  return measured;
}

}  // namespace longhaul::cli
