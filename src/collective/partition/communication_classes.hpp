#pragma once

#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "collective/iteration/lower_iteration.hpp"

namespace longhaul::collective {

/// Where Centauri decides on a collective (3.2): in a layer's forward, in its backward, or over
/// forward, backward and update.
#define LONGHAUL_TIERS(X) X(operation, "operation") X(layer, "layer") X(model, "model")
LONGHAUL_LISTED_ENUM(Tier, LONGHAUL_TIERS);

/// Communications of an iteration of one kind, size and tier, beside the same
/// operator and as much other computation; sizes and times within a hundredth. Those of the first.
struct CommunicationClass {
  Traffic traffic = Traffic::dp;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Members members = Members::replicas;
  Bytes size;
  Tier tier = Tier::model;
  /// The operator with which it is cut (partner_of()), and what that does: "qkv", F. Empty: none.
  std::string beside;
  BlockKind work = BlockKind::F;
  Duration computation{};  ///< of that operator
  /// Computation that neither waits for it nor is waited for: of a gather what runs from the start
  /// of the unit before (one ahead) to its first user; of others what runs between the end of the
  /// last that it needs and the first that waits for it, or until the next sum can begin.
  Duration independent{};
  std::vector<CommunicationRef> all;  ///< in the order of stages and of issue
};

/// In the order of stages and of issue of the first of each.
[[nodiscard]] std::vector<CommunicationClass> communication_classes(const IterationPlan& plan);

}  // namespace longhaul::collective
