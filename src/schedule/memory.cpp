#include "schedule/memory.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::schedule {
namespace {

void assert_shape(const Schedule& schedule, const Scenario& scenario) {
  const std::size_t devices = at(schedule.devices);
  LONGHAUL_ASSERT(scenario.costs.activation.size() == devices &&
                      scenario.costs.message.size() == devices &&
                      schedule.device_of_chunk.size() == at(schedule.chunks),
                  "schedule {} of {} devices, scenario {} of {} stages", schedule.name, devices,
                  scenario.name, scenario.costs.activation.size());
}

std::vector<bool> recomputed_chunks(const Schedule& schedule) {
  std::vector<bool> recomputed(at(schedule.chunks));
  for (const auto& row : schedule.rows) {
    for (const Block& block : row) {
      if (block.kind == BlockKind::R) recomputed[at(block.chunk)] = true;
    }
  }
  return recomputed;
}

Bytes input_size(const Schedule& schedule, const Scenario& scenario, ChunkId chunk) {
  const DeviceId sender =
      schedule.device_of_chunk[schedule.is_first(chunk) ? chunk : previous(chunk)];
  return scenario.costs.message[index(sender)];
}

/// `whole`: the chunk's activation; `kept`: what F takes of it.
MemoryEffect effect_of(const Block& block, Bytes whole, Bytes kept) {
  const bool first = block.part == 0;
  const bool last = block.part + 1 == block.parts;
  const Bytes none;
  switch (block.kind) {
    case BlockKind::F: return {first ? kept : none, none};
    case BlockKind::R: return {first ? whole - kept : none, none};
    case BlockKind::B: return {none, last ? -whole : none};
    case BlockKind::D: return {none, last ? -(whole / 2) : none};
    case BlockKind::W: return {none, last ? whole / 2 - whole : none};
  }
  return {};
}

Bytes peak_of(std::span<const Block> row, const ActivationModel& model) {
  Bytes held;
  Bytes peak;
  for (const Block& block : row) {
    const MemoryEffect effect = model.effect(block);
    held += effect.at_start;
    peak = std::max(peak, held);
    held += effect.at_end;
  }
  return peak;
}

/// One buffer for each way in which messages of one kind pass between two devices, the largest of
/// that way: what a device sends to and receives from each neighbour.
IndexedVector<DeviceId, Bytes> buffers(const Schedule& schedule, const Scenario& scenario) {
  struct Crossing {
    DeviceId from;
    DeviceId to;
    bool gradients;
    Bytes size;
  };
  std::vector<Crossing> crossings;
  const auto add = [&crossings](DeviceId from, DeviceId to, bool gradients, Bytes size) {
    const auto same = std::ranges::find_if(crossings, [&](const Crossing& crossing) {
      return crossing.from == from && crossing.to == to && crossing.gradients == gradients;
    });
    if (same == crossings.end()) {
      crossings.push_back({from, to, gradients, size});
    } else {
      same->size = std::max(same->size, size);
    }
  };
  for (const ChunkId chunk : schedule.chunk_ids()) {
    if (schedule.is_last(chunk)) continue;
    const DeviceId from = schedule.device_of_chunk[chunk];
    const DeviceId to = schedule.device_of_chunk[next(chunk)];
    if (from == to) continue;
    add(from, to, false, scenario.costs.message[index(from)]);
    add(to, from, true, scenario.costs.message[index(from)]);
  }
  IndexedVector<DeviceId, Bytes> of_device(schedule.devices);
  for (const Crossing& crossing : crossings) {
    of_device[crossing.from] += crossing.size;
    of_device[crossing.to] += crossing.size;
  }
  return of_device;
}

template <typename Value>
std::optional<Value> entry(const std::vector<std::optional<Value>>& values, DeviceId device) {
  return index(device) < values.size() ? values[index(device)] : std::nullopt;
}

/// Weights, gradients and optimizer state of what device `of` holds in copy 0, and `holders`
/// devices of each replica hold.
void add_static_memory(DeviceNeed& memory, const Scenario& scenario, DeviceId of, int holders) {
  if (const auto given = entry(scenario.memory.fixed, of)) {
    memory.weights += *given;
    return;
  }
  // bf16 weights of 2 bytes; fp32 master weights and two moments are 12, 6 times as much.
  constexpr std::int64_t kOptimizerOverWeights = 6;
  const Parallel& parallel = scenario.parallel;
  int shards = 1;
  if (parallel.gradient_sync == GradientSync::zero3) shards = parallel.shard * holders;
  if (divides_optimizer(parallel.gradient_sync)) shards = parallel.replicas * holders;
  const Bytes weights = scenario.costs.weights[index(of)];
  memory.weights += weights;
  memory.gradients += weights;
  memory.optimizer += (weights * kOptimizerOverWeights + Bytes{shards - 1}) / shards;
}

/// Which devices hold what. A device's share of the model is named by the device that holds it in
/// copy 0.
struct Holdings {
  IndexedVector<DeviceId, std::vector<DeviceId>> of_device;  ///< in any copy, each once
  IndexedVector<DeviceId, int> holders;                      ///< of what a device holds in copy 0

