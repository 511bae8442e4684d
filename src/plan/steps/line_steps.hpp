#pragma once

#include <vector>

#include "plan/steps/step_builder.hpp"

namespace longhaul::plan {

/// The members along one dimension of a mesh, and the items that go with each of them.
struct StepLine {
  using Items = std::vector<ItemRange>;
  std::vector<int> members;
  /// By coordinate: what that member brings or is to get. One entry where all work on the same.
  /// All-to-all: by (source coordinate, destination coordinate).
  std::vector<Items> items;

  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  /// Of the coordinates from `first` up to but without `end`.
  [[nodiscard]] Items items_of(int first, int end) const;
};

// The messages of one phase of a collective along a line. What comes from or goes to one member
// alone does so at coordinate 0.
void add_all_gather(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
void add_reduce_scatter(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
/// Recursive doubling: each member ends with the sum of all.
void add_exchange(StepBuilder& to, const StepLine& line);
void add_all_to_all(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
void add_broadcast(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
void add_reduce(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
void add_gather(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);
void add_scatter(StepBuilder& to, const StepLine& line, CollectiveAlgorithm algorithm);

/// One of two binary trees over all members, in which each member has children in one alone; -1 is
/// the parent of the root.
[[nodiscard]] std::vector<int> binary_tree(int members, int which);
/// Sums up along such a tree (parents by coordinate) to its root, and back.
void add_tree_reduce(StepBuilder& to, const StepLine& line, const std::vector<int>& parents);
void add_tree_broadcast(StepBuilder& to, const StepLine& line, const std::vector<int>& parents);

}  // namespace longhaul::plan
