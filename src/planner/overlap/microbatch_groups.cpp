#include "planner/overlap/microbatch_groups.hpp"

#include <algorithm>
#include <string_view>

#include "schedule/generators/generate.hpp"

namespace longhaul::planner {
namespace {

constexpr std::string_view kInterleaved = "interleaved-1f1b";
constexpr std::size_t kMostSizes = 5;

/// Ascending: what is left for the last group is none, or as many as stages at least.
std::vector<int> sizes_of_groups(const Scenario& scenario) {
  const int stages = scenario.parallel.stages;
  const int microbatches = scenario.parallel.microbatches;
  std::vector<int> all;
  for (int size = stages; size <= microbatches; ++size) {
    const int left = microbatches % size;
    if (left == 0 || left >= stages) all.push_back(size);
  }
  if (all.size() <= kMostSizes) return all;
  std::vector<int> some;
  for (std::size_t i = 0; i < kMostSizes; ++i)
    some.push_back(all[i * (all.size() - 1) / (kMostSizes - 1)]);
  return some;
}

}  // namespace

std::optional<Schedule> in_groups(const MicrobatchGroup& group, const Scenario& scenario) {
  Scenario own = scenario;
  own.parallel.microbatch_group = group;
  Result<Schedule> made = schedule::try_generate(*schedule::find_generator(kInterleaved), own);
  if (!made) return std::nullopt;
  return *std::move(made);
}

std::vector<MicrobatchGroup> microbatch_groups(const Schedule& schedule, const Scenario& scenario) {
  std::vector<MicrobatchGroup> groups;
  if (scenario.parallel.stages < 2 || schedule.chunks == schedule.devices) return groups;
  const Result<Schedule> own =
      schedule::try_generate(*schedule::find_generator(kInterleaved), scenario);
  if (!own || own->rows != schedule.rows) return groups;
  const std::vector<int> sizes = sizes_of_groups(scenario);
  for (const int forward : sizes)
    for (const int backward : sizes) groups.push_back({forward, backward});
  return groups;
}

MicrobatchGroup nearest_group(const collective::ModelChoice& choice,
                              const std::vector<MicrobatchGroup>& known) {
  const auto nearest = [&](int wanted, int MicrobatchGroup::*count) {
    int best = 0;
    for (const MicrobatchGroup& each : known) {
      const int own = each.*count;
      const bool is_better = own >= wanted ? best < wanted || own < best : best < own;
      if (is_better && (own >= wanted || best < wanted)) best = own;
    }
    return best;
  };
  return {nearest(choice.forward, &MicrobatchGroup::forward),
          nearest(choice.backward, &MicrobatchGroup::backward)};
}

}  // namespace longhaul::planner
