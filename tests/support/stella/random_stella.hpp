#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "scenario/scenario.hpp"
#include "support/stella/stella_by_rules.hpp"

namespace longhaul::testing {

/// Replicas of random times, in one to three sites.
struct RandomStella {
  explicit RandomStella(std::uint64_t seed, bool distinct = false) : random{seed} {
    rules.staleness = static_cast<int>(random.between(0, 2));
    rules.by_deadline = random.between(0, 1) == 0;
    rules.host_threads = static_cast<int>(random.between(1, 2));
    rules.ring = random.between(0, 1) == 0;
    rules.shared_link = random.between(0, 1) == 0;
    const int replicas = static_cast<int>(random.between(1, 4));
    const int parts = static_cast<int>(random.between(1, 4));
    for (int r = 0; r < replicas; ++r) {
      const Duration f{random.between(1, 12) * parts}, b{random.between(1, 20) * parts};
      const Duration own{distinct ? r : 0};
      rules.replicas.push_back({r * sites / replicas,
                                std::vector<Duration>(to_size(parts), f / parts + own),
                                std::vector<Duration>(to_size(parts), b / parts + own)});
    }
    rules.transfer = Duration{random.between(1, 15)};
    rules.latency = Duration{random.between(0, 9)};
    for (auto* cost : {&rules.copy_out, &rules.compress, &rules.merge, &rules.copy_in})
      if (random.between(0, 2) > 0) *cost = Duration{random.between(1, 6)};
    rules.optimize = Duration{random.between(0, 4)};
  }

  /// Puts replicas of a site into nodes that sum their gradients; false: no two share one.
  [[nodiscard]] bool into_nodes() {
    gpus = static_cast<int>(random.between(2, 3));
    rules.gather = Duration{random.between(0, 5)};
    rules.inside = Duration{4 * random.between(1, 3)};
    rules.latency_inside = Duration{random.between(0, 3)};
    std::vector<int> of_site(to_size(sites));
    for (const StellaReplica& each : rules.replicas)
      rules.nodes.push_back(100 * each.site + of_site[to_size(each.site)]++ / gpus);
    return std::ranges::adjacent_find(rules.nodes) != rules.nodes.end();
  }

  [[nodiscard]] Scenario scenario() const {
    const int replicas = static_cast<int>(rules.replicas.size());
    const int parts = static_cast<int>(rules.replicas.front().forward.size());
    Scenario made = uniform_scenario(1, 1);
    made.parallel.replicas = replicas;
    made.parallel.gradient_sync = GradientSync::compressed;
    made.placement.clear();
    made.datacenters.clear();
    for (int site = 0; site < sites; ++site)
      made.datacenters.push_back({fmt::format("dc{}", site), std::nullopt, 1.0});
    for (const StellaReplica& each : rules.replicas) {
      made.placement.push_back(DatacenterId{each.site});
      Costs costs = made.costs;
      costs.forward = {parts * each.forward.front()};
      costs.backward = {parts * each.backward.front()};
      made.replica_costs.push_back(costs);
    }
    for (int a = 0; a < sites; ++a)
      for (int b = 0; b < sites; ++b)
        if (a != b)
          made.links.push_back({DatacenterId{a},
                                DatacenterId{b},
                                rules.latency,
                                8_Gbps,
                                rules.shared_link ? Sharing::datacenter : Sharing::pair,
                                {}});
    Training& train = made.train;
    train.parts = parts;
    train.staleness = rules.staleness;
    train.serve = rules.by_deadline ? Serve::deadline : Serve::arrival;
    train.host_threads = rules.host_threads;
    train.message = Bytes{rules.transfer.count()};  // a nanosecond a byte
    train.compress.exchange = rules.ring ? SetExchange::ring : SetExchange::direct;
    const auto cost = [](std::vector<Duration>& to, const std::optional<Duration>& of) {
      if (of) to = {*of};
    };
    cost(train.costs.copy_out, rules.copy_out);
    cost(train.costs.compress, rules.compress);
    cost(train.costs.merge, rules.merge);
    cost(train.costs.copy_in, rules.copy_in);
    train.costs.optimize = {rules.optimize};
    if (rules.nodes.empty()) return made;
    train.gather = GradientGather::node;
    train.costs.gather = {rules.gather};
    made.costs.weights = {Bytes{parts * rules.inside.count()}};  // a nanosecond a byte
    for (Costs& each : made.replica_costs) each.weights = made.costs.weights;
    for (int site = 0; site < sites; ++site) {
      NodeInterfaces nodes;
      nodes.datacenter = DatacenterId{site};
      nodes.gpus = gpus;
      nodes.device = 8_Gbps;
      nodes.device_latency = rules.latency_inside;
      made.nodes.push_back(nodes);
    }
    return made;
  }

  Random random;
  int sites = static_cast<int>(random.between(1, 3));
  StellaRules rules;
  int gpus = 1;  ///< of a node
};

}  // namespace longhaul::testing
