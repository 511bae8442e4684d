#include "schedule/generators/families.hpp"

namespace longhaul::schedule::families {
namespace {

Block part_of_block(BlockKind kind, int part, int parts, int microbatch) {
  return {.kind = kind,
          .part = static_cast<std::uint8_t>(part),
          .parts = static_cast<std::uint8_t>(parts),
          .chunk = ChunkId{0},
          .microbatch = MicrobatchId{microbatch}};
}

}  // namespace

/// Lim et al., "Accelerating Model Training in Multi-cluster Environments with Consumer-grade
/// GPUs", SIGCOMM 2024, section 3.3: part k of F and of B are of the same layers, so B runs from
/// the last part to the first. What replicas exchange is the plan's (plan/parts/).
std::optional<Refusal> fill_stella(const Scenario& scenario, Schedule& schedule) {
  if (schedule.devices > 1)
    return refused(
        "stella is of replicas of one stage (parallel.stages = {}). Use a pipeline's schedule, "
        "such as 1f1b: with gradient_sync = \"compressed\" its chunks are the parts.",
        schedule.devices);
  if (scenario.parallel.gradient_sync != GradientSync::compressed)
    return refused(
        "stella exchanges gradients part by part (gradient_sync = \"{}\"). Set "
        "parallel.gradient_sync = \"compressed\".",
        to_string(scenario.parallel.gradient_sync));
  if (scenario.memory.recompute)
    return refused("stella keeps activations (memory.recompute = true). Set it to false.");
  const int parts = scenario.train.parts;
  std::vector<Block>& row = schedule.rows.front();
  row.reserve(to_size(2 * parts) * to_size(schedule.microbatches));
  for (int m = 0; m < schedule.microbatches; ++m) {
    for (int k = 0; k < parts; ++k) row.push_back(part_of_block(BlockKind::F, k, parts, m));
    for (int k = parts; k-- > 0;) row.push_back(part_of_block(BlockKind::B, k, parts, m));
  }
  return std::nullopt;
}

}  // namespace longhaul::schedule::families
