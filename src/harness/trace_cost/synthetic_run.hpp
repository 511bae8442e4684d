#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// Shape of a synthetic run: pipelines side by side, in iterations of forwards, backwards, then a
/// collective.
struct SyntheticShape {
  int ranks = 8;
  int stages = 4;  ///< of one pipeline; divides the ranks
  int iterations = 1;
  std::int64_t events = 600;  ///< of a rank in all iterations; more in the middle of a pipeline
  std::uint64_t seed = 1;
};

/// Rows of a run that never happened, valid in every respect: every message has both sides, links
/// carry one transfer at a time, what an op waited for is named. Each rank's rows follow from the
/// shape alone, so that no run is ever in memory. Times are slots of a fixed grid, with seeded
/// noise inside them; stamps count from 1970, as a clock's.
class SyntheticRun {
public:
  explicit SyntheticRun(const SyntheticShape& shape);

  [[nodiscard]] std::int64_t rows_of_iteration() const;
  /// Rows of some ranks, in one iteration, ordered by op; tables hold the names that they use.
  [[nodiscard]] Timeline rows_of(std::span<const int> ranks, int iteration) const;

private:
  enum Lane : int { compute, send_on, send_back, recv_on, recv_back, collective };
  struct Interval {
    std::int64_t start_ns, end_ns;
  };
  class Maker;

  [[nodiscard]] StageId stage_of(int rank) const { return StageId{rank % shape_.stages}; }
  [[nodiscard]] std::int64_t microbatches() const { return microbatches_; }
  /// Lanes with an op for each microbatch; blocks, of which there are two, count twice.
  [[nodiscard]] std::int64_t lanes_of_stage(StageId stage) const;
  /// Id of an op: ranks ascend, a rank's lanes lie one after the other.
  [[nodiscard]] std::int64_t op(int rank, Lane lane, std::int64_t position) const;
  [[nodiscard]] bool has(StageId stage, Lane lane) const;
  /// The grid, from the start of an iteration.
  [[nodiscard]] std::int64_t forward_ns(StageId stage, std::int64_t microbatch) const;
  [[nodiscard]] std::int64_t backward_ns(StageId stage, std::int64_t microbatch) const;
  [[nodiscard]] std::int64_t collective_ns() const;

  SyntheticShape shape_;
  std::int64_t microbatches_ = 0;
  /// Of each stage in its pipeline; after the last: how many.
  IndexedVector<StageId, std::int64_t> first_op_;
};

}  // namespace longhaul::harness
