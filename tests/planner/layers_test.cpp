#include "planner/layers.hpp"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

using ::testing::ElementsAre;

SearchOptions no_search() {
  SearchOptions search;
  search.moves = 0;
  search.threads = 1;
  search.placements = {schedule::Placement::unidirectional};
  return search;
}

/// M70 with `layers` layers on four stages; the first two devices are faster, `latency` lies
/// between the second and the third.
WithLayers m70(int layers, double speed, const std::string& latency,
               const std::string& capacity = "1TB") {
  return [=](const std::vector<int>& of_stage) {
    const std::string text = fmt::format(R"([model]
preset = "m70-measured"
layers = {}
[parallel]
stages = 4
microbatches = 6
[memory]
capacity = "{}"
[[datacenter]]
name = "west"
stages = "0-1"
speed = {}
[[datacenter]]
name = "east"
stages = "2-3"
[[link]]
between = "all"
latency = "{}"
)",
                                         layers, capacity, speed, latency);
    const std::vector<std::string> set{
        fmt::format("model.layers_per_stage=[{}]", fmt::join(of_stage, ","))};
    return scenario::parse_scenario(text, "s.toml", set);
  };
}

TEST(AssignLayers, BalancesAnUnevenStart) {
  // Equal devices, no delay: a split that is not even has a longer slowest stage.
  const AssignedLayers assigned = assign_layers(m70(16, 1, "0ms"), {5, 3, 5, 3}, no_search());
  EXPECT_THAT(assigned.best.layers, ElementsAre(4, 4, 4, 4));
  EXPECT_GT(assigned.tried, 1);
}

TEST(AssignLayers, IsNeverWorseThanItsStartAndNoMoveIsBetter) {
  for (const double speed : {1.0, 1.5, 3.0}) {
    for (const char* latency : {"0ms", "20ms", "200ms"}) {
      const WithLayers with_layers = m70(14, speed, latency);
      const std::vector<int> start{4, 4, 3, 3};
      const AssignedLayers assigned = assign_layers(with_layers, start, no_search());
      const Assignment& best = assigned.best;
      const Scenario at_start = with_layers(start);
      EXPECT_LE(best.found.makespan, find_best(at_start, no_search()).makespan);
      EXPECT_EQ(std::accumulate(best.layers.begin(), best.layers.end(), 0), 14);
      EXPECT_EQ(schedule::first_violation(best.found.schedule, best.scenario), std::nullopt);
      EXPECT_NEAR(static_cast<double>(best.scenario.activation_budget().count()),
                  static_cast<double>(at_start.activation_budget().count()), 1);
      const WithLayers same_budget = [&](const std::vector<int>& layers) {
        Scenario scenario = with_layers(layers);
        scenario.memory.budget = static_cast<double>(best.scenario.activation_budget().count()) /
                                 static_cast<double>(scenario.activation_budget().count());
        return scenario;
      };
      EXPECT_EQ(assign_layers(same_budget, best.layers, no_search()).best.layers, best.layers);
    }
  }
}

TEST(AssignLayers, KeepsToTheCapacity) {
  // Of stage 0 two layers take 27 GB and 9 GB of activations, three 41 GB and 3 GB or more.
  const AssignedLayers assigned =
      assign_layers(m70(8, 100, "0ms", "44GB"), {2, 2, 2, 2}, no_search());
  EXPECT_THAT(assigned.best.layers, ElementsAre(2, 2, 2, 2));
  const AssignedLayers roomy = assign_layers(m70(8, 100, "0ms"), {2, 2, 2, 2}, no_search());
  EXPECT_THAT(roomy.best.layers[2] + roomy.best.layers[3], 2);
  EXPECT_LT(roomy.best.found.makespan, assigned.best.found.makespan);
}

}  // namespace
}  // namespace longhaul::planner
