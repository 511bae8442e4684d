#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/index.hpp"
#include "plan/lowering/part_lowering.hpp"

namespace longhaul::plan {
namespace {

bool makes_gradients(const Block& block) {
  return block.kind == BlockKind::B || block.kind == BlockKind::W;
}

/// How many parts each chunk of the schedule has, as replica 0 runs it: those that F and what makes
/// its gradients are both cut into.
std::vector<int> parts_of_chunks(const Schedule& schedule) {
  std::vector<int> forward(to_size(schedule.chunks), 1), backward = forward;
  for (const DeviceId device : schedule.device_ids()) {
    for (const Block& block : schedule.row(ReplicaId{0}, device)) {
      if (block.kind == BlockKind::F) forward[index(block.chunk)] = block.parts;
      if (makes_gradients(block)) backward[index(block.chunk)] = block.parts;
    }
  }
  for (std::size_t c = 0; c < forward.size(); ++c)
    if (forward[c] != backward[c]) forward[c] = 1;
  return forward;
}

/// Between which microbatches a part is exchanged: the last that it has gradients of, and the first
/// whose F meets the update, of the next iteration where that is beyond this one's.
struct PartTurns {
  int gives = std::numeric_limits<int>::max(), takes = 0;
  int iterations_back = 1;
};
PartTurns turns_of(int part, int microbatches, const PartExchanges& exchanges) {
  const int done = (part % exchanges.fragments + 1) * microbatches / exchanges.fragments;
  if (done + exchanges.overlap < microbatches) return {done - 1, done + exchanges.overlap, 0};
  PartTurns turns;  // of the last fragment, whatever is left of the iteration
  if (done < microbatches) turns.gives = done - 1;
  turns.takes = done + exchanges.overlap - microbatches;
  return turns;
}

/// Sums of nodes: of replicas that step together, where there are any in one node.
std::optional<Refusal> why_no_gather(const Schedule& schedule, const Scenario& scenario) {
  if (scenario.train.gather == GradientGather::none) return std::nullopt;
  const std::string_view gather = to_string(scenario.train.gather);
  if (scenario.train.local_steps > 1)
    return refused(
        "train.gather = \"{}\" and train.local_steps = {} (replicas of a node have one sum and one "
        "step of it). Set one of them back.",
        gather, scenario.train.local_steps);
  for (const DeviceId device : schedule.device_ids()) {
    std::vector<Rank> members;
    for (const ReplicaId replica : schedule.replica_ids())
      members.push_back(scenario.rank(replica, device, 0));
    if (!leaders_of_nodes(scenario, members).empty()) return std::nullopt;
  }
  return refused(
      "train.gather = \"{}\", and no two replicas of a stage lie in one node (without [[node]] "
      "each rank is one). Give [[node]] gpus, or leave it out.",
      gather);
}

/// Steps of a replica's own between two exchanges: microbatches of an iteration, one after another.
std::optional<Refusal> why_no_local_steps(const Schedule& schedule, const Scenario& scenario) {
  const int steps = scenario.train.local_steps;
  if (steps == 1) return std::nullopt;
  if (scenario.train.staleness > 0)
    return refused(
        "train.local_steps = {} and train.staleness = {} (local steps begin with the weights that "
        "all have after an exchange). Set one of them back.",
        steps, scenario.train.staleness);
  if (schedule.devices != 1 || schedule.microbatches != steps)
    return refused(
        "train.local_steps = {}, {} stages and {} microbatches (a local step is of one microbatch "
        "of the whole model). Write 1 of both.",
        steps, schedule.devices, schedule.microbatches);
  for (const ReplicaId replica : schedule.replica_ids()) {
    MicrobatchId last{0};
    for (const Block& block : schedule.row(replica, DeviceId{0})) {
      if (block.microbatch < last)
        return refused(
            "{} goes back to microbatch {} (train.local_steps = {}: a step ends before the next "
            "begins). Use stella.",
            schedule.name, number(block.microbatch), steps);
      last = std::max(last, block.microbatch);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<TrainedPart> trained_parts(const Schedule& schedule, ReplicaId replica, DeviceId device,
                                       const PartExchanges& exchanges) {
  const std::vector<int> parts = parts_of_chunks(schedule);
  std::vector<TrainedPart> all;
  std::map<std::pair<ChunkId, int>, std::size_t> place;
  int next = 0;
  for (const ChunkId chunk : schedule.chunk_ids()) {
    for (int k = 0; k < parts[index(chunk)]; ++k, ++next) {
      if (schedule.device_of_chunk[chunk] != device) continue;
      place[{chunk, k}] = all.size();
      all.push_back({chunk, static_cast<std::uint8_t>(k),
                     static_cast<std::uint8_t>(parts[index(chunk)]), next, -1, -1,
                     turns_of(next, schedule.microbatches, exchanges).iterations_back});
    }
  }
  const auto row = schedule.row(replica, device);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int k = parts[index(row[i].chunk)] == 1 ? 0 : row[i].part;
    TrainedPart& part = all[place.at({row[i].chunk, k})];
    const auto position = static_cast<std::int32_t>(i);
    const PartTurns turns = turns_of(part.number, schedule.microbatches, exchanges);
    const int microbatch = number(row[i].microbatch);
    if (row[i].kind == BlockKind::F && part.first_forward < 0 && microbatch >= turns.takes)
      part.first_forward = position;
    if (makes_gradients(row[i]) && microbatch <= turns.gives) part.last_gradient = position;
  }
  return all;
}

std::vector<std::int32_t> leaders_of_nodes(const Scenario& scenario,
                                           std::span<const Rank> members) {
  std::vector<std::int32_t> leaders;
  if (scenario.train.gather == GradientGather::none) return leaders;
  const schedule::NetworkRoutes routes{scenario};
  std::map<std::pair<DatacenterId, int>, std::int32_t> first_of;
  for (const Rank rank : members)
    leaders.push_back(first_of
                          .try_emplace({scenario.datacenter_of(rank), routes.node_of(rank)},
                                       static_cast<std::int32_t>(leaders.size()))
                          .first->second);
  if (first_of.size() == members.size()) leaders.clear();
  return leaders;
}

std::optional<Refusal> why_no_parts(const Schedule& schedule, const Scenario& scenario) {
  if (scenario.parallel.gradient_sync != GradientSync::compressed) return std::nullopt;
  constexpr const char* kKey = "gradient_sync = \"compressed\"";
  if (schedule.copies > 1)
    return refused(
        "{} holds two copies of the model in a pipeline, whose gradients would have to be summed "
        "before {} sends them. Use a schedule with one.",
        schedule.name, kKey);
  if (schedule.cell > 1 || !schedule.link_orders.empty())
    return refused(
        "{} states the order of messages on links, where {} lets the links choose. Use another "
        "schedule.",
        schedule.name, kKey);
  if (auto refusal = why_no_local_steps(schedule, scenario)) return refusal;
  if (auto refusal = why_no_gather(schedule, scenario)) return refusal;
  const std::vector<int> of_chunks = parts_of_chunks(schedule);
  int parts = 0;
  for (const int of_chunk : of_chunks) parts += of_chunk;
  for (std::size_t i = 0; i < std::size(kPartCosts); ++i) {
    const auto given = std::ssize(scenario.train.costs.*kPartCosts[i]);
    if (given > 1 && given != parts)
      return refused(
          "train.costs.{} has {} values, schedule {} has {} parts. Give one value for each, or one "
          "for all.",
          kPartCostNames[i], given, schedule.name, parts);
  }
  return std::nullopt;
}

std::optional<Refusal> why_no_exchanges(const Schedule& schedule, const PartExchanges& exchanges) {
  int parts = 0;
  for (const int of_chunk : parts_of_chunks(schedule)) parts += of_chunk;
  if (!exchanges.sizes.empty() && std::ssize(exchanges.sizes) != parts)
    return refused("sizes of {} parts are given, and schedule {} has {}. Give one for each.",
                   exchanges.sizes.size(), schedule.name, parts);
  if (exchanges.fragments < 1 || exchanges.fragments > parts)
    return refused(
        "{} fragments of the {} parts of schedule {} (each fragment has a part at least). Give "
        "fewer, or more parts ([train] parts).",
        exchanges.fragments, parts, schedule.name);
  if (schedule.microbatches % exchanges.fragments != 0)
    return refused(
        "{} fragments and {} microbatches (fragments are exchanged as many microbatches after each "
        "other). Give a number of fragments that divides them.",
        exchanges.fragments, schedule.microbatches);
  if (exchanges.overlap < 0 || exchanges.overlap >= schedule.microbatches / exchanges.fragments)
    return refused(
        "an update comes {} microbatches after its exchange, the next fragment's exchange {} after "
        "it (one is over before the next begins). Give an overlap from 0 to {}.",
        exchanges.overlap, schedule.microbatches / exchanges.fragments,
        schedule.microbatches / exchanges.fragments - 1);
  return std::nullopt;
}

}  // namespace longhaul::plan
