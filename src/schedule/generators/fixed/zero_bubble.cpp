#include <algorithm>

#include "schedule/generators/families.hpp"
#include "schedule/generators/fixed/row_writer.hpp"

namespace longhaul::schedule::families {

/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2 (their B is our D). Stage s
/// keeps s W back, so that W fills the bubbles of the cool-down with no more than P activations.
void fill_zb_h1(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{stage}};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
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

/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 2 (their B is our D): a
/// warm-up twice as deep as that of 1F1B leaves no bubble between a device's first and last block.
void fill_zb_h2(const Scenario& scenario, Schedule& schedule) {
  for (int stage = 0; stage < schedule.devices; ++stage) {
    RowWriter row{scenario, schedule, DeviceId{stage}};
    ChunkWriter chunk{row, ChunkId{stage}, schedule.microbatches};
    chunk.next(BlockKind::F, std::min(2 * (schedule.devices - stage) - 1, schedule.microbatches));
    for (int step = 0; chunk.has(BlockKind::D); ++step) {
      chunk.next(BlockKind::D);
      if (step >= 2 * stage) chunk.next(BlockKind::W);
      if (chunk.has(BlockKind::F)) chunk.next(BlockKind::F);
    }
    chunk.rest(BlockKind::W);
  }
}

namespace {

/// Chunk `down` runs from the first device to the last, `up` back again.
void fill_device(ChunkWriter& down, ChunkWriter& up, int device, int devices) {
  using enum BlockKind;
  for (int i = 0; i < 2 * (devices - device) - 1; ++i) down.next(F);
  for (int i = 0; i < device; ++i) up.next(F), down.next(F);
  for (int i = device; i < devices; ++i) up.next(F), up.next(D), up.next(W);
  while (up.count(F) < down.count(F) || down.has(F)) {
    if (down.has(F)) down.next(F);
    down.next(D), down.next(W);
    up.next(F), up.next(D), up.next(W);
  }
  for (int i = 0; i < device; ++i) down.next(D), up.next(D);
  for (int i = device; i < devices; ++i) down.next(D), down.next(W);
  up.rest(W);
  down.rest(W);
}

}  // namespace

/// Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024 (their B is our D), in closed form:
/// with F = D = W the V placement leaves no bubble on device span and holds at most P activations.
void fill_zbv(const Scenario& scenario, Schedule& schedule) {
  const int devices = schedule.devices;
  const int padded = std::max(2 * devices - 1, schedule.microbatches);
  for (int device = 0; device < devices; ++device) {
    RowWriter row{scenario, schedule, DeviceId{device}};
    ChunkWriter down{row, ChunkId{device}, schedule.microbatches, padded};
    ChunkWriter up{row, ChunkId{2 * devices - 1 - device}, schedule.microbatches, padded};
    fill_device(down, up, device, devices);
  }
}

}  // namespace longhaul::schedule::families
