#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Renumberings of ranks after which an iteration is the same: each rank takes the place of one
/// of its stage and its datacenter, ranks of a node those of one node, groups of communications
/// those of groups. They
/// shift copies of the weights, shards, or tensor ranks in a circle, one after the other. No one
/// but that which leaves all as it is (number 0) keeps a rank, or a node if there are several,
/// where it is: what many ranks share there is many things, one each.
///
/// For example, FSDP of 16 ranks on two nodes: the shift by 8 leaves the iteration as it is, so
/// that rank 3 stands for itself and rank 11. Each rank of a node stands for that of its place in
/// all others, but not for its neighbours: the ring leaves the node at its last rank alone.
class RankSymmetry {
public:
  /// The most that there are.
  [[nodiscard]] static RankSymmetry of(const IterationPlan& plan);

  [[nodiscard]] int count() const { return static_cast<int>(images_.size()); }
  [[nodiscard]] Rank image(int which, Rank rank) const { return images_[at(which)][index(rank)]; }
  /// The lowest whose place a rank can take.
  [[nodiscard]] Rank representative(Rank rank) const {
    return image(to_representative(rank), rank);
  }
  /// That which brings it there.
  [[nodiscard]] int to_representative(Rank rank) const { return to_first_[index(rank)]; }
  /// That which brings the node to the first of those whose place it can take.
  [[nodiscard]] int to_first_node(Rank of_node) const { return node_to_first_[index(of_node)]; }

private:
  std::vector<std::vector<Rank>> images_;
  std::vector<int> to_first_, node_to_first_;  ///< by rank
};

/// Symmetries that were asked for before, of iterations of one scenario, whatever its sharding.
class KnownSymmetries {
public:
  /// It stays where it is.
  const RankSymmetry& of(const IterationPlan& plan);

private:
  /// Replicas and those that hold a copy together; of each stage, the groups it communicates in.
  using Key = std::pair<std::pair<int, int>, std::vector<std::set<Members>>>;
  std::map<Key, RankSymmetry> known_;
};

}  // namespace longhaul::collective
