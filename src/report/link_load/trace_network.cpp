#include "report/link_load/trace_network.hpp"

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul::report {
namespace {

bool is_of_link(const schedule::RouteSegment& segment) {
  const ResourceKind kind = segment.resource.kind;
  return kind == ResourceKind::link || kind == ResourceKind::shared_link ||
         kind == ResourceKind::aggregate;
}

/// Jitter lengthens and shortens the time of a whole message, so that none of what it holds has a
/// rate that bounds it.
bool holds_by_chance(const Link* link) { return link != nullptr && link->jitter.transfer > 0; }

/// The interfaces beside such a link keep their rates. (An outage only slows down.)
bool changes_rate(const Link* link) {
  return link != nullptr && link->weather.trace != nullptr && link->weather.trace->gives_bandwidth;
}

}  // namespace

Scenario without_weather(Scenario scenario) {
  for (Link& link : scenario.links) {
    link.jitter = {};
    link.weather = {};
  }
  return scenario;
}

const TraceNetwork::Way& TraceNetwork::between(Rank from, Rank to) {
  const std::uint64_t ranks = (static_cast<std::uint64_t>(index(from)) << 32) | index(to);
  const auto known = ways_.find(ranks);
  if (known != ways_.end()) return known->second;
  return ways_.emplace(ranks, make_way(from, to)).first->second;
}

TraceNetwork::Way TraceNetwork::make_way(Rank from, Rank to) {
  const schedule::NetworkRoute route = routes_.between(from, to);
  const DatacenterId a = scenario_.datacenter_of(from);
  const DatacenterId b = scenario_.datacenter_of(to);
  const Link* const link = scenario_.link(a, b);
  const auto name = [&](DatacenterId id) { return scenario_.datacenters[index(id)].name; };
  Way way;
  way.linked = route.linked;
  if (holds_by_chance(link)) {
    way.left_out = fmt::format("messages from {} to {}, jitter changes how long they hold links",
                               name(a), name(b));
    return way;
  }
  if (changes_rate(link))
    way.left_out = fmt::format("the link from {} to {}, its rate changes", name(a), name(b));
  for (const schedule::RouteSegment& segment : route.segments) {
    if (segment.rate.is_unlimited() || (is_of_link(segment) && changes_rate(link))) continue;
    way.limited.push_back(number_of(segment));
  }
  return way;
}

std::int32_t TraceNetwork::number_of(const schedule::RouteSegment& segment) {
  const auto [at, is_new] =
      numbers_.try_emplace(segment.resource, static_cast<std::int32_t>(limited_.size()));
  if (is_new) limited_.push_back({name_of(segment.resource, scenario_), segment.rate});
  return at->second;
}

}  // namespace longhaul::report
