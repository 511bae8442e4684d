#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "planner/sites/branch_and_bound.hpp"
#include "planner/sites/placement_bounds.hpp"

namespace longhaul::planner {

/// The candidates of the search: every way of one schedule, C and D.
class PlacementTree {
public:
  struct Group {
    ScheduleRequest schedule;
    int cells = 1;
    int pipelines = 1;
  };
  /// A candidate that bounds leave.
  struct Leaf {
    StagePlacement way;
    double bound = 0;    ///< of its score
    SitePrune reason{};  ///< what prunes it if the bound does
  };

  PlacementTree(const GpuInventory& supply, Group group, SiteObjective objective);

  [[nodiscard]] const Group& group() const { return group_; }
  /// How many candidates there are.
  [[nodiscard]] std::int64_t count() { return completions(0, supply_.stages()); }
  /// A bound of the score of every candidate.
  [[nodiscard]] double bound() const { return judged(Node{}, {}).bound; }
  /// The score of a complete way whose cell takes `time`.
  [[nodiscard]] double score_of(const StagePlacement& way, Duration time) const;
  /// How long a cell on the way takes where its score is `score`.
  [[nodiscard]] Duration time_of(const StagePlacement& way, double score) const;
  [[nodiscard]] std::vector<schedule::LeastHop> hops(const StagePlacement& way) const {
    return bounds_.hops(way);
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
  struct Judged {
    double bound = 0;
    SitePrune reason{};
  };

  [[nodiscard]] std::int64_t completions(std::uint32_t used, int left);
  [[nodiscard]] Judged judged(const Node& node, const StagePlacement& way) const;
  [[nodiscard]] double score_of(std::int64_t time, const StagePlacement& way,
                                bool with_egress) const;
  [[nodiscard]] bool has_unused_equal(std::size_t datacenter, std::uint32_t used) const;
  [[nodiscard]] bool is_interchangeable(std::size_t a, std::size_t b) const;
  void descend(const Node& node);

  const GpuInventory& supply_;
  Group group_;
  SiteObjective objective_;
  PlacementBounds bounds_;
  std::vector<int> stages_;  ///< that each datacenter holds
  std::vector<std::vector<std::size_t>>
      equal_to_;  ///< earlier ones that are interchangeable with it
  double least_price_ = 0;
  std::unordered_map<std::uint32_t, std::int64_t> completions_;
  StagePlacement way_;  ///< while descending
  double score_ = 0;
  bool prune_ = true;
  std::int64_t* pruned_ = nullptr;
  std::vector<Leaf> leaves_;
};

}  // namespace longhaul::planner
