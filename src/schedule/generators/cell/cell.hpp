#pragma once

#include <limits>
#include <span>
#include <vector>

#include "schedule/generators/cell/atlas.hpp"
#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy/greedy.hpp"

/// Greedy generation of whole pipelines with recomputation ahead of the gradient: Varuna's, and
/// Atlas' of several pipelines that share the WAN in time.
namespace longhaul::schedule::families {

/// How the output of a stage of one pipeline travels.
struct CellHop {
  GreedyHop way;       ///< but for its chunk: a node takes the output
  int node = -1;       ///< the one that takes it; -1: none
  Duration scatter{};  ///< between the end of the block and the transfer
  int turns = -1;      ///< which of CellProblem::turns it takes; -1: it stays in its datacenter
  friend bool operator==(const CellHop&, const CellHop&) = default;
};

/// Costs of a stage, the same in every pipeline.
struct CellStage {
  Duration forward{};
  Duration recompute{};
  Duration backward{};
  Duration release{};    ///< its first F waits for this (weights that are gathered)
  Duration reduction{};  ///< data parallelism, after the last B of all replicas
  Bytes kept;            ///< F takes it
  Bytes rest;            ///< R takes it
  bool recomputes = false;
  friend bool operator==(const CellStage&, const CellStage&) = default;
};

/// Pipelines that decide together. A node is one stage of one pipeline: pipeline * stages + stage.
struct CellProblem {
  struct Turns {
    DeviceId from{}, to{};
    friend bool operator==(const Turns&, const Turns&) = default;
  };
  int pipelines = 1;
  int microbatches = 0;
  std::vector<CellStage> stages;
  std::vector<CellHop> activations;  ///< index: node; node -1: the last stage
  std::vector<CellHop> gradients;    ///< index: node; node -1: the first stage
  std::vector<Turns> turns;
  int resources = 0;
  Bytes limit{std::numeric_limits<std::int64_t>::max()};  ///< of each device's activations
  friend bool operator==(const CellProblem&, const CellProblem&) = default;
};

/// When an R runs that nothing forces to.
enum class RecomputePolicy : std::uint8_t {
  timed,  ///< so that it ends when its gradient arrives, before an F that is ready (Varuna)
  idle,   ///< where its device has nothing else to do; after an F until its gradient is there
};

struct CellRules {
  RecomputePolicy recompute = RecomputePolicy::timed;
  /// Blocks start only when their message can leave as soon as they end (Atlas, rule 3).
  bool at_once = false;
  /// The pipeline with the fewest F done goes first of those ready for one turn, not the one with
  /// the lowest LocalDPRank.
  bool even = false;
};

/// A message that took its turn.
struct CellTransfer {
  int pipeline = 0;
  Block producer;
  Duration start{}, end{};
};

/// The decisions of a run, with its times.
struct CellTimes {
  std::vector<std::vector<Block>> rows;              ///< index: node
  std::vector<std::vector<Duration>> starts;         ///< of the blocks of `rows`
  std::vector<std::vector<CellTransfer>> transfers;  ///< index: turns
};

/// Varuna's view: each pipeline sends for itself, all equal, without a limit of memory.
[[nodiscard]] CellProblem varuna_problem(const Scenario& scenario, const Schedule& schedule);
/// The problem of the pipelines of a DP-cell: a message between datacenters leaves over all their
/// nodes at once. Refused where no order fits the budget. The cells are as why_no_cells() wants
/// them.
Result<CellProblem> atlas_problem(const Scenario& scenario, const Schedule& schedule,
                                  const CellReplicas& replicas);

/// The F of stages inside a datacenter start as late as their successors let them: the
/// computation waits, not its message. Orders, transfers and all other blocks stay.
void start_late(const CellProblem& problem, CellTimes& times);

[[nodiscard]] CellTimes run_cell(const CellProblem& problem, const CellRules& rules);

/// EarliestTimes::bound() of the orders of run_cell(), which stops as soon as it is `enough`.
[[nodiscard]] Duration earliest_end(const CellProblem& problem, const CellRules& rules,
                                    std::span<const LeastHop> hops, Duration enough);

}  // namespace longhaul::schedule::families
