#include "planner/layers.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "schedule/memory.hpp"

namespace longhaul::planner {
namespace {

class LayerSearch {
public:
  LayerSearch(const WithLayers& with_layers, const SearchOptions& search)
      : with_layers_{with_layers}, search_{search} {}

  AssignedLayers run(const std::vector<int>& start) {
    const Scenario scenario = with_layers_(start);
    if (scenario.has_uneven_replicas())
      fail(
          "the replicas of {} differ in costs, speeds or microbatches (a division is searched for "
          "equal ones). Leave the differences out.",
          scenario.name);
    budget_ = scenario.activation_budget();
    best_ = {start, scenario, find_best(scenario, search_)};
    seen_.insert(start);
    while (improve()) {
    }
    return {std::move(best_), static_cast<int>(seen_.size())};
  }

private:
  /// Takes the best of all single moves, where one is better.
  bool improve() {
    const std::vector<int> from = best_.layers;
    std::optional<Assignment> better;
    for (std::size_t giver = 0; giver < from.size(); ++giver) {
      for (std::size_t taker = 0; taker < from.size(); ++taker) {
        if (giver == taker || from[giver] == 1) continue;
        std::vector<int> layers = from;
        --layers[giver];
        ++layers[taker];
        if (!seen_.insert(layers).second) continue;
        std::optional<Assignment> next = look_at(std::move(layers));
        const Duration to_beat = better ? better->found.makespan : best_.found.makespan;
        if (next && next->found.makespan < to_beat) better = std::move(next);
      }
    }
    if (better) best_ = *std::move(better);
    return better.has_value();
  }

  /// nullopt where nothing fits.
  std::optional<Assignment> look_at(std::vector<int> layers) const {
    Scenario scenario = with_layers_(layers);
    scenario.memory.budget *= static_cast<double>(budget_.count()) /
                              static_cast<double>(scenario.activation_budget().count());
    Result<SearchResult> found = try_find_best(scenario, search_);
    if (!found) return std::nullopt;
    const auto devices = schedule::device_memory(found->schedule, scenario);
    if (!std::ranges::all_of(devices, &schedule::DeviceNeed::fits)) return std::nullopt;
    return Assignment{std::move(layers), std::move(scenario), *std::move(found)};
  }

  const WithLayers& with_layers_;
  const SearchOptions& search_;
  Bytes budget_;
  Assignment best_;
  std::set<std::vector<int>> seen_;
};

}  // namespace

AssignedLayers assign_layers(const WithLayers& with_layers, const std::vector<int>& start,
                             const SearchOptions& search) {
  return LayerSearch{with_layers, search}.run(start);
}

}  // namespace longhaul::planner
