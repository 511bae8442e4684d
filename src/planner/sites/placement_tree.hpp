#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/sites/branch_and_bound.hpp"
#include "planner/sites/placement_bounds.hpp"

namespace longhaul::planner {

/// The candidates of the search: every placement of one schedule, C and D.
class PlacementTree {
public:
  struct Group {
    ScheduleRequest schedule;
    int cells = 1;
    int pipelines = 1;
  };
  /// A candidate that bounds leave.
  struct Leaf {
    StagePlacement placement;
    double bound = 0;    ///< of its score
    SitePrune reason{};  ///< what prunes it if the bound does
  };

  PlacementTree(const GpuInventory& inventory, Group group, SiteObjective objective,
                Filling filling);

  [[nodiscard]] const Group& group() const { return group_; }
  /// How many candidates there are.
  [[nodiscard]] std::int64_t count() { return completions(0, inventory_.stages()); }
  /// A bound of the score of every candidate.
  [[nodiscard]] double bound() const { return bound_of(Node{}, {}).bound; }
  /// The score of a complete placement whose cell takes `time`.
  [[nodiscard]] double score_of(const StagePlacement& placement, Duration time) const;
  /// How long a cell on the placement takes where its score is `score`.
  [[nodiscard]] Duration time_of(const StagePlacement& placement, double score) const;
  [[nodiscard]] std::vector<schedule::LeastHop> hops(const StagePlacement& placement) const {
    return bounds_.hops(placement);
  }
  /// Those whose bound is below `score`, in the order of their sequences. Counts the others in
  /// `pruned`. `prune` false: all, with neither bounds nor symmetry.
  [[nodiscard]] std::vector<Leaf> leaves(double score, bool prune,
                                         std::int64_t (&pruned)[kCountOf<SitePrune>]);

private:
  struct Node {
    std::uint32_t used = 0;
    PlacementBounds::State state{};
  };
  struct NodeBound {
    double bound = 0;
    SitePrune reason{};
  };

  [[nodiscard]] std::int64_t completions(std::uint32_t used, int left);
  /// The fewest stages that a datacenter which can take `most` may take.
  [[nodiscard]] int fewest(int most) const { return filling_ == Filling::any ? 1 : most; }
  void descend_into(const Node& node, std::size_t datacenter, int stages);
  [[nodiscard]] NodeBound bound_of(const Node& node, const StagePlacement& placement) const;
  [[nodiscard]] double score_of(std::int64_t time, const StagePlacement& placement,
                                bool with_egress) const;
  [[nodiscard]] bool has_unused_equal(std::size_t datacenter, std::uint32_t used) const;
  [[nodiscard]] bool is_interchangeable(std::size_t a, std::size_t b) const;
  void descend(const Node& node);

  const GpuInventory& inventory_;
  Group group_;
  SiteObjective objective_;
  PlacementBounds bounds_;
  std::vector<int> stages_;  ///< that each datacenter holds
  std::vector<std::vector<std::size_t>>
      equal_to_;  ///< earlier ones that are interchangeable with it
  double least_price_ = 0;
  Filling filling_;
  std::map<std::pair<std::uint32_t, int>, std::int64_t> completions_;  ///< by used, left
  StagePlacement placement_;                                           ///< while descending
  double score_ = 0;
  bool prune_ = true;
  std::int64_t* pruned_ = nullptr;
  std::vector<Leaf> leaves_;
};

}  // namespace longhaul::planner
