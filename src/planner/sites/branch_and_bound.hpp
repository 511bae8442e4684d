#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/sites/algorithm1.hpp"

namespace longhaul {

struct SiteSearchOptions {
  std::vector<std::string> schedules{"atlas"};
  std::vector<int> pipelines;  ///< values of C; empty: cell_size() over all links
  std::optional<int> most_cells;
  SiteObjective objective = SiteObjective::throughput;
  bool prune = true;  ///< false: simulates every candidate
  /// Candidates to evaluate at most; with what is left then, SiteSearch::gap is above 0.
  std::optional<std::int64_t> limit;
};

/// Why candidates were not simulated. In the order of reports.
enum class SitePrune : std::uint8_t {
  compute,     ///< slowest stage x M + fill
  wan,         ///< load of a WAN link
  path,        ///< round trip of a microbatch, latencies included
  all_reduce,  ///< one of these with the all-reduce and, for cost, the egress
  symmetry,    ///< as another with datacenters that are alike
  no_link,     ///< neighbours on the way have no link
};
inline constexpr int kSitePrunes = 6;
/// "compute", "WAN link load", ...
[[nodiscard]] const char* name_of(SitePrune prune);

struct SiteSearch {
  std::optional<SitePlan> best;
  std::int64_t candidates = 0;  ///< (schedule, C, D, way) that the datacenters can hold
  /// Of them; the others were pruned. Their orders were made, and simulated unless these are
  /// known to be no better (CellTimes::least_time()).
  std::int64_t evaluated = 0;
  std::int64_t simulated = 0;   ///< cells; candidates with equal cells share one
  std::int64_t unsupplied = 0;  ///< (schedule, C, D) for which there are too few GPUs
  std::int64_t pruned[kSitePrunes] = {};
  std::int64_t unexplored = 0;  ///< where the limit ended the search
  double gap = 0;  ///< no candidate is better by more than this share of the best one's score
  [[nodiscard]] std::int64_t pruned_in_all() const;
};

/// The best of all schedules, C, D and ways, where a way is any sequence of different datacenters,
/// each but the last with all the stages that it holds (algorithm 1 for every order of every
/// subset). Depth first over the sequences, with the bounds of PlacementBounds; never worse than
/// algorithm 1, which it starts from. The best of all unless the limit ends it. Deterministic,
/// whatever the number of threads. Throws Error as algorithm1() does (but for links, which it does
/// without), and for more than 12 datacenters.
[[nodiscard]] SiteSearch search_sites(const GpuInventory& supply, const SiteSearchOptions& options,
                                      CellTimes& cells);

}  // namespace longhaul