  explicit Holdings(const Schedule& schedule)
      : of_device(schedule.devices), holders(schedule.devices) {
    for (const ChunkId chunk : schedule.chunk_ids()) {
      const DeviceId held = schedule.device_of_chunk[ChunkId{number(schedule.stage_of(chunk))}];
      std::vector<DeviceId>& mine = of_device[schedule.device_of_chunk[chunk]];
      if (std::ranges::find(mine, held) != mine.end()) continue;
      mine.push_back(held);
      ++holders[held];
    }
  }
};

}  // namespace

ActivationModel::ActivationModel(const Schedule& schedule, const Scenario& scenario) {
  assert_shape(schedule, scenario);
  const std::vector<bool> recomputed = recomputed_chunks(schedule);
  chunks_.resize(at(schedule.chunks));
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  for (const ChunkId chunk : schedule.chunk_ids()) {
    const std::size_t device = index(schedule.device_of_chunk[chunk]);
    const auto [of, place] = shares[chunk];
    const Bytes whole = share(scenario.costs.activation[device], of, place);
    const Bytes input = input_size(schedule, scenario, chunk);
    chunks_[at(chunk)] = {whole, recomputed[at(chunk)] ? std::min(input, whole) : whole};
  }
}

MemoryEffect ActivationModel::effect(const Block& block) const {
  const Chunk& chunk = chunks_[at(block.chunk)];
  return effect_of(block, chunk.whole, chunk.kept);
}

std::vector<Bytes> peak_activation(const Schedule& schedule, const Scenario& scenario) {
  if (scenario.has_uneven_replicas()) {
    std::vector<Bytes> peaks;
    for (const ReplicaId replica : schedule.replica_ids())
      for (const Bytes peak :
           peak_activation(schedule.of_replica(replica), scenario.of_replica(replica)))
        peaks.push_back(peak);
    return peaks;
  }
  const ActivationModel model{schedule, scenario};
  std::vector<Bytes> peaks;
  for (const auto& row : schedule.rows) peaks.push_back(peak_of(row, model));
  return peaks;
}

Bytes allowed_activation(const Schedule& schedule, const Scenario& scenario) {
  const std::int64_t chunks = schedule.chunks_of_copy() / schedule.devices;
  const std::int64_t held = std::min(schedule.devices, schedule.microbatches) *
                            std::llround(std::ceil(scenario.memory.budget));
  return scenario.activation_budget() + Bytes{chunks * (chunks - 1) * held};
}

std::vector<int> over_budget(const Schedule& schedule, const Scenario& scenario) {
  if (scenario.has_uneven_replicas()) {
    std::set<int> over;
    for (const ReplicaId replica : schedule.replica_ids())
      for (const int device :
           over_budget(schedule.of_replica(replica), scenario.of_replica(replica)))
        over.insert(device);
    return {over.begin(), over.end()};
  }
  const std::vector<Bytes> peaks = peak_activation(schedule, scenario);
  const Bytes allowed = allowed_activation(schedule, scenario);
  std::vector<int> over;
  for (const DeviceId device : schedule.device_ids()) {
    for (std::size_t row = index(device); row < peaks.size(); row += at(schedule.devices)) {
      if (peaks[row] <= allowed) continue;
      over.push_back(number(device));
      break;
    }
  }
  return over;
}

double least_budget(Bytes needed, const Schedule& schedule, const Scenario& scenario) {
  Scenario with = scenario;
  const auto allowed = [&](double budget) {
    with.memory.budget = budget;
    return allowed_activation(schedule, with);
  };
  with.memory.budget = 1;
  const double whole = static_cast<double>(with.activation_budget().count());
  if (whole == 0) return 0;
  const double bare = static_cast<double>(needed.count()) / whole;
  Bytes rounding = allowed(bare);
  rounding -= with.activation_budget();
  // A thousandth of a step is the noise of floating point.
  double steps = std::ceil(static_cast<double>((needed - rounding).count()) / whole * 1e6 - 1e-3);
  steps = std::max(steps, 1.0);
  while (allowed(steps / 1e6) < needed) ++steps;
  return steps / 1e6;
}

std::vector<DeviceNeed> device_memory(const Schedule& schedule, const Scenario& scenario) {
  const std::vector<Bytes> peaks = peak_activation(schedule, scenario);
  const IndexedVector<DeviceId, Bytes> of_messages = buffers(schedule, scenario);
  const Holdings holdings{schedule};
  std::vector<DeviceNeed> memories;
  for (const DeviceId device : schedule.device_ids()) {
    DeviceNeed memory;
    memory.device = device;
    memory.buffers = of_messages[device];
    for (const DeviceId held : holdings.of_device[device])
      add_static_memory(memory, scenario, held, holdings.holders[held]);
    for (std::size_t row = index(device); row < peaks.size(); row += at(schedule.devices)) {
      memory.activations = std::max(memory.activations, peaks[row]);
    }
    memory.capacity = entry(scenario.memory.capacity, device);
    memories.push_back(memory);
  }
  return memories;
}

}  // namespace longhaul::schedule
