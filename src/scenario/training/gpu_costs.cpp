#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.hpp"
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

/// Where [train] hetero = true stands; nullopt where it does not.
std::optional<Field> hetero_field(const ConfigNode& root) {
  const ConfigNode* const train = root.find("train");
  const ConfigNode* const hetero = train == nullptr ? nullptr : train->find("hetero");
  if (hetero == nullptr) return std::nullopt;
  const Field field{hetero, "train.hetero"};
  return read_boolean(field) ? std::optional{field} : std::nullopt;
}

/// Samples of all batches together; the scenario says them.
std::int64_t samples_to_divide(const Scenario& scenario, const Field& hetero) {
  const std::vector<int>& batch = scenario.train.batch;
  if (!batch.empty()) return std::accumulate(batch.begin(), batch.end(), std::int64_t{0});
  if (scenario.train.preset.empty() && scenario.model)
    return std::int64_t{scenario.parallel.replicas} * scenario.model->microbatch_size;
  fail_at(hetero.node->place,
          "{} = true without train.batch (nobody knows how many samples there are to divide). "
          "Write batch = 64, say, in [train].",
          hetero.path);
}

std::vector<int> divided_at(const Field& hetero, std::int64_t samples,
                            std::span<const double> throughput) {
  try {
    return divided_by_throughput(samples, throughput);
  } catch (const Error& error) {
    fail_at(hetero.node->place, "{}", error.what());
  }
}

}  // namespace

std::vector<int> divided_by_throughput(std::int64_t samples, std::span<const double> throughput) {
  const auto replicas = static_cast<std::int64_t>(throughput.size());
  if (samples < replicas)
    fail("{} samples for {} replicas (each takes one at least). Give more.", samples, replicas);
  const double all = std::accumulate(throughput.begin(), throughput.end(), 0.0);
  std::vector<int> batch;
  std::int64_t given = 0;
  const auto left = [&](std::size_t r) {
    return static_cast<double>(samples) * throughput[r] / all - batch[r];
  };
  for (const double own : throughput) {
    const double share = static_cast<double>(samples) * own / all;
    batch.push_back(std::max(1, static_cast<int>(share + 1e-9)));
    given += batch.back();
  }
  for (; given < samples; ++given) {
    std::size_t most = 0;
    for (std::size_t r = 1; r < batch.size(); ++r)
      if (left(r) > left(most)) most = r;
    ++batch[most];
  }
  for (; given > samples; --given) {  // some were raised to one sample
    std::optional<std::size_t> least;
    for (std::size_t r = 0; r < batch.size(); ++r)
      if (batch[r] > 1 && (!least || left(r) < left(*least))) least = r;
    --batch[*least];
  }
  return batch;
}

void divide_batches_of_gpus(const ConfigNode& root, Scenario& scenario) {
  const std::optional<Field> hetero = hetero_field(root);
  if (!hetero) return;
  if (scenario.train.adapt.every > 0)
    fail_at(hetero->node->place,
            "{} = true beside train.adapt.every = {} (the controller chooses the batches). Leave "
            "one out.",
            hetero->path, scenario.train.adapt.every);
  if (costs_of_gpus(root, scenario).empty()) return;  // divide_batches_by_time()
  const TrainingPreset& preset = *find_training_preset(scenario.train.preset);
  const std::vector<std::string> gpus = scenario.gpus_of_ranks();
  std::vector<double> throughput;
  for (const ReplicaId replica : scenario.replica_ids()) {
    double slowest = std::numeric_limits<double>::infinity();
    for (const DeviceId device : scenario.device_ids())
      slowest = std::min(slowest,
                         throughput_of(preset, gpus[index(scenario.rank(replica, device))]).beta);
    throughput.push_back(slowest);
  }
  scenario.train.batch = divided_at(*hetero, samples_to_divide(scenario, *hetero), throughput);
}

void divide_batches_by_time(const ConfigNode& root, Scenario& scenario, std::vector<Costs>& costs) {
  const std::optional<Field> hetero = hetero_field(root);
  if (!hetero || !costs_of_gpus(root, scenario).empty()) return;
  const std::int64_t samples = samples_to_divide(scenario, *hetero);
  std::vector<double> throughput;
  for (const Costs& own : costs) {
    Duration slowest{1};
    for (std::size_t stage = 0; stage < own.forward.size(); ++stage)
      slowest = std::max(slowest, own.forward[stage] + own.backward[stage]);
    throughput.push_back(1 / static_cast<double>(slowest.count()));
  }
  scenario.train.batch = divided_at(*hetero, samples, throughput);
  const double equal = static_cast<double>(samples) / static_cast<double>(costs.size());
  for (std::size_t r = 0; r < costs.size(); ++r) {
    const double factor = scenario.train.batch[r] / equal;
    for (const auto times :
         {&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad, &Costs::recompute})
      for (Duration& time : costs[r].*times)
        time = Duration{std::llround(factor * static_cast<double>(time.count()))};
    for (const auto sizes : {&Costs::activation, &Costs::message})
      for (Bytes& size : costs[r].*sizes)
        size = Bytes{std::llround(factor * static_cast<double>(size.count()))};
  }
}

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
