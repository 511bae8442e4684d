#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::families {

/// Huang et al., "GPipe", NeurIPS 2019: all F, then all B.
void fill_gpipe(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, stage};
    ChunkWriter chunk{row, stage, schedule.microbatches};
    chunk.rest(BlockKind::F);
    chunk.rest(BlockKind::B);
  }
}

}  // namespace longhaul::families
