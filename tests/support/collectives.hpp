#pragma once

#include <vector>

#include "plan/steps/collective.hpp"
#include "support/levels.hpp"

namespace longhaul::testing {

inline std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(Rank{rank});
  return ranks;
}

inline plan::Collective flat(CollectiveKind kind, int members, Bytes size,
                             plan::CollectiveAlgorithm algorithm, int pieces = 1) {
  return {kind, first_ranks(members), size, algorithm, {}, pieces};
}

inline plan::Collective along(CollectiveKind kind, Bytes size, std::vector<int> sizes,
                              std::vector<int> order,
                              std::vector<plan::CollectiveAlgorithm> algorithms = {},
                              int pieces = 1) {
  plan::Mesh mesh{std::move(sizes), std::move(order), std::move(algorithms)};
  if (mesh.algorithms.empty())
    mesh.algorithms.assign(mesh.sizes.size(), plan::CollectiveAlgorithm::ring);
  const int members = mesh.members();
  return {
      kind,  first_ranks(members), size, plan::CollectiveAlgorithm::hierarchical, std::move(mesh),
      pieces};
}

}  // namespace longhaul::testing
