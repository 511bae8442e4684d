#include <algorithm>

#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::schedule::families {

/// Huang et al., "GPipe", NeurIPS 2019: all F, then all B.
void fill_gpipe(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{stage}};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
    chunk.rest(BlockKind::F);
    chunk.rest(BlockKind::B);
  }
}

/// Narayanan et al., "PipeDream", SOSP 2019 (with a flush, as in Megatron-LM): as many F as there
/// are stages after this one, then F and B in turn, then the B that are left.
void fill_1f1b(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{stage}};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
    chunk.next(BlockKind::F, std::min(schedule.devices - stage - 1, schedule.microbatches));
    while (chunk.has(BlockKind::F)) {
      chunk.next(BlockKind::F);
      chunk.next(BlockKind::B);
    }
    chunk.rest(BlockKind::B);
  }
}

namespace {

/// Turns a running number of forward (or backward) items into its chunk and microbatch: groups of
/// P microbatches pass chunk after chunk of the device.
class Items {
public:
  Items(RowWriter& row, StageId stage, const Schedule& schedule)
      : row_{row},
        stage_{stage},
        stages_{schedule.devices},
        chunks_{schedule.chunks / schedule.devices} {}

  void next_forward() { add(BlockKind::F, forward_, forward_.chunk); }
  void next_backward() { add(BlockKind::B, backward_, chunks_ - 1 - backward_.chunk); }

private:
  /// Item k has microbatch `group * P + within` with k = (group * v + chunk) * P + within.
  struct Cursor {
    int group_begin = 0;
    int chunk = 0;
    int within = 0;
  };

  void add(BlockKind kind, Cursor& at, int local_chunk) {
    row_.add(kind, ChunkId{local_chunk * stages_ + stage_},
             MicrobatchId{at.group_begin + at.within});
    if (++at.within < stages_) return;
    at.within = 0;
    if (++at.chunk < chunks_) return;
    at.chunk = 0;
    at.group_begin += stages_;
  }

  RowWriter& row_;
  int stage_;
  int stages_;
  int chunks_;
  Cursor forward_;
  Cursor backward_;
};

std::optional<Refusal> why_not_divisible(int microbatches, int stages) {
  if (microbatches % stages == 0) return std::nullopt;
  const int below = microbatches / stages * stages;
  const int above = below + stages;
  const std::string use =
      below == 0 ? fmt::format("{}", above) : fmt::format("{} or {}", below, above);
  return refused(
      "interleaved-1f1b is not defined for {} microbatches on {} stages (it passes them on in "
      "groups of {}). Use {} microbatches.",
      microbatches, stages, stages, use);
}

}  // namespace

/// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM", SC 2021, section 2.2.2.
std::optional<Refusal> fill_interleaved_1f1b(const Scenario& scenario, Schedule& schedule) {
  if (auto why = why_not_divisible(schedule.microbatches, schedule.devices)) return why;
  const int chunks = schedule.chunks / schedule.devices;
  const int items = schedule.microbatches * chunks;
  for (StageId stage{}; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{number(stage)}};
    Items item{row, stage, schedule};
    const int ahead = 2 * (schedule.devices - stage - 1) + (chunks - 1) * schedule.devices;
    const int warm_up = std::min(ahead, items);
    for (int i = 0; i < warm_up; ++i) item.next_forward();
    for (int i = warm_up; i < items; ++i) {
      item.next_forward();
      item.next_backward();
    }
    for (int i = 0; i < warm_up; ++i) item.next_backward();
  }
  return std::nullopt;
}

}  // namespace longhaul::schedule::families
