#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

/// Greedy delay-aware generation (CrossPipe, section 4.2), for chunks placed anywhere.
namespace longhaul::schedule::families {

/// How the output of a chunk reaches the chunk that takes it.
struct GreedyHop {
  ChunkId chunk = kNone<ChunkId>;  ///< the one that takes it; kNone: none
  bool local = true;               ///< on the same device: there at once
  bool queued = false;  ///< its resources serve several pairs, so messages wait for their turn
  Duration transfer{};
  Duration latency{};
  std::vector<int> resources;
  [[nodiscard]] bool is_taken() const { return chunk != kNone<ChunkId>; }
  friend bool operator==(const GreedyHop&, const GreedyHop&) = default;
};

/// A chunk and the blocks it runs: `count` microbatches, from `first` on in steps of `stride`.
struct GreedyChunk {
  DeviceId device{};
  MicrobatchId first{};
  int stride = 1;
  int count = 0;
  GreedyHop activation;  ///< to the next chunk; none: the gradient is there when its F ends
  GreedyHop gradient;    ///< to the chunk before
  Duration forward{};
  Duration recompute{};
  Duration dgrad{};
  std::vector<Duration> wgrad;  ///< index: part
  Duration release{};           ///< its first F waits for this (weights that are gathered)
  Duration reduction{};         ///< data parallelism, after its last W
  Bytes kept;                   ///< F takes it
  Bytes rest;                   ///< R takes it; none without recomputation
  Bytes after_dgrad;            ///< freed by D
  Bytes after_wgrad;            ///< freed by W
  /// Which share of the device's memory this chunk and those before it there may fill, if each
  /// chunk gets as much of it as its activations stay long: from F to D, when nothing waits.
  double front_share = 1;
};

/// All that the greedy knows. Chunks of one pipeline stand in forward order.
struct GreedyProblem {
  IndexedVector<ChunkId, GreedyChunk> chunks;
  IndexedVector<DeviceId, std::vector<ChunkId>> chunks_on;  ///< by stage
  Bytes limit;                                              ///< of each device's activations
  int resources = 0;
  bool recompute = false;
};

/// The problem of a schedule that is complete but for its rows. Blocks of W come in `parts`.
/// Refused where no order fits the budget, naming the smallest budget for which there is one.
Result<GreedyProblem> greedy_problem(const Scenario& scenario, const Schedule& schedule, int parts);

/// Preferences of a device (4.2.2). The paper leaves open what decides between equals, and no
/// choice is best everywhere.
struct GreedyRules {
  using Order = std::array<BlockKind, 3>;
  Order after_forward{BlockKind::D, BlockKind::F, BlockKind::W};
  Order after_backward{BlockKind::F, BlockKind::D, BlockKind::W};
  Order memory_full{BlockKind::W, BlockKind::D, BlockKind::F};  ///< after a backward, no F fits
  Order tear_down{BlockKind::D, BlockKind::W, BlockKind::F};
  /// Instead of a W, waits for an F or D that is due within this share of a W.
  double patience = 0;
  /// Activations that device s of P holds at most: first + slope * (P-1-s). 0: as many as fit.
  double cap_first = 0;
  double cap_slope = 0;
  /// How far front_share counts: 1 fully, 0 not at all (a later chunk keeps room for one F).
  double sharing = 0;
  bool deep_forward = true;  ///< F of the last chunk goes first
  bool deep_dgrad = false;
  bool deep_wgrad = true;
};

/// Fills `rows` (nullptr: only the time counts), with parts of W that stand together as one.
/// Returns when the last device is done, data-parallel reductions included, if every message is as
/// fast as the problem says.
Duration run_greedy(const GreedyProblem& problem, const GreedyRules& rules,
                    std::vector<std::vector<Block>>* rows);

/// One way to make a schedule.
struct GreedyTrial {
  const GreedyProblem* problem = nullptr;
  const GreedyRules* rules = nullptr;
};

/// Times as many of the trials as do not take long, at least the first, and fills `rows` by the
/// best. Repeatable: what takes long is counted in blocks.
Duration run_best(std::span<const GreedyTrial> trials, std::vector<std::vector<Block>>& rows);
/// The same for one problem.
Duration run_best(const GreedyProblem& problem, std::span<const GreedyRules> rules,
                  std::vector<std::vector<Block>>& rows);

}  // namespace longhaul::schedule::families
