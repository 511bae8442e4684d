#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "planner/sites/cell_times.hpp"
#include "planner/sites/cost.hpp"
#include "planner/sites/sites.hpp"

namespace longhaul::planner {

/// One way to train: a layout under a schedule, with its times and what it costs.
struct SitePlan {
  std::string schedule;
  SiteLayout layout;  ///< without a placement where infeasible
  SiteTimes times;
  SiteFigures figures;
  std::string infeasible;  ///< why there is no such plan; empty: there is
  bool pareto = false;     ///< no other is both as fast and as cheap per sample, and better in one

  [[nodiscard]] bool feasible() const { return infeasible.empty(); }
};

struct Algorithm1Options {
  SiteOrder order = SiteOrder::availability;
  ScheduleRequest schedule = parse_schedule(schedule::kAtlasPlannerSchedule);
  std::optional<int> pipelines;  ///< C; default: the first of cell_sizes() that gives a plan
  std::optional<int> most_cells;
  std::vector<ScheduleRequest> others{};  ///< of each D the fastest of `schedule` and these
};

struct SitePlans {
  std::vector<DatacenterId> order;
  int pipelines = 1;            ///< C
  int most_cells = 0;           ///< D_max
  std::vector<SitePlan> plans;  ///< of D = 1, 2, ...
};

/// Atlas' algorithm 1, to the letter: for each D the datacenters in order take as many stages as
/// they hold, one DP-cell is simulated, the all-reduce is added. A D whose placement lacks a link
/// is infeasible. Throws Error where no datacenter has GPUs, all together cannot hold one cell, or
/// links are what every D lacks.
[[nodiscard]] SitePlans algorithm1(const GpuInventory& inventory, const Algorithm1Options& options,
                                   CellTimes& cells);
/// The same, where that is an answer.
Result<SitePlans> try_algorithm1(const GpuInventory& inventory, const Algorithm1Options& options,
                                 CellTimes& cells);

/// Why all datacenters together hold no cell of so many pipelines; nullopt where they do.
[[nodiscard]] std::optional<Refusal> why_no_cell(const GpuInventory& inventory, int pipelines);

/// Fills in the times and figures of a layout that was simulated.
[[nodiscard]] SitePlan make_plan(const GpuInventory& inventory, const CellQuery& query,
                                 const CellTime& time);

/// The figure by which plans are compared; smaller is better in all: time per iteration of a
/// pipeline; $ per sample, or GPU hours without prices; time of an iteration, however little it
/// trains.
#define LONGHAUL_SITE_OBJECTIVES(X) X(throughput, "throughput") X(cost, "cost") X(time, "time")
LONGHAUL_LISTED_ENUM(SiteObjective, LONGHAUL_SITE_OBJECTIVES);
[[nodiscard]] double score(const SitePlan& plan, SiteObjective objective);

/// The first of the best; nullptr where none is feasible.
[[nodiscard]] const SitePlan* best_plan(const std::vector<SitePlan>& plans,
                                        SiteObjective objective);

/// Sets SitePlan::pareto: over time per sample and cost per sample.
void mark_pareto(std::vector<SitePlan>& plans);

}  // namespace longhaul::planner
