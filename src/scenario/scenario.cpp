#include "scenario/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

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

std::shared_ptr<const std::vector<Operator>> slowed(
    const std::shared_ptr<const std::vector<Operator>>& operators, double factor) {
  if (operators == nullptr) return nullptr;
  std::vector<Operator> played = *operators;
  for (Operator& each : played)
    for (auto time : {&Operator::forward, &Operator::dgrad, &Operator::wgrad, &Operator::recompute})
      each.*time = scaled(each.*time, factor);
  return std::make_shared<const std::vector<Operator>>(std::move(played));
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

/// The reader sorts links of more than 64 datacenters (reader/links.cpp), of which there may be a
/// million. Where it has not, or a pair has none, all are looked at.
const Link* Scenario::link(DatacenterId from, DatacenterId to) const {
  if (datacenters.size() > 64) {
    const auto found =
        std::ranges::lower_bound(links, std::pair{from, to}, {}, [](const Link& each) {
          return std::pair{each.from, each.to};
        });
    if (found != links.end() && found->from == from && found->to == to) return &*found;
  }
  return find_entry(links, [&](const Link& l) { return l.from == from && l.to == to; });
}

const NodeInterfaces* Scenario::interfaces(DatacenterId of) const {
  return find_entry(nodes, [&](const NodeInterfaces& n) { return n.datacenter == of; });
}

void Scenario::add_services(const ServiceRanks& added) {
  services.push_back(added);
  if (is_placed()) placement.insert(placement.end(), to_size(added.count), added.datacenter);
}

int Scenario::ranks() const {
  int count = training_ranks();
  for (const ServiceRanks& service : services) count += service.count;
  return count;
}

Rank Scenario::rank(ReplicaId replica, DeviceId device, int tensor) const {
  std::int32_t rank = 0;
  std::int32_t stride = 1;
  for (const RankDimension dimension : parallel.order) {
    switch (dimension) {
      case RankDimension::tensor:
        rank += stride * tensor;
        stride *= parallel.tensor;
        break;
      case RankDimension::stage:
        rank += stride * number(device);
        stride *= parallel.stages;
        break;
      case RankDimension::replica:
        rank += stride * number(replica);
        stride *= parallel.replicas;
        break;
    }
  }
  return Rank{rank};
}

RankPlace Scenario::place_of(Rank rank) const {
  RankPlace place;
  std::int32_t rest = static_cast<std::int32_t>(rank);
  if (rest >= training_ranks()) {
    rest -= training_ranks();
    place.replica = ReplicaId{-1};
    place.stage = DeviceId{-1};
    for (const ServiceRanks& service : services) {
      place.role = service.role;
      if (rest < service.count) break;
      rest -= service.count;
    }
    return place;
  }
  const auto take = [&](int of) {
    const std::int32_t mine = rest % of;
    rest /= of;
    return mine;
  };
  for (const RankDimension dimension : parallel.order) {
    switch (dimension) {
      case RankDimension::tensor: place.tensor = take(parallel.tensor); break;
      case RankDimension::stage: place.stage = DeviceId{take(parallel.stages)}; break;
      case RankDimension::replica: place.replica = ReplicaId{take(parallel.replicas)}; break;
    }
  }
  return place;
}

Scenario Scenario::of_replica(ReplicaId replica) const {
  Scenario alone = *this;
  alone.costs = costs_of(replica);
  alone.replica_costs.clear();
  alone.services.clear();
  alone.parallel.microbatches = microbatches_of(replica);
  alone.parallel.replica_microbatches.clear();
  alone.parallel.replicas = 1;
  alone.parallel.shard = 1;
  alone.placement.clear();
  if (is_placed()) {
    for (const Rank rank : ids<Rank>(alone.training_ranks())) {
      const RankPlace place = alone.place_of(rank);
      alone.placement.push_back(datacenter_of(this->rank(replica, place.stage, place.tensor)));
    }
  }
  return alone;
}

std::vector<std::string> Scenario::gpus_of_ranks() const {
  std::vector<std::string> gpus;
  std::vector<std::size_t> before(datacenters.size());  // ranks of each datacenter so far
  for (const DatacenterId where : placement) {
    const Datacenter& datacenter = datacenters[index(where)];
    if (datacenter.gpu_models.empty()) return {};
    const std::size_t node = before[index(where)]++ / to_size(datacenter.gpus_per_node.value_or(1));
    gpus.push_back(datacenter.gpu_models[std::min(node, datacenter.gpu_models.size() - 1)]);
  }
  return gpus;
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
  const auto slow_down_blocks = [factor](Costs& times) {
    for (auto* kind : {&times.forward, &times.backward, &times.dgrad, &times.wgrad,
                       &times.recompute, &times.optimizer}) {
      for (Duration& time : *kind) time = scaled(time, factor);
    }
  };
  slow_down_blocks(played.costs);
  for (Costs& of_replica : played.replica_costs) slow_down_blocks(of_replica);
  played.operators.all = slowed(played.operators.all, factor);
  played.pieces.overhead = scaled(played.pieces.overhead, factor);
  for (const auto times : kPartCosts)
    for (Duration& time : played.train.costs.*times) time = scaled(time, factor);
  for (ServedModel& each : played.served) {
    for (PrefillPoint& point : each.profile) point.time = scaled(point.time, factor);
    for (Duration* const time : {&each.floor, &each.hop, &each.guard})
      *time = scaled(*time, factor);
    each.achieved_flops /= factor;
    if (each.slo_ttft) each.slo_ttft = scaled(*each.slo_ttft, factor);
    if (!each.decode) continue;
    each.decode->rate = slowed(each.decode->rate, factor);
    for (Duration* const time : {&each.decode->latency, &each.decode->first_token})
      *time = scaled(*time, factor);
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
    played.model->memory_bandwidth = slowed(played.model->memory_bandwidth, factor);
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
  scenario.services.clear();
  for (int rank = 0; rank < scenario.training_ranks(); ++rank) {
    const std::int64_t device = number(scenario.place_of(Rank{rank}).stage);
    scenario.placement.push_back(DatacenterId{static_cast<int>(device * datacenters / stages)});
  }
  return scenario;
}

}  // namespace longhaul
