#include <algorithm>

#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::families {

/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2 (their B is our D): a
/// warm-up twice as deep as that of 1F1B leaves no bubble between a device's first and last block.
void fill_zb_h2(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, stage};
    ChunkWriter chunk{row, stage, schedule.microbatches};
    chunk.next(BlockKind::F, std::min(2 * (schedule.devices - stage) - 1, schedule.microbatches));
    for (int step = 0; chunk.has(BlockKind::D); ++step) {
      chunk.next(BlockKind::D);
      if (step >= 2 * stage) chunk.next(BlockKind::W);
      if (chunk.has(BlockKind::F)) chunk.next(BlockKind::F);
    }
    chunk.rest(BlockKind::W);
  }
}

}  // namespace longhaul::families
