#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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

/// What a piece of an operator has of it: some of its tokens, or of the columns of its weights
/// (Centauri, table 3: dimensions A, and B or C).
enum class PieceSide : std::uint8_t { tokens, weights };

/// How long pieces of operators take by costs.profile, where it has their sizes.
class PieceTimes {
public:
  /// The scenario needs its model. Throws Error as type_of_profile() does.
  PieceTimes(const ProfileTable& profile, const Scenario& scenario);

  /// One of `count` equal pieces of an operator in a block, and (count 1) the whole; nullopt: the
  /// size does not divide, or the profile lacks one of the calls of such a piece.
  [[nodiscard]] std::optional<Duration> of(const Operator& whole, BlockKind work, PieceSide side,
                                           int count) const;

private:
  std::map<std::tuple<std::string, std::string, std::string>, Duration> times_;  ///< of a call
  std::vector<OperatorCall> calls_;
  std::string type_;
  std::vector<std::string> part_of_layer_;  ///< by layer of the model
};

/// The shape of one of `count` equal pieces of a call: "m=64 n=48 k=64 nt" of "m=64 n=192 k=64 nt"
/// in 4 by weights. nullopt: it does not divide, or has no such side.
[[nodiscard]] std::optional<std::string> shape_of_piece(const OperatorCall& call, PieceSide side,
                                                        int count);

}  // namespace longhaul::scenario
