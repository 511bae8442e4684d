#include <algorithm>
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

}  // namespace

std::vector<TrainedPart> trained_parts(const Schedule& schedule, ReplicaId replica,
                                       DeviceId device) {
  const std::vector<int> parts = parts_of_chunks(schedule);
  std::vector<TrainedPart> all;
  std::map<std::pair<ChunkId, int>, std::size_t> place;
  int number = 0;
  for (const ChunkId chunk : schedule.chunk_ids()) {
    for (int k = 0; k < parts[index(chunk)]; ++k, ++number) {
      if (schedule.device_of_chunk[chunk] != device) continue;
      place[{chunk, k}] = all.size();
      all.push_back({chunk, static_cast<std::uint8_t>(k),
                     static_cast<std::uint8_t>(parts[index(chunk)]), number, -1, -1});
    }
  }
  const auto row = schedule.row(replica, device);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const int k = parts[index(row[i].chunk)] == 1 ? 0 : row[i].part;
    TrainedPart& part = all[place.at({row[i].chunk, k})];
    const auto position = static_cast<std::int32_t>(i);
    if (row[i].kind == BlockKind::F && part.first_forward < 0) part.first_forward = position;
    if (makes_gradients(row[i])) part.last_gradient = position;
  }
  return all;
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
  if (scenario.train.local_steps > 1)
    return refused(
        "train.local_steps = {} is of training runs (a plan is of one iteration, with its "
        "exchange). Set it to 1.",
        scenario.train.local_steps);
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

}  // namespace longhaul::plan
