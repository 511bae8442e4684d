#include "report/scenario_text.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

const Datacenter& datacenter_at(const Scenario& scenario, DatacenterId id) {
  return scenario.datacenters[index(id)];
}

template <typename Value>
std::string text_or_dash(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

template <typename Value>
ordered_json value_or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json rate_or_null(Bandwidth rate) {
  return rate.is_unlimited() ? ordered_json(nullptr) : ordered_json(rate.bits_per_second());
}

bool has_details(const Datacenter& one) {
  return !one.region.empty() || one.gpus_per_node || one.price || one.egress_price;
}

/// A property that some links have and most have not.
struct Extras {
  bool connections = false;
  bool aggregate = false;
};

Extras extras_of(const Scenario& scenario) {
  Extras extras;
  for (const Link& link : scenario.links) {
    extras.connections |= link.connections.has_value();
    extras.aggregate |= !link.aggregate.is_unlimited();
  }
  return extras;
}

std::string connections_text(const Link& link) {
  if (!link.connections) return "-";
  return fmt::format("{} x {}, cap {}", link.connections->count, to_text(link.connections->each),
                     to_text(link.connections->cap));
}

/// "7 states over 132 s (wan.csv), jitter, loss 0.1%, 1 outage"; empty where nothing varies.
std::string weather_text(const Link& link) {
  std::vector<std::string> parts;
  const LinkWeather& weather = link.weather;
  if (weather.trace) {
    parts.push_back(fmt::format("{} over {} ({})",
                                counted(std::ssize(weather.trace->states), "state"),
                                to_text(weather.trace->states.back().at), weather.trace->name));
    if (weather.repeat) parts.push_back("every " + to_text(*weather.repeat));
  }
  if (link.jitter.any()) parts.emplace_back("jitter");
  if (weather.loss.probability > 0)
    parts.push_back(fmt::format("loss {:.4g}%", 100 * weather.loss.probability));
  if (!weather.outages.empty()) parts.push_back(counted(std::ssize(weather.outages), "outage"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string counted(std::int64_t count, std::string_view noun) {
  const char* const ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, ending);
}

std::string size_text(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  std::string microbatches = counted(parallel.microbatches, "microbatch");
  if (const auto& counts = parallel.replica_microbatches; !counts.empty())
    microbatches = fmt::format("{} to {}", *std::ranges::min_element(counts), microbatches);
  std::string text = fmt::format("{}, {}, {}", counted(parallel.stages, "stage"),
                                 counted(parallel.replicas, "replica"), microbatches);
  if (parallel.tensor > 1) text += fmt::format(", tensor {}", parallel.tensor);
  for (const ServiceRanks& service : scenario.services)
    text += fmt::format(", {} ({})", counted(service.count, "rank"), to_string(service.role));
  return text;
}

std::vector<std::string> ignored_settings(const Scenario& scenario) {
  std::vector<std::string> ignored;
  if (scenario.run.noise > 0) ignored.emplace_back("run.noise");
  const auto& stragglers = scenario.run.stragglers;
  if (std::ranges::any_of(stragglers, [](double factor) { return factor != 1; }))
    ignored.emplace_back("run.stragglers");
  const auto any_link = [&](auto has) { return std::ranges::any_of(scenario.links, has); };
  if (any_link([](const Link& link) { return link.weather.trace != nullptr; }))
    ignored.emplace_back("link.trace");
  if (any_link([](const Link& link) { return link.weather.loss.probability > 0; }))
    ignored.emplace_back("link.loss");
  if (any_link([](const Link& link) { return !link.weather.outages.empty(); }))
    ignored.emplace_back("link.outage");
  return ignored;
}

std::string ignored_text(const Scenario& scenario, std::string_view but) {
  const std::vector<std::string> ignored = ignored_settings(scenario);
  if (ignored.empty()) return {};
  return fmt::format("\npredictions leave out {} (for ranks that play the scenario{})\n",
                     fmt::join(ignored, " and "), but);
}

std::string overlap_text(const Scenario& scenario, Granularity granularity) {
  const OverlapSlowdown& overlap = scenario.overlap;
  if (overlap.largest() <= 1) return {};
  const bool untold = granularity == Granularity::blocks && scenario.operators.known();
  return fmt::format(
      "\nblocks take longer beside messages: x{} inside a node, x{} between nodes, x{} between "
      "datacenters{}\n",
      overlap.node, overlap.datacenter, overlap.wan,
      untold ? "\n(when their operators end, --granularity operator tells)" : "");
}

ordered_json overlap_json(const Scenario& scenario) {
  return {{to_string(NetworkLevel::node), scenario.overlap.node},
          {to_string(NetworkLevel::datacenter), scenario.overlap.datacenter},
          {to_string(NetworkLevel::wan), scenario.overlap.wan}};
}

std::string site_table(const Scenario& scenario) {
  if (std::ranges::none_of(scenario.datacenters, has_details)) return {};
  Table table{{{"datacenter", Align::left},
               {"region", Align::left},
               {"GPUs a node"},
               {"$ a GPU and hour"},
               {"$ a GB out"}}};
  for (const Datacenter& one : scenario.datacenters)
    table.add_row({one.name, one.region.empty() ? "-" : one.region, text_or_dash(one.gpus_per_node),
                   text_or_dash(one.price), text_or_dash(one.egress_price)});
  return '\n' + table.text();
}

std::string link_table(const Scenario& scenario) {
  if (scenario.links.empty()) return {};
  const Extras extras = extras_of(scenario);
  const Bytes largest = *std::ranges::max_element(scenario.costs.message);
  std::vector<Table::Column> columns{{"from", Align::left},
                                     {"to", Align::left},
                                     {"latency"},
                                     {"bandwidth"},
                                     {fmt::format("{} take", to_text(largest))},
                                     {"shared by", Align::left}};
  if (extras.connections) columns.push_back({"connections", Align::left});
  if (extras.aggregate) columns.push_back({"aggregate"});
  Table table{columns};
  std::string weather;  // would make the table too wide
  for (const Link& link : scenario.links) {
    std::vector<std::string> row{
        datacenter_at(scenario, link.from).name,
        datacenter_at(scenario, link.to).name,
        to_text(link.latency),
        to_text(link.bandwidth),
        to_text(largest / link.bandwidth),
        link.sharing == Sharing::pair ? "each pair alone" : "all messages"};
    if (extras.connections) row.push_back(connections_text(link));
    if (extras.aggregate) row.push_back(to_text(link.aggregate));
    if (!weather_text(link).empty())
      weather += fmt::format("{} > {}: {}\n", row[0], row[1], weather_text(link));
    table.add_row(std::move(row));
  }
  return '\n' + table.text() + weather;
}

ordered_json sites_json(const Scenario& scenario) {
  ordered_json json = ordered_json::array();
  for (const Datacenter& one : scenario.datacenters)
    json.push_back(
        {{"name", one.name},
         {"region", one.region.empty() ? ordered_json(nullptr) : ordered_json(one.region)},
         {"gpus", value_or_null(one.gpus)},
         {"speed", one.speed},
         {"gpus_per_node", value_or_null(one.gpus_per_node)},
         {"price_per_gpu_hour", value_or_null(one.price)},
         {"egress_price_per_gb", value_or_null(one.egress_price)}});
  return json;
}

ordered_json links_json(const Scenario& scenario) {
  ordered_json json = ordered_json::array();
  for (const Link& link : scenario.links) {
    ordered_json connections = nullptr;
    if (link.connections)
      connections = {{"count", link.connections->count},
                     {"each_bits_per_second", rate_or_null(link.connections->each)},
                     {"cap_bits_per_second", rate_or_null(link.connections->cap)}};
    json.push_back({{"from", datacenter_at(scenario, link.from).name},
                    {"to", datacenter_at(scenario, link.to).name},
                    {"latency_ns", link.latency.count()},
                    {"rate_bits_per_second", rate_or_null(link.bandwidth)},
                    {"sharing", to_string(link.sharing)},
                    {"connections", connections},
                    {"aggregate_bits_per_second", rate_or_null(link.aggregate)},
                    {"weather", weather_text(link)}});
  }
  return json;
}

}  // namespace longhaul::report
