#pragma once

#include <memory>
#include <vector>

#include "scenario/files/profile_table.hpp"
#include "scenario/needed_operators.hpp"

namespace longhaul::scenario {

/// What takes the times of a scenario's operators from measurements.
struct OperatorProfile {
  ProfileTable operators;
  CollectiveTable collectives{};  ///< for those that `operators` has not
  TaskTable tasks{};
};

struct ProfiledOperators {
  std::vector<Operator> all;  ///< of one rank of a stage, layer by layer
  std::shared_ptr<const std::vector<OperatorTasks>> tasks;
  std::vector<Duration> update;  ///< the optimizer's step on each layer
};

/// The type of the numbers of a profile ("bf16"), optimizer's steps aside. Throws Error where there
/// are several, or it is not the one that `model` asks for.
[[nodiscard]] std::string type_of_profile(const ProfileTable& profile, const Model& model);

/// The operators of the scenario's model with measured times: an operator takes the sum of calls x
/// median of its calls, to the nanosecond. The scenario needs its model, parallel layout, nodes and
/// `memory.recompute` alone; without recomputation R takes what F does where the profile has none.
/// Throws Error that names a call that is missing, with the nearest shapes.
[[nodiscard]] ProfiledOperators profiled_operators(const OperatorProfile& profile,
                                                   const Scenario& scenario);

/// A call that a profile has no time of: "gemm m=3 n=8 k=4 nt" and the shapes of the same operator
/// and type that are nearest to it.
[[nodiscard]] std::string nearest_shapes(const ProfileTable& profile, const ProfileRow& wanted);

}  // namespace longhaul::scenario
