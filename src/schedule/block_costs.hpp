#pragma once

#include <array>
#include <vector>

#include "base/index.hpp"
#include "scenario/scenario.hpp"
#include "schedule/memory.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// Costs of each block of a schedule, looked up once per (kind, chunk).
class BlockCosts {
public:
  BlockCosts(const Schedule& schedule, const Scenario& scenario);

  /// A part takes its share of the block's time, the remainder of a nanosecond on the first.
  [[nodiscard]] Duration duration(const Block& block) const;
  /// Activation memory taken (positive) or released (negative).
  [[nodiscard]] Bytes memory(const Block& block) const;
  /// Size of the message that the block sends on, of the boundary that it crosses.
  [[nodiscard]] Bytes message(const Block& block) const;

private:
  struct OfChunk {
    std::array<Duration, 5> time{};
    Bytes boundary;  ///< between this chunk and the next
  };
  void take_operators(const Schedule& schedule, const Scenario& scenario,
                      const IndexedVector<ChunkId, ChunkShare>& shares);
  [[nodiscard]] const OfChunk& of(ChunkId chunk) const { return chunks_[chunk]; }
  ActivationModel activation_;
  IndexedVector<ChunkId, OfChunk> chunks_;
};

/// Of each replica; one where all replicas have the same.
[[nodiscard]] std::vector<BlockCosts> costs_of_replicas(const Schedule& schedule,
                                                        const Scenario& scenario);

}  // namespace longhaul::schedule
