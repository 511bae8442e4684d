#include <algorithm>

#include "base/index.hpp"
#include "schedule/cells.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule::checks {
namespace {
/** What is wrong with the replicas' own counts of microbatches. */
std::optional<Violation> replica_microbatches_violation(const Schedule& s) {
  const std::vector<int>& counts = s.replica_microbatches;
  if (counts.empty()) return std::nullopt;
  const std::int64_t all = std::int64_t{s.devices} * s.replicas;
  if (std::ssize(counts) == s.replicas && std::ssize(s.rows) == all &&
      std::ranges::max(counts) == s.microbatches && std::ranges::min(counts) >= 1)
    return std::nullopt;
  return violation(ViolationKind::shape,
                   "The schedule has {} counts of microbatches for {} replicas of {} rows (each "
                   "replica has a count, {} at most, and rows of its own).",
                   counts.size(), s.replicas, s.rows.size(), s.microbatches);
}
}  // namespace

std::optional<Violation> counts_violation(const Schedule& schedule) {
  using enum ViolationKind;
  const Schedule& s = schedule;
  if (s.devices < 1 || s.microbatches < 1 || s.replicas < 1) {
    return violation(shape,
                     "The schedule has {} devices, {} microbatches, {} replicas (at least 1 of "
                     "each is needed).",
                     s.devices, s.microbatches, s.replicas);
  }
  const std::int64_t all = std::int64_t{s.devices} * s.replicas;
  const auto rows = static_cast<std::int64_t>(s.rows.size());
  if (rows != s.devices && rows != all) {
    return violation(shape,
                     "The schedule has {} rows (one for each of {} devices is needed, or one for "
                     "each device of each of {} replicas).",
                     rows, s.devices, s.replicas);
  }
  if (const auto wrong = replica_microbatches_violation(s)) return wrong;
  if (s.copies < 1 || s.chunks % s.copies != 0) {
    return violation(shape,
                     "The schedule has {} chunks in {} copies of the model (each copy needs as "
                     "many chunks as the others).",
                     s.chunks, s.copies);
  }
  if (s.cell < 1 || s.cell > s.replicas || s.cell > kMostPipelinesOfACell) {
    return violation(shape,
                     "The schedule has cells of {} pipelines (1 to {} are possible: it has {} "
                     "replicas, and a message is cut into at most {} pieces).",
                     s.cell, std::min(s.replicas, kMostPipelinesOfACell), s.replicas,
                     kMostPipelinesOfACell);
  }
  if (s.chunks < s.devices) {
    return violation(shape, "The schedule has {} chunks on {} devices (each needs one).", s.chunks,
                     s.devices);
  }
  if (s.device_of_chunk.count() != s.chunks) {
    return violation(shape, "The schedule has {} chunks but says where {} of them lie.", s.chunks,
                     s.device_of_chunk.size());
  }
  std::vector<bool> used(to_size(s.devices));
  for (const ChunkId chunk : s.chunk_ids()) {
    const DeviceId device = s.device_of_chunk[chunk];
    if (device < DeviceId{0} || device >= DeviceId{s.devices}) {
      return violation(shape, "Chunk {} lies on device {}, but devices are 0 to {}.", chunk, device,
                       s.devices - 1);
    }
    used[index(device)] = true;
  }
  const auto idle = std::ranges::find(used, false);
  if (idle != used.end()) {
    return violation(shape, "No chunk lies on device {}. Give it one or leave the device out.",
                     idle - used.begin());
  }
  return std::nullopt;
}

std::string device_text(const Schedule& schedule, std::size_t row) {
  const std::size_t devices = to_size(schedule.devices);
  if (schedule.replicas_share_rows()) return fmt::format("device {}", row);
  return fmt::format("device {} of replica {}", row % devices, row / devices);
}

}  // namespace longhaul::schedule::checks
