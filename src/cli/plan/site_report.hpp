#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/table.hpp"
#include "planner/sites/algorithm1.hpp"
#include "planner/sites/branch_and_bound.hpp"
#include "planner/sites/break_even.hpp"

namespace longhaul::cli {

/// A datacenter that the best plan does without, against the best plan with it.
struct LeftOut {
  DatacenterId datacenter{};
  const planner::SitePlan* with = nullptr;  ///< nullptr: no plan uses it
  double gain = 0;                          ///< throughput without over throughput with, less 1
};
/// Those with GPUs that the plan of the highest throughput does not use.
[[nodiscard]] std::vector<LeftOut> left_out(const planner::GpuInventory& inventory,
                                            const std::vector<planner::SitePlan>& plans);

/// A line for each plan; the best and the Pareto set are marked.
[[nodiscard]] std::string plans_text(const planner::GpuInventory& inventory,
                                     const std::vector<planner::SitePlan>& plans, TableWidth width);
/// The best by throughput, cost and time, and which datacenters they leave out.
[[nodiscard]] std::string best_text(const planner::GpuInventory& inventory,
                                    const std::vector<planner::SitePlan>& plans);
/// "D=5 C=2: west 30 > east 30, 12.3 iterations/s, ..."
[[nodiscard]] std::string plan_text(const planner::GpuInventory& inventory,
                                    const planner::SitePlan& plan);
[[nodiscard]] std::string search_text(const planner::SiteSearch& search);
[[nodiscard]] std::string break_even_text(const std::vector<planner::BreakEvenPoint>& points,
                                          const std::string& a, const std::string& b);

[[nodiscard]] nlohmann::ordered_json to_json(const planner::GpuInventory& inventory,
                                             const planner::SitePlan& plan);
/// Indices of the best plans, and the datacenters that are left out.
[[nodiscard]] nlohmann::ordered_json best_json(const planner::GpuInventory& inventory,
                                               const std::vector<planner::SitePlan>& plans);
[[nodiscard]] nlohmann::ordered_json to_json(const planner::SiteSearch& search);
[[nodiscard]] nlohmann::ordered_json to_json(const planner::BreakEvenPoint& point);

}  // namespace longhaul::cli
