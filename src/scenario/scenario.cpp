#include "scenario/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul {
namespace {

template <typename Entry, typename Matches>
const Entry* find_entry(const std::vector<Entry>& entries, Matches matches) {
  const auto found = std::find_if(entries.begin(), entries.end(), matches);
  return found == entries.end() ? nullptr : &*found;
}

/// Part 0 takes what does not divide evenly.
std::int64_t part(std::int64_t whole, int parts, int which) {
  LONGHAUL_ASSERT(parts >= 1 && which >= 0 && which < parts, "part {} of {}", which, parts);
  return whole / parts + (which == 0 ? whole % parts : 0);
}

/// A rate that makes every transfer `factor` times as long; an unlimited one stays unlimited.
Bandwidth slowed(Bandwidth rate, double factor) {
  return rate.is_unlimited() ? rate : Bandwidth{rate.bits_per_second() / factor};
}

/// Traces that links share stay shared.
using PlayedTraces = std::map<const LinkTrace*, std::shared_ptr<const LinkTrace>>;

std::shared_ptr<const LinkTrace> slowed(const std::shared_ptr<const LinkTrace>& trace,
                                        double factor, PlayedTraces& known) {
  if (trace == nullptr) return nullptr;
  const auto [at, is_new] = known.try_emplace(trace.get());
  if (!is_new) return at->second;
  LinkTrace played = *trace;
  for (LinkState& state : played.states)
    state = {scaled(state.at, factor), scaled(state.latency, factor),
             slowed(state.bandwidth, factor)};
  return at->second = std::make_shared<const LinkTrace>(std::move(played));
}

void slow_down(LinkWeather& weather, double factor, PlayedTraces& known) {
  weather.trace = slowed(weather.trace, factor, known);
  if (weather.repeat) weather.repeat = std::max(scaled(*weather.repeat, factor), Duration{1});
  if (weather.loss.delay) weather.loss.delay = scaled(*weather.loss.delay, factor);
  for (Outage& outage : weather.outages)
    outage = {scaled(outage.begin, factor), scaled(outage.length, factor)};
}

}  // namespace

Duration share(Duration of_device, int chunks_on_device, int local) {
  return Duration{part(of_device.count(), chunks_on_device, local)};
}

Bytes share(Bytes of_device, int chunks_on_device, int local) {
  return Bytes{part(of_device.count(), chunks_on_device, local)};
}

const Link* Scenario::link(DatacenterId from, DatacenterId to) const {
  return find_entry(links, [&](const Link& l) { return l.from == from && l.to == to; });
}

const NodeInterfaces* Scenario::interfaces(DatacenterId of) const {
  return find_entry(nodes, [&](const NodeInterfaces& n) { return n.datacenter == of; });
}

Duration Scenario::largest_forward() const {
  LONGHAUL_ASSERT(!costs.forward.empty(), "scenario {} has no stages", name);
  return *std::max_element(costs.forward.begin(), costs.forward.end());
}

Bytes Scenario::activation_budget() const {
  LONGHAUL_ASSERT(!costs.activation.empty(), "scenario {} has no stages", name);
  const Bytes largest = *std::max_element(costs.activation.begin(), costs.activation.end());
  const int held = std::min(parallel.stages, parallel.microbatches);
  return Bytes{std::llround(memory.budget * static_cast<double>(largest.count()) * held)};
}

Scenario Scenario::as_played() const {
  const double factor = run.time_scale;
  Scenario played = *this;
  Costs& times = played.costs;
  for (auto* kind :
       {&times.forward, &times.backward, &times.dgrad, &times.wgrad, &times.recompute}) {
    for (Duration& time : *kind) time = scaled(time, factor);
  }
  PlayedTraces traces;
  for (Link& link : played.links) {
    slow_down(link.weather, factor, traces);
    link.latency = scaled(link.latency, factor);
    link.bandwidth = slowed(link.bandwidth, factor);
    link.aggregate = slowed(link.aggregate, factor);
    if (link.connections) {
      link.connections->each = slowed(link.connections->each, factor);
      link.connections->cap = slowed(link.connections->cap, factor);
    }
  }
  for (NodeInterfaces& node : played.nodes) {
    node.egress = slowed(node.egress, factor);
    node.ingress = slowed(node.ingress, factor);
    node.internal = slowed(node.internal, factor);
    node.internal_latency = scaled(node.internal_latency, factor);
    node.device = slowed(node.device, factor);
    node.device_latency = scaled(node.device_latency, factor);
  }
  if (played.model) {  // so that utilization stays what it is
    played.model->achieved_flops /= factor;
    played.model->peak_flops /= factor;
  }
  played.run.time_scale = 1.0;
  return played;
}

Scenario uniform_scenario(int stages, int microbatches, Duration unit) {
  LONGHAUL_ASSERT(stages >= 1 && microbatches >= 1, "{} stages, {} microbatches", stages,
                  microbatches);
  const auto devices = to_size(stages);
  Scenario scenario;
  scenario.name = "uniform";
  scenario.parallel.stages = stages;
  scenario.parallel.microbatches = microbatches;
  for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad,
                      &scenario.costs.recompute}) {
    times->assign(devices, unit);
  }
  scenario.costs.backward.assign(devices, 2 * unit);
  scenario.costs.activation.assign(devices, 2_MiB);
  scenario.costs.message.assign(devices, 1_MiB);
  scenario.costs.weights.assign(devices, 8_MiB);
  scenario.memory.capacity.resize(devices);
  scenario.memory.fixed.resize(devices);
  scenario.datacenters = {Datacenter{"dc0", std::nullopt, 1.0}};
  scenario.placement.assign(devices, DatacenterId{0});
  return scenario;
}

Scenario spread(Scenario scenario, int datacenters, Duration latency,
                Duration transfer_of_largest_message) {
  const int stages = scenario.parallel.stages;
  LONGHAUL_ASSERT(datacenters >= 1 && datacenters <= stages, "{} stages over {} datacenters",
                  stages, datacenters);
  const Bytes message =
      *std::max_element(scenario.costs.message.begin(), scenario.costs.message.end());
  const Bandwidth rate = transfer_of_largest_message == Duration::zero()
                             ? Bandwidth::unlimited()
                             : Bandwidth{static_cast<double>(message.count()) * 8e9 /
                                         static_cast<double>(transfer_of_largest_message.count())};
  scenario.datacenters.clear();
  scenario.links.clear();
  scenario.nodes.clear();
  for (int from = 0; from < datacenters; ++from) {
    scenario.datacenters.push_back({fmt::format("dc{}", from), std::nullopt, 1.0});
    for (int to = 0; to < datacenters; ++to) {
      if (from != to)
        scenario.links.push_back(
            {DatacenterId{from}, DatacenterId{to}, latency, rate, Sharing::pair, {}});
    }
  }
  scenario.placement.clear();
  for (int rank = 0; rank < scenario.ranks(); ++rank) {
    const std::int64_t device = rank % stages;
    scenario.placement.push_back(DatacenterId{static_cast<int>(device * datacenters / stages)});
  }
  return scenario;
}

}  // namespace longhaul
