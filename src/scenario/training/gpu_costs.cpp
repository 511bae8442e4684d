#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "scenario/training/read_train.hpp"
#include "scenario/training/training_presets.hpp"

namespace longhaul::scenario {
namespace {

/// F is a third of it, and so are D and W.
void set_gpu_times(Costs& costs, std::size_t device, Duration whole) {
  costs.forward[device] = costs.recompute[device] = whole / 3;
  costs.backward[device] = whole - whole / 3;
  costs.wgrad[device] = costs.backward[device] / 2;
  costs.dgrad[device] = costs.backward[device] - costs.wgrad[device];
}

/// Does the scenario say itself what blocks take? A [model] beside [train] preset does so where it
/// states how fast it is computed.
bool says_times(const ConfigNode& root) {
  if (root.find("operator") != nullptr) return true;
  if (const ConfigNode* const model = root.find("model"))
    if (model->find("achieved_flops") != nullptr || model->find("preset") != nullptr) return true;
  const ConfigNode* const costs = root.find("costs");
  if (costs == nullptr) return false;
  constexpr const char* kTimes[] = {"file",  "operators", "forward",  "backward",
                                    "dgrad", "wgrad",     "recompute"};
  return std::ranges::any_of(kTimes, [&](auto key) { return costs->find(key) != nullptr; });
}

Costs empty_costs(std::size_t devices) {
  Costs costs;
  for (auto* times :
       {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute})
    times->resize(devices);
  return costs;
}

}  // namespace

std::vector<Costs> costs_of_gpus(const ConfigNode& root, const Scenario& scenario) {
  if (says_times(root)) return {};
  const TrainingPreset* const preset = find_training_preset(scenario.train.preset);
  const std::vector<std::string> gpus = scenario.gpus_of_ranks();
  if (preset == nullptr || gpus.empty()) return {};
  const int stages = scenario.parallel.stages;
  std::vector<Costs> all(to_size(scenario.parallel.replicas), empty_costs(to_size(stages)));
  for (const ReplicaId replica : scenario.replica_ids()) {
    for (const DeviceId device : scenario.device_ids()) {
      const GpuThroughput gpu = throughput_of(*preset, gpus[index(scenario.rank(replica, device))]);
      const double batch =
          scenario.train.batch.empty() ? gpu.alpha : scenario.train.batch[index(replica)];
      set_gpu_times(all[index(replica)], index(device), gpu.time_of(batch) / stages);
    }
  }
  return all;
}

std::int64_t gradient_numbers(const Scenario& scenario, Bytes weights) {
  return weights.count() / (scenario.model ? 2 : 4);
}

Bytes nominal_size(const Scenario& scenario, Bytes size) {
  const TrainingPreset* const other = find_training_preset(scenario.train.stands_for);
  if (other == nullptr) return size;
  Bytes weights;
  for (const Bytes of_device : scenario.costs.weights) weights += of_device;
  const std::int64_t own = gradient_numbers(scenario, weights);
  if (own == 0) return size;
  const double ratio = static_cast<double>(other->parameters) / static_cast<double>(own);
  return Bytes{std::llround(static_cast<double>(size.count()) * ratio)};
}

}  // namespace longhaul::scenario
