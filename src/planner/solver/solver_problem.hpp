#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "planner/solver/solver.hpp"
#include "schedule/block_costs.hpp"

namespace longhaul::planner {

/// Is one B of the chunk cheaper than a D and a W?
[[nodiscard]] bool fusing_saves_time(const schedule::BlockCosts& costs, ChunkId chunk);

/// A schedule as the model of CrossPipe 4.1 has them: whole blocks, as replica 0 runs them; a B as
/// a D and a W after it, unless it is the cheaper and `options.fuse` is set; where asked,
/// microbatches in ascending order of each kind and chunk (B and D are one kind). It is valid and
/// fits the budget if `schedule` does.
[[nodiscard]] Schedule in_model(const Schedule& schedule, const Scenario& scenario,
                                const SolverOptions& options);

/// The input of src/python/longhaul/solver/cp_sat.py; docs/planner.md has the fields.
struct SolverProblem {
  Schedule start;             ///< the warm start, in the model
  Duration start_makespan{};  ///< the simulator's
  std::vector<Block> blocks;  ///< F, R, D, W; index: as in the JSON
  /// Is a bound of the model one of the scenario? Not where replicas differ or share a link: the
  /// model then has one pipeline, whose links are as slow as the slowest.
  bool exact = true;
  nlohmann::json json;
};

[[nodiscard]] SolverProblem make_problem(const Scenario& scenario, const Schedule& warm_start,
                                         const SolverOptions& options);

}  // namespace longhaul::planner
