#include <algorithm>

#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::schedule::families {

/// Huang et al., "GPipe", NeurIPS 2019: all F, then all B.
void fill_gpipe(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, stage};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
    chunk.rest(BlockKind::F);
    chunk.rest(BlockKind::B);
  }
}

/// Narayanan et al., "PipeDream", SOSP 2019 (with a flush, as in Megatron-LM): as many F as there
/// are stages after this one, then F and B in turn, then the B that are left.
void fill_1f1b(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, stage};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
    chunk.next(BlockKind::F, std::min(schedule.devices - stage - 1, schedule.microbatches));
    while (chunk.has(BlockKind::F)) {
      chunk.next(BlockKind::F);
      chunk.next(BlockKind::B);
    }
    chunk.rest(BlockKind::B);
  }
}

}  // namespace longhaul::schedule::families
