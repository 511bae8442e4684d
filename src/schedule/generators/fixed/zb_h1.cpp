#include <algorithm>

#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::families {

/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2 (their B is our D). Stage s
/// keeps s W back, so that W fills the bubbles of the cool-down with no more than P activations.
void fill_zb_h1(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, stage};
    ChunkWriter chunk{row, stage, schedule.microbatches};
    chunk.next(BlockKind::F, std::min(schedule.devices - stage - 1, schedule.microbatches));
    for (int step = 0; chunk.has(BlockKind::F); ++step) {
      chunk.next(BlockKind::F);
      chunk.next(BlockKind::D);
      if (step >= stage) chunk.next(BlockKind::W);
    }
    while (chunk.has(BlockKind::D)) {
      chunk.next(BlockKind::D);
      chunk.next(BlockKind::W);
    }
    chunk.rest(BlockKind::W);
  }
}

}  // namespace longhaul::families
