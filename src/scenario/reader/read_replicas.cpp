#include <algorithm>

#include "base/index.hpp"
#include "scenario/reader/sections.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::scenario {
namespace {

constexpr std::vector<Duration> Costs::*kCostTimes[] = {&Costs::forward,   &Costs::backward,
                                                        &Costs::dgrad,     &Costs::wgrad,
                                                        &Costs::recompute, &Costs::optimizer};
constexpr std::vector<Bytes> Costs::*kCostSizes[] = {&Costs::activation, &Costs::message,
                                                     &Costs::weights};

/// Costs are of speed 1.
void divide_by_speed(const Scenario& scenario, ReplicaId replica, Costs& costs) {
  for (const DeviceId stage : scenario.device_ids()) {
    const DatacenterId where = scenario.datacenter_of(scenario.rank(replica, stage));
    const double speed = scenario.datacenters[index(where)].speed;
    if (speed == 1) continue;
    for (const auto times : kCostTimes) {
      if ((costs.*times).empty()) continue;  // no time for the optimizer
      Duration& time = (costs.*times)[index(stage)];
      time = scaled(time, 1 / speed);
    }
  }
}

template <typename List>
void raise_to(List& list, const List& other) {
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = std::max(list[i], other[i]);
}

bool same(const Costs& one, const Costs& other) {
  return std::ranges::all_of(kCostTimes, [&](auto times) { return one.*times == other.*times; }) &&
         std::ranges::all_of(kCostSizes, [&](auto sizes) { return one.*sizes == other.*sizes; });
}

/// Those of [costs], with the times of each replica's GPUs where it leaves them to these.
std::vector<Costs> common_costs(const ConfigNode& root, const Scenario& scenario) {
  std::vector<Costs> all(to_size(scenario.parallel.replicas), scenario.costs);
  const std::vector<Costs> of_gpus = costs_of_gpus(root, scenario);
  for (std::size_t r = 0; r < of_gpus.size(); ++r)
    for (const auto times :
         {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad, &Costs::recompute})
      all[r].*times = of_gpus[r].*times;
  return all;
}

/// What [[replica]] gives, by replica.
std::vector<Costs> given_costs(const ConfigNode& root, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  std::vector<Costs> all = common_costs(root, scenario);
  std::vector<bool> given(all.size());
  for (const ConfigNode* table : tables_of(root, "replica")) {
    const Section section{*table,
                          "replica",
                          {"replicas", "forward", "backward", "dgrad", "wgrad", "recompute",
                           "activation", "message"}};
    const Field which = section.require("replicas", "its costs are of some of them");
    if (table->entries.size() < 2)
      fail_at(section.place(),
              "[[replica]] without costs (what is not given is as in [costs]). Give forward, or "
              "leave the table out.");
    if (read_indices(which, parallel.replicas).empty())
      fail_at(which.node->place,
              "{} = [] names no replica (the costs are of some of them). Name one, or leave the "
              "table out.",
              which.path);
    for (const auto& [replica, item] : read_indices(which, parallel.replicas)) {
      if (given[at(replica)])
        fail_at(item.node->place, "replica {} stands in two [[replica]] tables. Keep one.",
                replica);
      given[at(replica)] = true;
      all[at(replica)] = changed_costs(section, parallel.stages, all[at(replica)]);
    }
    if (!scenario.is_placed())
      fail_at(section.place(),
              "[[replica]] beside stages without a place (who places them chooses replicas). Give "
              "each [[datacenter]] its stages.");
  }
  return all;
}

bool speeds_differ(const Scenario& scenario) {
  if (!scenario.is_placed()) return false;
  return std::ranges::any_of(ids<Rank>(scenario.training_ranks()), [&](Rank rank) {
    const DatacenterId where = scenario.datacenter_of(rank);
    return scenario.datacenters[index(where)].speed !=
           scenario.speed_of_stage(scenario.place_of(rank).stage);
  });
}

}  // namespace

void read_replicas(const ConfigNode& root, Scenario& scenario) {
  const ConfigNode* const train = root.find("train");
  if (tables_of(root, "replica").empty() && !speeds_differ(scenario) &&
      scenario.train.preset.empty() && (train == nullptr || train->find("hetero") == nullptr)) {
    if (scenario.is_placed()) divide_by_speed(scenario, ReplicaId{0}, scenario.costs);
    return;
  }
  std::vector<Costs> all = given_costs(root, scenario);
  if (scenario.is_placed())
    for (const ReplicaId replica : scenario.replica_ids())
      divide_by_speed(scenario, replica, all[index(replica)]);
  divide_batches_by_time(root, scenario, all);
  scenario.costs = all.front();
  if (std::ranges::all_of(all, [&](const Costs& each) { return same(each, all.front()); })) return;
  for (const Costs& each : all) {
    for (const auto times : kCostTimes) raise_to(scenario.costs.*times, each.*times);
    for (const auto sizes : kCostSizes) raise_to(scenario.costs.*sizes, each.*sizes);
  }
  scenario.replica_costs = std::move(all);
}

}  // namespace longhaul::scenario
