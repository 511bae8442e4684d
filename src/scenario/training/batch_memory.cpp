#include <algorithm>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "scenario/training/read_train.hpp"

namespace longhaul::scenario {
namespace {

/// Where batches are written, or where [train] has them divided.
ConfigPosition place_of_batches(const ConfigNode& root) {
  const ConfigNode& train = *root.find("train");
  const ConfigNode* const batch = train.find("batch");
  return batch != nullptr ? batch->place : train.place;
}

std::string text_of(const Scenario& scenario, ReplicaId replica, DeviceId stage) {
  const Rank rank = scenario.rank(replica, stage);
  const std::vector<std::string> gpus =
      scenario.is_placed() ? scenario.gpus_of_ranks() : std::vector<std::string>{};
  return fmt::format("replica {} (rank {}{}{})", replica, index(rank), gpus.empty() ? "" : ", ",
                     gpus.empty() ? "" : gpus[index(rank)]);
}

/// Weights, gradients and optimizer state of a stage, as schedule::device_memory() has them.
Bytes always_held(const Scenario& scenario, std::size_t stage) {
  if (const auto& fixed = scenario.memory.fixed; stage < fixed.size() && fixed[stage])
    return *fixed[stage];
  constexpr std::int64_t kOptimizerOverWeights = 6;
  const Parallel& parallel = scenario.parallel;
  int shards = 1;
  if (parallel.gradient_sync == GradientSync::zero3) shards = parallel.shard;
  if (divides_optimizer(parallel.gradient_sync)) shards = parallel.replicas;
  const Bytes weights = scenario.costs.weights[stage];
  return weights * 2 + weights * kOptimizerOverWeights / shards;
}

/// Bytes that F of one sample leaves on a device of the replica.
double bytes_of_sample(const ConfigNode& root, const Scenario& scenario, ReplicaId replica,
                       DeviceId stage) {
  const ConfigNode* const hetero = root.find("train")->find("hetero");
  const bool is_divided = hetero != nullptr && read_boolean({hetero, "train.hetero"});
  const double samples = scenario.model && !is_divided ? scenario.model->microbatch_size
                                                       : scenario.train.batch[index(replica)];
  return static_cast<double>(scenario.costs_of(replica).activation[index(stage)].count()) / samples;
}

}  // namespace

void check_batches(const ConfigNode& root, const Scenario& scenario, bool may_be_open) {
  const std::vector<int>& batch = scenario.train.batch;
  if (batch.empty()) return;
  for (const ReplicaId replica : scenario.replica_ids())
    if (const int most = scenario.train.adapt.most_batch; most > 0 && batch[index(replica)] > most)
      fail_at(
          place_of_batches(root),
          "train.batch has {} samples for {} (train.adapt.most_batch = {}: more do not fit into "
          "a replica's memory). Give at most {}.",
          batch[index(replica)], text_of(scenario, replica, DeviceId{}), most, most);
  const bool may_be_divided = may_be_open && scenario.parallel.stages == 1;
  if (scenario.memory.recompute || may_be_divided) return;
  for (const DeviceId stage : scenario.device_ids()) {
    const auto& capacities = scenario.memory.capacity;
    if (index(stage) >= capacities.size() || !capacities[index(stage)]) continue;
    const Bytes capacity = *capacities[index(stage)], held = always_held(scenario, index(stage));
    for (const ReplicaId replica : scenario.replica_ids()) {
      const double of_sample = bytes_of_sample(root, scenario, replica, stage);
      const auto own = static_cast<double>(batch[index(replica)]) * of_sample;
      const auto left = static_cast<double>((capacity - held).count());
      if (own <= left) continue;
      const auto largest = static_cast<std::int64_t>(std::max(0.0, left) / of_sample);
      fail_at(place_of_batches(root),
              "train.batch has {} samples for {}: its activations take {} and weights, gradients "
              "and optimizer {} (memory.capacity = {}). {}.",
              batch[index(replica)], text_of(scenario, replica, stage),
              to_text(Bytes{static_cast<std::int64_t>(own)}), to_text(held), to_text(capacity),
              largest > 0 ? fmt::format("Give at most {}", largest)
                          : "Not one sample fits: use more stages, or a larger memory");
    }
  }
}

}  // namespace longhaul::scenario
