#include "schedule/generators/generate.hpp"

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/suggest.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::schedule {
namespace {

/// More blocks than this are a slip of the keyboard: 3 GiB of schedule, and ids of ops are 32 bits.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 28;

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Generator& generator : generators()) names.emplace_back(generator.name);
  for (const Generator& generator : stream_generators()) names.emplace_back(generator.name);
  return names;
}

void check_counts(const Parallel& parallel) {
  const auto at_least_one = [](const char* what, int count) {
    if (count >= 1) return;
    fail("A schedule cannot have {} {} (at least 1 is needed). Set parallel.{}.", count, what,
         what);
  };
  at_least_one("stages", parallel.stages);
  at_least_one("microbatches", parallel.microbatches);
  at_least_one("replicas", parallel.replicas);
  at_least_one("chunks", parallel.chunks);
}

int chunks_per_device(Placement placement, const Parallel& parallel) {
  switch (placement) {
    case Placement::unidirectional: return 1;
    case Placement::loop: return parallel.chunks;
    case Placement::wave: return 2;
    case Placement::bidirectional: return 2;  // one of each copy
  }
  return 1;
}

int copies_of(Placement placement) { return placement == Placement::bidirectional ? 2 : 1; }

DeviceId device_of(ChunkId chunk, int devices, Placement placement) {
  switch (placement) {
    case Placement::unidirectional:
    case Placement::loop: return DeviceId{chunk % devices};
    case Placement::wave:
    case Placement::bidirectional: break;
  }
  // The second half runs backwards: the way back of a V, or the other copy.
  return DeviceId{std::min<int>(chunk, 2 * devices - 1 - chunk)};
}

/// Each replica's rows by its own costs and count of microbatches, as if it were alone.
Result<Schedule> generate_apart(const Generator& generator, const Scenario& scenario) {
  if (generator.shares_wan)
    return refused(
        "{} decides for pipelines of equal costs and microbatches (the replicas differ). Use a "
        "schedule whose pipelines do not share the WAN.",
        generator.name);
  Schedule all;
  for (const ReplicaId replica : scenario.replica_ids()) {
    Result<Schedule> alone = try_generate(generator, scenario.of_replica(replica));
    if (!alone) return alone.refusal();
    if (!alone->link_orders.empty())
      return refused(
          "{} states the order of messages on links for equal replicas (they differ). Use another "
          "schedule.",
          generator.name);
    if (replica == ReplicaId{0}) {
      all = *std::move(alone);
      continue;
    }
    std::ranges::move(alone->rows, std::back_inserter(all.rows));
  }
  all.replicas = scenario.parallel.replicas;
  all.microbatches = scenario.parallel.microbatches;
  all.replica_microbatches = scenario.parallel.replica_microbatches;
  return all;
}

}  // namespace

Result<Schedule> empty_schedule(const Generator& generator, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  const int chunks = chunks_per_device(generator.placement, parallel);
  const int kinds = (generator.backward == Backward::split ? 3 : 2) + scenario.memory.recompute;
  // Limits chunks * stages first: the product of all three factors may overflow.
  const std::int64_t cells = std::int64_t{chunks} * parallel.stages;
  const std::int64_t most_microbatches = kMostBlocks / kinds / std::min(cells, kMostBlocks);
  if (cells > kMostBlocks || parallel.microbatches > most_microbatches) {
    return refused(
        "{} for {} stages, {} chunks a stage and {} microbatches has more than {} blocks (too many "
        "to hold). Lower parallel.microbatches to {} or less.",
        generator.name, parallel.stages, chunks, parallel.microbatches, kMostBlocks,
        most_microbatches);
  }
  Schedule schedule;
  schedule.name = generator.name;
  schedule.devices = parallel.stages;
  schedule.chunks = chunks * parallel.stages;
  schedule.microbatches = parallel.microbatches;
  schedule.replicas = parallel.replicas;
  schedule.copies = copies_of(generator.placement);
  for (ChunkId chunk{}; chunk < schedule.chunks; ++chunk) {
    schedule.device_of_chunk.push_back(device_of(chunk, schedule.devices, generator.placement));
  }
  schedule.rows.resize(to_size(schedule.devices));
  for (std::vector<Block>& row : schedule.rows) {
    row.reserve(to_size(kinds * chunks / schedule.copies) * to_size(schedule.microbatches));
  }
  return schedule;
}

std::span<const std::string> static_schedule_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Generator& generator : generators()) {
      if (is_static(generator.knowledge)) names.emplace_back(generator.name);
    }
    return names;
  }();
  return kNames;
}

Schedule generate(std::string_view name, const Scenario& scenario) {
  const Generator* generator = find_generator(name);
  if (generator == nullptr) {
    fail("There is no schedule \"{}\". {}", name, suggestion(name, known_names()));
  }
  return try_generate(*generator, scenario).or_throw();
}

Result<Schedule> try_generate(const Generator& generator, const Scenario& scenario) {
  check_counts(scenario.parallel);
  if (scenario.has_uneven_replicas()) return generate_apart(generator, scenario);
  Result<Schedule> empty = empty_schedule(generator, scenario);
  if (!empty) return empty;
  Schedule schedule = *std::move(empty);
  if (auto why = generator.fill(scenario, schedule)) return *std::move(why);
  return schedule;
}

}  // namespace longhaul::schedule
