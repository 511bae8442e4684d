#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"
#include "planner/predict/row_slots.hpp"

namespace longhaul::planner {

/// Where an iteration's time goes on the rank that ends last, in ns. They add up to the iteration.
struct IterationParts {
  double compute = 0, tensor = 0, pipeline = 0, data = 0, bubble = 0, optimizer = 0;
};

/// One iteration of a row in virtual time.
struct RowRun {
  Duration iteration{};
  IterationParts parts;
  /// How many ops of each slot lie on the critical path: with the slots' times they add up to the
  /// iteration, so that they are its derivatives by these times.
  std::vector<std::uint32_t> on_path;
};

/// A training row as a plan: a rank for each stage of one replica (all replicas, and the tensor
/// ranks of a stage, do the same), its blocks in the schedule's order, messages between stages, the
/// replicas' collectives and the optimizer's step. With sharded weights a rank's layers, with the
/// gathers and scatters beside them. Made once, run with any parameters.
class RowPlan {
public:
  /// `graph` is copied; its machine outlives the plan. Throws Error where the row's schedule is not
  /// defined.
  explicit RowPlan(const profile::RowGraph& graph);

  [[nodiscard]] RowRun run(const profile::ParameterValues& values);
  [[nodiscard]] std::vector<SlotTime> times(const profile::ParameterValues& values) const {
    return slot_times(slots_, graph_, values);
  }
  [[nodiscard]] const profile::RowGraph& graph() const { return graph_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const std::vector<Slot>& slots() const { return slots_; }

private:
  profile::RowGraph graph_;
  std::vector<Slot> slots_;
  Plan plan_;
  std::vector<std::uint32_t> slot_of_op_;  ///< index: op id
};

}  // namespace longhaul::planner
