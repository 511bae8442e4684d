#pragma once

#include <string>
#include <vector>

#include "plan/steps/collective.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::collective {

/// A way to divide a group into sub-groups along the dimensions of a mesh (Centauri 3.1.2).
struct GroupMesh {
  plan::Mesh mesh;  ///< rings along each dimension, near ones first
  /// Why it is excluded: a sub-group whose pairs have unequal bandwidths. Empty: it is not.
  std::string unequal;
};

/// Every mesh of two dimensions or more, up to `most`, each of two members or more, the last
/// dimension fastest.
[[nodiscard]] std::vector<GroupMesh> meshes_of_group(const std::vector<Rank>& group,
                                                     const Scenario& scenario, int most = 3);

}  // namespace longhaul::collective
