#include "random_plans.hpp"

#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "support/weather.hpp"

namespace longhaul::testing {
namespace {

/// Bytes that take 1 ns at the rate of 1 of these.
constexpr double kByteInNanosecond = 8e9;

Bandwidth random_rate(Random& random) {
  return Bandwidth{kByteInNanosecond * static_cast<double>(random.between(1, 4))};
}

Duration random_time(Random& random) {
  constexpr std::array kTimes{0, 10, 10, 20, 20, 20, 30, 40, 60, 70};
  return Duration{kTimes[to_size(random.between(0, std::ssize(kTimes) - 1))]};
}

void add_links(Scenario& scenario, int datacenters, Random& random) {
  for (int from = 0; from < datacenters; ++from) {
    scenario.datacenters.push_back({fmt::format("dc{}", from), {}});
    bool has_levels = false;  // the datacenter then has no link to itself
    if (random.between(0, 1) == 0) {
      NodeInterfaces nodes{DatacenterId{from}, static_cast<int>(random.between(1, 3)),
                           random_rate(random), random_rate(random)};
      if (random.between(0, 1) == 0) nodes.internal = random_rate(random);
      if (random.between(0, 1) == 0) {
        nodes.device = random_rate(random);
        nodes.device_latency = random_time(random);
        if (!nodes.internal.is_unlimited()) nodes.internal_latency = random_time(random);
        has_levels = true;
      }
      scenario.nodes.push_back(nodes);
    }
    for (int to = 0; to < datacenters; ++to) {
      if (from == to && (has_levels || random.between(0, 1) == 0)) continue;
      Link link{DatacenterId{from}, DatacenterId{to}, random_time(random), random_rate(random),
                static_cast<Sharing>(random.between(0, 1))};
      if (from != to && random.between(0, 2) == 0) {
        link.sharing = Sharing::pair;
        link.aggregate =
            Bandwidth{link.bandwidth.bits_per_second() * static_cast<double>(random.between(1, 3))};
      }
      scenario.links.push_back(link);
    }
  }
}

}  // namespace

Scenario random_scenario(Random& random) {
  const auto stages = static_cast<int>(random.between(2, 4));
  Scenario scenario = uniform_scenario(stages, stages * static_cast<int>(random.between(1, 3)));
  scenario.parallel.replicas = static_cast<int>(random.between(1, 3));
  scenario.parallel.chunks = static_cast<int>(random.between(1, 2));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 3));
  scenario.memory.recompute = random.between(0, 3) == 0;
  scenario.memory.budget = random.between(0, 1) == 0 ? 1 : 3;
  const auto datacenters = static_cast<int>(random.between(1, 3));
  const bool by_stage = random.between(0, 2) > 0;
  scenario.datacenters.clear();
  scenario.placement.clear();
  scenario.links.clear();
  add_links(scenario, datacenters, random);
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{by_stage ? rank % stages * datacenters / stages
                                                       : rank / stages % datacenters});
  for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad, &scenario.costs.recompute})
    for (Duration& time : *times) time = random_time(random);
  for (Bytes& message : scenario.costs.message) message = Bytes{random_time(random).count()};
  for (Bytes& weights : scenario.costs.weights) weights = Bytes{random_time(random).count() * 3};
  return scenario;
}

void add_rank_layout(Scenario& scenario, Random& random) {
  const Scenario before = scenario;
  Parallel& parallel = scenario.parallel;
  parallel.tensor = static_cast<int>(random.between(1, 2));
  for (std::int64_t i = random.between(0, 5); i > 0; --i)
    std::ranges::next_permutation(parallel.order);
  if (random.between(0, 1) == 0) {
    parallel.gradient_sync = GradientSync::zero3;
    parallel.replicas = static_cast<int>(random.between(1, 4));
    const auto halves = parallel.replicas % 2 == 0 && random.between(0, 1) == 0;
    parallel.shard = halves ? parallel.replicas / 2 : parallel.replicas;
  }
  scenario.placement.clear();
  for (const Rank rank : ids<Rank>(scenario.training_ranks())) {
    const RankPlace place = scenario.place_of(rank);
    const ReplicaId like{number(place.replica) % before.parallel.replicas};
    scenario.placement.push_back(before.datacenter_of(before.rank(like, place.stage)));
  }
  if (random.between(0, 1) == 0) return;
  parallel.microbatches = 0;
  for (const ReplicaId replica : scenario.replica_ids()) {
    scenario.replica_costs.push_back(scenario.costs);
    for (Duration& time : scenario.replica_costs.back().forward) time = random_time(random);
    parallel.replica_microbatches.push_back(
        parallel.stages * static_cast<int>(random.between(1, 2)) * (1 + number(replica) % 2));
    parallel.microbatches = std::max(parallel.microbatches, parallel.replica_microbatches.back());
  }
}

void add_weather(Scenario& scenario, Random& random) {
  for (Link& link : scenario.links) {
    if (link.from == link.to) continue;
    std::vector<LinkState> states;
    Duration at{};
    for (int i = 0; i < 8; ++i) {
      states.push_back({at, random_time(random), random_rate(random)});
      at += Duration{random.between(1, 400)};
    }
    if (random.between(0, 2) > 0) {
      link.weather.trace = trace_of(states);
      if (random.between(0, 1) == 0) link.weather.repeat = at;
    }
    Duration begin{random.between(0, 300)};
    for (std::int64_t i = random.between(0, 3); i > 0; --i) {
      link.weather.outages.push_back({begin, Duration{random.between(1, 200)}});
      begin += link.weather.outages.back().length + Duration{random.between(0, 300)};
    }
    link.jitter.kind = static_cast<JitterKind>(random.between(0, 3));
    link.jitter.latency = link.jitter.transfer = 0.1 * static_cast<double>(random.between(0, 4));
    link.jitter.correlation = 0.5 * static_cast<double>(random.between(0, 2));
    link.weather.loss.probability = 0.1 * static_cast<double>(random.between(0, 3));
  }
}

}  // namespace longhaul::testing
