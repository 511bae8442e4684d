#include "planner/hierarchy/shared_programs.hpp"

#include <algorithm>
#include <bit>

#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

/// All that says how long blocks and messages of a replica take.
void append_costs(const Costs& costs, std::vector<std::int64_t>& to) {
  for (const auto* times : {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad,
                            &costs.recompute, &costs.optimizer})
    for (const Duration time : *times) to.push_back(time.count());
  for (const auto* sizes : {&costs.message, &costs.activation, &costs.weights})
    for (const Bytes size : *sizes) to.push_back(size.count());
}

}  // namespace

LinkIndex::LinkIndex(const Scenario& scenario)
    : scenario_{scenario},
      count_{scenario.datacenters.size()},
      places_(count_ * count_, std::int32_t{-1}) {
  for (std::size_t i = 0; i < scenario.links.size(); ++i)
    places_[index(scenario.links[i].from) * count_ + index(scenario.links[i].to)] =
        static_cast<std::int32_t>(i);
}

RingLink LinkIndex::between(Rank from, Rank to) const {
  const Link* const link = find(scenario_.datacenter_of(from), scenario_.datacenter_of(to));
  return link == nullptr ? RingLink{} : RingLink{link->bandwidth, link->latency};
}

SharedPrograms::SharedPrograms(const Scenario& scenario, const schedule::Generator& generator,
                               const LinkIndex& links)
    : scenario_{scenario}, generator_{generator}, links_{links} {}

std::optional<Refusal> SharedPrograms::make() {
  if (!schedule::is_static(generator_.knowledge))
    return refused(
        "{} is made for the links of a scenario (ranks that are played part by part follow orders "
        "of counts and costs). Name a static schedule.",
        generator_.name);
  std::map<Signature, std::size_t> known;
  for (const ReplicaId replica : scenario_.replica_ids()) {
    const auto [at, is_new] = known.try_emplace(signature_of(replica), programs_.size());
    of_replica_.push_back(at->second);
    if (!is_new) continue;
    const Scenario own = alone(replica);
    Result<Schedule> schedule = schedule::try_generate(generator_, own);
    if (!schedule) return schedule.refusal();
    if (schedule->copies > 1 || schedule->cell > 1 || !schedule->link_orders.empty())
      return refused(
          "{} has copies of the model, or takes turns on links (replicas are played one by one). "
          "Name another schedule.",
          generator_.name);
    programs_.emplace_back(*schedule, own);
    if (programs_.size() == 1) schedule_ = *std::move(schedule);
  }
  return std::nullopt;
}

std::vector<DatacenterId> SharedPrograms::places_of(ReplicaId replica) const {
  std::vector<DatacenterId> places;
  for (const DeviceId device : scenario_.device_ids()) {
    const DatacenterId place = scenario_.datacenter_of(scenario_.rank(replica, device));
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
  return places;
}

SharedPrograms::Signature SharedPrograms::signature_of(ReplicaId replica) const {
  Signature signature{scenario_.microbatches_of(replica)};
  if (!scenario_.replica_costs.empty()) append_costs(scenario_.costs_of(replica), signature);
  const std::vector<DatacenterId> places = places_of(replica);
  if (places.size() > 1) {
    for (const DeviceId device : scenario_.device_ids())
      signature.push_back(
          std::ranges::find(places, scenario_.datacenter_of(scenario_.rank(replica, device))) -
          places.begin());
  }
  for (const DatacenterId from : places) {
    for (const DatacenterId to : places) {
      const Link* const link = links_.find(from, to);
      signature.push_back(link == nullptr ? -1 : link->latency.count());
      signature.push_back(
          link == nullptr ? -1 : std::bit_cast<std::int64_t>(link->bandwidth.bits_per_second()));
    }
  }
  return signature;
}

Scenario SharedPrograms::alone(ReplicaId replica) const {
  Scenario own;
  own.name = scenario_.name;
  own.model = scenario_.model;
  own.layers = scenario_.layers;
  own.parallel = scenario_.parallel;
  own.parallel.replicas = own.parallel.shard = own.parallel.tensor = 1;
  own.parallel.order = kTensorStageReplica;
  own.parallel.gradient_sync = GradientSync::none;
  own.parallel.microbatches = scenario_.microbatches_of(replica);
  own.parallel.replica_microbatches.clear();
  own.costs = scenario_.costs_of(replica);
  own.operators = scenario_.operators;
  own.memory = scenario_.memory;
  own.run = scenario_.run;
  const std::vector<DatacenterId> places = places_of(replica);
  for (std::size_t from = 0; from < places.size(); ++from) {
    own.datacenters.push_back(scenario_.datacenters[index(places[from])]);
    for (std::size_t to = 0; to < places.size(); ++to) {
      const Link* const link = links_.find(places[from], places[to]);
      if (link == nullptr) continue;
      own.links.push_back(*link);
      own.links.back().from = DatacenterId{static_cast<int>(from)};
      own.links.back().to = DatacenterId{static_cast<int>(to)};
    }
  }
  for (const DeviceId device : scenario_.device_ids()) {
    const DatacenterId place = scenario_.datacenter_of(scenario_.rank(replica, device));
    own.placement.push_back(
        DatacenterId{static_cast<int>(std::ranges::find(places, place) - places.begin())});
  }
  return own;
}

}  // namespace longhaul::planner
