#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/index.hpp"
#include "schedule/schedule.hpp"
#include "schedule/validity/validity.hpp"

/// The steps of first_violation(), in turn; each relies on those before it. All are linear in the
/// number of blocks, whatever counts a schedule claims.
namespace longhaul::schedule::checks {

template <typename... Args>
[[nodiscard]] Violation violation(ViolationKind kind, fmt::format_string<Args...> format,
                                  Args&&... args) {
  return {kind, fmt::format(format, std::forward<Args>(args)...)};
}

/// Counts, table of devices, number of rows.
[[nodiscard]] std::optional<Violation> counts_violation(const Schedule& schedule);

/// For messages: "device 2", with " of replica 1" where replicas differ.
[[nodiscard]] std::string device_text(const Schedule& schedule, std::size_t row);

/// Counts the blocks of a row for every (chunk, microbatch) of its device.
class BlockCounts {
public:
  explicit BlockCounts(const Schedule& schedule);

  /// Blocks out of range, on the wrong device, or repeated.
  [[nodiscard]] std::optional<Violation> count(std::size_t row);
  /// Blocks that are not there; after count() of all rows.
  [[nodiscard]] std::optional<Violation> missing(std::size_t row) const;
  /// Blocks of one row before those that they need on the same device; after missing().
  [[nodiscard]] std::optional<Violation> order(std::size_t row);

private:
  static constexpr std::size_t kKinds = 5;
  struct Cell {
    std::uint8_t parts[kKinds] = {};  ///< into how many the block is split; 0: not there
    std::uint8_t seen[kKinds] = {};
    std::uint8_t down = 0;  ///< kinds whose parts run from the last to the first, a bit each

    [[nodiscard]] bool has(BlockKind kind) const { return parts[slot(kind)] != 0; }
    [[nodiscard]] bool complete(BlockKind kind) const {
      return has(kind) && seen[slot(kind)] == parts[slot(kind)];
    }
  };
  struct RowCells {
    std::vector<Cell> cells;  ///< of the device's chunks in turn, each by microbatch of its copy
    std::int64_t wanted = 0;  ///< how many there should be; `cells` is cut at blocks + 1
  };
  static std::size_t slot(BlockKind kind) { return index(kind); }

  [[nodiscard]] DeviceId device_of(std::size_t row) const {
    return DeviceId{static_cast<std::int32_t>(row) % schedule_.devices};
  }
  [[nodiscard]] bool lies_on(DeviceId device, ChunkId chunk) const {
    return schedule_.device_of_chunk[chunk] == device;
  }
  /// Needs a microbatch that runs in the chunk's copy.
  [[nodiscard]] std::int64_t cell_index(const Block& block) const;
  [[nodiscard]] Cell& cell(std::size_t row, ChunkId chunk, MicrobatchId microbatch);
  [[nodiscard]] std::optional<Violation> range_violation(std::size_t row,
                                                         std::size_t position) const;
  [[nodiscard]] std::optional<Violation> missing_of(std::size_t row, const Cell& cell,
                                                    ChunkId chunk, MicrobatchId microbatch) const;
  [[nodiscard]] std::optional<Block> unmet_need(std::size_t row, const Block& block);
  /// The part that runs next: of the backward of a chunk that is the whole model the last one may
  /// be the first, since it is the part of the last layers.
  [[nodiscard]] int part_wanted(Cell& cell, const Block& block) const;
  [[nodiscard]] Violation part_violation(std::size_t row, std::size_t position, int wanted,
                                         bool again) const;

  const Schedule& schedule_;
  IndexedVector<DeviceId, std::vector<ChunkId>> chunks_on_;
  std::vector<std::int64_t> first_cell_;  ///< index: chunk; in the rows of its device
  std::vector<bool> recomputed_;          ///< index: chunk; any row holds an R of it
  std::vector<RowCells> rows_;
};

/// A cycle of blocks that wait for each other across devices, if the replica whose rows begin at
/// `first_row` runs into one.
[[nodiscard]] std::optional<Violation> deadlock(const Schedule& schedule, std::size_t first_row);

/// Turns on the WAN (turns_name()) of a cell that there is not, or with messages that do not take
/// them. Needs counts alone.
[[nodiscard]] std::optional<Violation> turns_violation(const Schedule& schedule);

/// A cycle of blocks that wait for each other across the pipelines of a cell, because of the turns
/// that their messages take; after turns_violation().
[[nodiscard]] std::optional<Violation> turns_deadlock(const Schedule& schedule);

}  // namespace longhaul::schedule::checks
