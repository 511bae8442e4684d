#pragma once

#include <span>
#include <vector>

#include "schedule/generators/greedy/greedy.hpp"
#include "schedule/generators/greedy/greedy_clock.hpp"
#include "schedule/generators/greedy/greedy_links.hpp"

namespace longhaul::schedule::families {

/// When the last device is done, data-parallel reductions included; kNever where devices wait for
/// each other.
///
/// `rows`: index: device; whole blocks F, R, D, W, each R directly before its D. The rules are
/// those of GreedyRun, whose order is free and here given: links serve messages as they are ready.
///
///     const Duration end = time_of_rows(without_delays(problem), rows);
[[nodiscard]] Duration time_of_rows(const GreedyProblem& problem,
                                    std::span<const std::vector<Block>> rows);

/// The problem of the blocks alone: messages, gathers and reductions take no time.
[[nodiscard]] GreedyProblem without_delays(GreedyProblem problem);

/// The end of the last reduction. `wgrads_end`: of each chunk's last W; the
/// reductions of a device take turns in that order.
[[nodiscard]] Duration reductions_end(const GreedyProblem& problem,
                                      const IndexedVector<ChunkId, Duration>& wgrads_end);

/// One replay of given rows.
class RowTimes {
public:
  RowTimes(const GreedyProblem& problem, std::span<const std::vector<Block>> rows);
  Duration run();

private:
  static constexpr Duration kNever = GreedyClock::kNever;
  struct Device {
    std::size_t done = 0;  ///< blocks of its row
    Duration free_at{};
  };

  /// Where the arrival of the input of an F, or of an R or D, is kept.
  [[nodiscard]] std::size_t slot(ChunkId chunk, BlockKind kind, MicrobatchId microbatch) const;
  /// When the next block of the device begins; kNever: its input is not on its way.
  [[nodiscard]] Duration begin(std::size_t device) const;
  [[nodiscard]] Duration length(const Block& block) const;
  void act(std::size_t device, Duration now);
  void send(const GreedyHop& hop, const Block& producer, Duration ready);
  void deliver(ChunkId chunk, BlockKind kind, MicrobatchId microbatch, Duration arrival);
  void deliver_queued();

  const GreedyProblem& problem_;
  std::span<const std::vector<Block>> rows_;
  std::vector<Device> devices_;
  IndexedVector<ChunkId, std::size_t> first_;  ///< where its arrivals begin
  std::vector<Duration> arrivals_;
  IndexedVector<ChunkId, Duration> wgrads_end_;
  GreedyClock clock_;
  GreedyLinks links_;
};

}  // namespace longhaul::schedule::families
