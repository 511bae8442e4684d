#pragma once

#include <string>

#include "plan/plan.hpp"
#include "planner/bounds/bounds.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

struct SolverOptions {
  Duration time_limit = std::chrono::seconds{60};  ///< wall clock of the solver, at least 1 s
  int threads = 0;  ///< workers of the solver; 0: one a core, at least 8: they differ in strategy
  /// Blocks of one kind and chunk run in the order of their microbatches (CrossPipe 4.1).
  bool microbatch_order = true;
  /// A D and its W may run as one B, chunk by chunk where B is the cheaper. Section 4.1 has D and W
  /// alone; `best` fuses too.
  bool fuse = true;
  /// Gathers and reductions are part of the makespan that is minimised; the one that is reported
  /// has them in any case.
  bool include_dp = true;
  Arrangement arrangement = Arrangement::decoupled;  ///< of the makespan that is reported
  /// How much longer than `time_limit` it may take to build the model and to end; then it is
  /// killed, and its best result until then counts.
  Duration grace = std::chrono::seconds{30};
};

/// The result of the solver. `bound` holds for the class of CrossPipe 4.1: whole blocks,
/// microbatches in order where asked; it is proven by the solver, or ours where that is higher.
struct SolverResult {
  Schedule schedule;      ///< valid, within the budget; named "cross-ud-opt", "cross-wave-opt" ...
  Duration makespan{};    ///< the simulator's
  Duration bound{};       ///< of the solver's own model; at most the makespan of any schedule of it
  std::string holds_for;  ///< the class: "ud placement, whole blocks, D and W apart or one B"
  /// "optimal": its makespan is the bound; "feasible"; "warm start": nothing better than the start
  /// was found in the time.
  std::string status;
  double seconds = 0;  ///< wall clock of the solver
  /// Why its schedule was not taken, with the warm start in its place; empty: there is no reason.
  std::string refused;
};

/// The constraint model of CrossPipe section 4.1 with OR-tools CP-SAT, in a child process
/// (src/python/longhaul/solver/cp_sat.py): an interval for each block and message, no overlap on a
/// device or a directed link, memory as a reservoir. Its objective is our makespan: section 4.1
/// takes the first device's span, appendix A the end on any rank; this follows A. `warm_start` is a
/// valid schedule of the placement that fits the budget; it is given as a hint and returned where
/// nothing better is found. Throws Error where there is no Python interpreter, no ortools (with the
/// command that installs it), or where the child fails (run_failed).
[[nodiscard]] SolverResult solve(schedule::Placement placement, const Scenario& scenario,
                                 const Schedule& warm_start, const SolverOptions& options);

}  // namespace longhaul::planner
