#include "report/overlap_rows.hpp"

#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"

namespace longhaul::report {
namespace {

using collective::TimeByTraffic;
using collective::Traffic;

nlohmann::ordered_json by_traffic(const TimeByTraffic& times) {
  nlohmann::ordered_json json;
  for (const Traffic traffic : every<Traffic>())
    json[to_string(traffic)] = times[static_cast<std::size_t>(traffic)].count();
  return json;
}

/// "zero3 over 4 of 16".
std::string sharding_text(const Parallel& parallel) {
  if (parallel.replicas == 1) return "-";
  std::string text = to_string(parallel.gradient_sync);
  if (parallel.gradient_sync == GradientSync::zero3 && parallel.shard < parallel.replicas)
    text += fmt::format(" over {} of {}", parallel.shard, parallel.replicas);
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const planner::OverlapResult& result) {
  nlohmann::ordered_json json{{"schedule", result.schedule},
                              {"overlap", result.overlap},
                              {"gradient_sync", to_string(result.parallel.gradient_sync)},
                              {"shard", result.parallel.shard},
                              {"makespan_ns", result.makespan.count()},
                              {"rank", number(result.rank)},
                              {"communication_ns", by_traffic(result.exposure.communication)},
                              {"exposed_ns", by_traffic(result.exposure.exposed)},
                              {"alpha", result.alpha},
                              {"speedup_bound", result.speedup_bound()},
                              {"peak_bytes", result.peak.count()},
                              {"fits", result.fits()},
                              {"grain", planner::to_string(result.grain)},
                              {"lower_bound_ns", result.bound.lower_bound.count()},
                              {"bound_reason", result.bound.reason},
                              {"gap", result.gap()}};
  return json;
}

std::string overlap_rows_text(std::span<const planner::OverlapResult> results, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"overlap", Align::left},
               {"gradients", Align::left, 1},
               {"makespan"},
               {"over bound"},
               {"exposed"},
               {"communication"},
               {"alpha", Align::right, 2},
               {"gain at most", Align::right, 2},
               {"peak"},
               {"fits", Align::left}}};
  for (const planner::OverlapResult& each : results)
    table.add_row({each.schedule, each.overlap, sharding_text(each.parallel),
                   to_text(each.makespan), fmt::format("{:+.1f}%", 100 * each.gap()),
                   to_text(each.exposure.total_exposed()), to_text(each.exposure.total()),
                   fmt::format("{:.2f}", each.alpha), fmt::format("{:.2f}x", each.speedup_bound()),
                   to_text(each.peak), each.fits() ? "yes" : "no"});
  return table.text(width);
}

}  // namespace longhaul::report
