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
/// microbatches pass chunk after chunk of the device. The last group has what is left.
class Items {
public:
  Items(RowWriter& row, StageId stage, const Schedule& schedule, MicrobatchGroup group)
      : row_{row},
        stage_{stage},
        stages_{schedule.devices},
        chunks_{schedule.chunks / schedule.devices},
        microbatches_{schedule.microbatches},
        forward_{.group = group.forward},
        backward_{.group = group.backward} {}

  void next_forward() { add(BlockKind::F, forward_, forward_.chunk); }
  void next_backward() { add(BlockKind::B, backward_, chunks_ - 1 - backward_.chunk); }

private:
  struct Cursor {
    int group = 1;
    int group_begin = 0;
    int chunk = 0;
    int within = 0;
  };

  void add(BlockKind kind, Cursor& at, int local_chunk) {
    row_.add(kind, ChunkId{local_chunk * stages_ + stage_},
             MicrobatchId{at.group_begin + at.within});
    if (++at.within < std::min(at.group, microbatches_ - at.group_begin)) return;
    at.within = 0;
    if (++at.chunk < chunks_) return;
    at.chunk = 0;
    at.group_begin += at.group;
  }

  RowWriter& row_;
  int stage_;
  int stages_;
  int chunks_;
  int microbatches_;
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

/// A chunk's next microbatch must be back from the last stage when its turn comes.
std::optional<Refusal> why_no_groups(int group, int microbatches, int stages) {
  if (group < stages || group > microbatches)
    return refused(
        "interleaved-1f1b is not defined for parallel.microbatch_group = {} with {} microbatches "
        "on {} stages (a group is as many as there are stages at least). Use {} to {}.",
        group, microbatches, stages, stages, microbatches);
  const int left = microbatches % group;
  if (left == 0 || left >= stages) return std::nullopt;
  return refused(
      "interleaved-1f1b is not defined for parallel.microbatch_group = {} with {} microbatches "
      "(the last group would have {}, fewer than {} stages). Use a group that divides them.",
      group, microbatches, left, stages);
}

/// How many forwards of the last stage come before its first backward: those that let each
/// backward find its own forward done.
int forwards_ahead(const Schedule& schedule, MicrobatchGroup group) {
  const int chunks = schedule.chunks / schedule.devices;
  const auto begin = [](int microbatch, int size) { return microbatch / size * size; };
  int ahead = 0;
  for (int m = 0; m < schedule.microbatches; ++m) {
    const int forward = begin(m, group.forward);
    const int backward = begin(m, group.backward);
    const int in_group = std::min(group.forward, schedule.microbatches - forward);
    ahead = std::max(ahead, forward * chunks + (chunks - 1) * in_group + m - forward -
                                (backward * chunks + m - backward));
  }
  return ahead;
}

}  // namespace

/// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM", SC 2021, section 2.2.2; groups as in Centauri 3.2 (figure 7).
std::optional<Refusal> fill_interleaved_1f1b(const Scenario& scenario, Schedule& schedule) {
  const auto& asked = scenario.parallel.microbatch_group;
  if (!asked)
    if (auto why = why_not_divisible(schedule.microbatches, schedule.devices)) return why;
  const MicrobatchGroup group = asked.value_or(MicrobatchGroup{schedule.devices, schedule.devices});
  for (const int each : {group.forward, group.backward})
    if (auto why = why_no_groups(each, schedule.microbatches, schedule.devices)) return why;
  const int chunks = schedule.chunks / schedule.devices;
  const int items = schedule.microbatches * chunks;
  for (StageId stage{}; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{number(stage)}};
    Items item{row, stage, schedule, group};
    const int ahead = 2 * (schedule.devices - stage - 1) + forwards_ahead(schedule, group);
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
