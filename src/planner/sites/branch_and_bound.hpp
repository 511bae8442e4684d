#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "planner/sites/algorithm1.hpp"

namespace longhaul::planner {

struct SiteSearchOptions {
  std::vector<ScheduleRequest> schedules{parse_schedule(schedule::kAtlasPlannerSchedule)};
  std::vector<int> pipelines;  ///< values of C; empty: cell_sizes() of any order
  std::optional<int> most_cells;
  SiteObjective objective = SiteObjective::throughput;
  bool prune = true;  ///< false: simulates every candidate
  /// Candidates to evaluate at most; with what is left then, SiteSearch::gap is above 0.
  std::optional<std::int64_t> limit;
  /// Placements whose best plans are kept: SiteSearch::plans. More of them prune less.
  std::size_t keep = 1;
  /// Asked between batches: true ends the search as `limit` does. Empty: never.
  std::function<bool()> stopped{};
};

/// Why candidates were not simulated, in the order of reports: slowest stage x M + fill; load of a
/// WAN link; round trip of a microbatch, latencies included; one of these with the all-reduce and,
/// for cost, the egress; equal to another with datacenters of one kind; neighbours without a link.
#define LONGHAUL_SITE_PRUNES(X)              \
  X(compute, "compute of the slowest stage") \
  X(wan, "load of a WAN link")               \
  X(path, "round trip of a microbatch")      \
  X(all_reduce, "all-reduce and egress") X(symmetry, "alike datacenters") X(no_link, "no link")
LONGHAUL_LISTED_ENUM(SitePrune, LONGHAUL_SITE_PRUNES);

/// How many stages a datacenter of a placement may take: all that it holds, but for the last one;
/// or any number of them.
#define LONGHAUL_FILLINGS(X) X(full, "full") X(any, "any")
LONGHAUL_LISTED_ENUM(Filling, LONGHAUL_FILLINGS);

/// `any` where the scenario's datacenters have at most 2,000 placements, however many GPUs there
/// are: then more GPUs only add placements, and no answer is worse for them.
[[nodiscard]] Filling filling_of(int datacenters, int stages);

struct SiteSearch {
  std::optional<SitePlan> best;
  std::vector<SitePlan> plans;      ///< of different placements, the best first: `keep`
  std::string why_none;             ///< where there is no best
  Filling filling = Filling::full;  ///< of the placements that were searched
  std::int64_t candidates = 0;      ///< (schedule, C, D, placement) that the datacenters can hold
  /// Candidates that were not pruned. Their orders were made, and simulated unless these are
  /// known to be no better (CellTimes::least_time()).
  std::int64_t evaluated = 0;
  std::int64_t simulated = 0;   ///< cells; candidates with equal cells share one
  std::int64_t unsupplied = 0;  ///< (schedule, C, D) for which there are too few GPUs
  std::int64_t pruned[kCountOf<SitePrune>] = {};
  std::int64_t unexplored = 0;  ///< where the limit ended the search
  double gap = 0;  ///< no candidate is better by more than this share of the best one's score
  [[nodiscard]] std::int64_t pruned_in_all() const;
};

/// The best of all schedules, C, D and placements, where a placement is any sequence of different
/// datacenters, each with any number of stages that it holds, or each but the last with all of them
/// (algorithm 1 for every order of every subset): filling_of(). Depth first over the sequences,
/// with the bounds of PlacementBounds; never worse than algorithm 1, which it starts from. The best
/// of all unless the limit ends it. Deterministic, whatever the number of threads. Throws Error as
/// algorithm1() does (but for links, which it does without), and for more than 12 datacenters.
[[nodiscard]] SiteSearch search_sites(const GpuInventory& inventory,
                                      const SiteSearchOptions& options, CellTimes& cells);

/// Algorithm 1, and where its order has no plan the best one of a single pipeline in any order:
/// more GPUs never leave fewer answers. Throws Error, with the reason, where there is none.
[[nodiscard]] SitePlans plan_sites(const GpuInventory& inventory, const Algorithm1Options& options,
                                   CellTimes& cells);

}  // namespace longhaul::planner
