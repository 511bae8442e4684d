#include <algorithm>

#include "base/index.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule::checks {
namespace {

/// Runs the rows of one replica without times: every device that can go on goes on.
class DryRun {
public:
  DryRun(const Schedule& schedule, std::size_t first_row)
      : schedule_{schedule},
        first_row_{first_row},
        next_(schedule.devices),
        forward_done_(cells()),
        backward_done_(cells()) {}

  /// The devices of a cycle, in the order in which each waits for the next; empty if all ran.
  [[nodiscard]] std::vector<DeviceId> run() {
    std::vector<DeviceId> ready;
    for (DeviceId device{schedule_.devices}; device > DeviceId{0};) {
      device = previous(device);
      ready.push_back(device);
    }
    while (!ready.empty()) {
      const DeviceId device = ready.back();
      ready.pop_back();
      advance(device, ready);
    }
    for (const DeviceId device : schedule_.device_ids()) {
      if (!finished(device)) return cycle_from(device);
    }
    return {};
  }

  [[nodiscard]] std::string explain(DeviceId device) const {
    const Block& block = row(device)[next_[device]];
    const Block input = *input_of(block);
    const DeviceId source = device_of(input.chunk);
    const auto there = std::ranges::find_if(row(source), [&](const Block& other) {
      return other.chunk == input.chunk && other.microbatch == input.microbatch &&
             (input.kind == BlockKind::F ? other.kind == BlockKind::F : is_backward(other.kind));
    });
    return fmt::format("\n  {} waits at position {}, {}, for {} of device {}, at position {} there",
                       device_text(schedule_, first_row_ + index(device)), next_[device],
                       to_text(block), to_text(*there), source, there - row(source).begin());
  }

private:
  [[nodiscard]] std::size_t cells() const {
    return at(schedule_.chunks) * at(schedule_.microbatches);
  }
  [[nodiscard]] const std::vector<Block>& row(DeviceId device) const {
    return schedule_.rows[first_row_ + index(device)];
  }
  [[nodiscard]] DeviceId device_of(ChunkId chunk) const { return schedule_.device_of_chunk[chunk]; }
  [[nodiscard]] bool finished(DeviceId device) const { return next_[device] == row(device).size(); }

  /// F or D (for either backward block) of the chunk whose output the block takes in.
  [[nodiscard]] std::optional<Block> input_of(const Block& block) const {
    const auto input = [&](BlockKind kind, ChunkId chunk) {
      return Block{.kind = kind, .chunk = chunk, .microbatch = block.microbatch};
    };
    if (block.kind == BlockKind::F && !schedule_.is_first(block.chunk))
      return input(BlockKind::F, previous(block.chunk));
    const bool takes_gradient =
        is_backward(block.kind) ||
        (block.kind == BlockKind::R && schedule_.recompute_timing == RecomputeTiming::on_arrival);
    if (takes_gradient && !schedule_.is_last(block.chunk)) {
      return input(BlockKind::D, next(block.chunk));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<bool>::reference done(const Block& block) {
    auto& of_kind = block.kind == BlockKind::F ? forward_done_ : backward_done_;
    return of_kind[at(block.chunk) * at(schedule_.microbatches) + at(block.microbatch)];
  }

  void advance(DeviceId device, std::vector<DeviceId>& ready) {
    const std::vector<Block>& blocks = row(device);
    for (std::size_t& next = next_[device]; next < blocks.size(); ++next) {
      const Block& block = blocks[next];
      const auto input = input_of(block);
      if (input && !done(*input)) return;
      if (block.part + 1 != block.parts) continue;
      if (block.kind != BlockKind::F && !is_backward(block.kind)) continue;
      done(block) = true;
      wake_consumer(block, device, ready);
    }
  }

  /// The device that waits for `block` right now, if any.
  void wake_consumer(const Block& block, DeviceId device, std::vector<DeviceId>& ready) {
    const bool forward = block.kind == BlockKind::F;
    if (forward ? schedule_.is_last(block.chunk) : schedule_.is_first(block.chunk)) return;
    const DeviceId consumer = device_of(forward ? next(block.chunk) : previous(block.chunk));
    if (consumer == device || finished(consumer)) return;
    const auto input = input_of(row(consumer)[next_[consumer]]);
    const bool waits = input && input->chunk == block.chunk &&
                       input->microbatch == block.microbatch &&
                       (input->kind == BlockKind::F) == (block.kind == BlockKind::F);
    if (waits) ready.push_back(consumer);
  }

  [[nodiscard]] std::vector<DeviceId> cycle_from(DeviceId device) const {
    std::vector<DeviceId> path;
    IndexedVector<DeviceId, int> place(schedule_.devices, -1);  // where it is on the path
    while (place[device] < 0) {
      place[device] = static_cast<int>(path.size());
      path.push_back(device);
      const Block& block = row(device)[next_[device]];
      device = device_of(input_of(block)->chunk);
    }
    return {path.begin() + place[device], path.end()};
  }

  const Schedule& schedule_;
  std::size_t first_row_;
  IndexedVector<DeviceId, std::size_t> next_;  ///< its first block that has not run
  std::vector<bool> forward_done_;
  std::vector<bool> backward_done_;
};

}  // namespace

std::optional<Violation> deadlock(const Schedule& schedule, std::size_t first_row) {
  DryRun run{schedule, first_row};
  const std::vector<DeviceId> cycle = run.run();
  if (cycle.empty()) return std::nullopt;
  std::string text =
      "The schedule deadlocks (each of these blocks waits for one that stands behind "
      "the next). Reorder the row of one of these devices:";
  for (const DeviceId device : cycle) text += run.explain(device);
  return Violation{ViolationKind::deadlock, text};
}

}  // namespace longhaul::schedule::checks
