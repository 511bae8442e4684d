#include "report/overlap_rows.hpp"

#include <string>
#include <utility>
#include <vector>

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

void add_certificate(const planner::OverlapCertificate& certificate,
                     const planner::OverlapResult& result, nlohmann::ordered_json& json) {
  json["decided"] = certificate.decided;
  json["search_ns"] = certificate.search.count();
  json["evaluated"] = certificate.evaluated;
  json["search_stopped"] = certificate.is_stopped;
  if (!certificate.is_proof) return;
  nlohmann::ordered_json baselines = nlohmann::ordered_json::array();
  for (const planner::OverlapBaseline& each : certificate.baselines)
    baselines.push_back({{"overlap", each.overlap},
                         {"makespan_ns", each.makespan.count()},
                         {"peak_bytes", each.peak.count()},
                         {"fits", each.fits},
                         {"grain", planner::to_string(each.grain)}});
  json["certificate"] = {{"baselines", std::move(baselines)},
                         {"bound_reason", result.bound.reason}};
}

}  // namespace

std::string certificate_text(const planner::OverlapResult& result) {
  const planner::OverlapCertificate& certificate = *result.certificate;
  std::string text =
      fmt::format("{} {}: {}. {} iterations simulated in {}.", result.schedule, result.overlap,
                  certificate.decided, certificate.evaluated, to_text(certificate.search));
  if (certificate.is_stopped) text += " Stopped before the search was done.";
  const planner::OverlapBaseline* fastest = nullptr;
  std::vector<std::string> too_large;
  for (const planner::OverlapBaseline& each : certificate.baselines) {
    if (!each.fits)
      too_large.push_back(each.overlap);
    else if (fastest == nullptr || each.makespan < fastest->makespan)
      fastest = &each;
  }
  if (fastest != nullptr)
    text += fmt::format(" Of {} overlaps of the same sharding the fastest, {}, takes {}.",
                        certificate.baselines.size(), fastest->overlap, to_text(fastest->makespan));
  std::vector<std::string> whole;
  for (const planner::OverlapBaseline& each : certificate.baselines)
    if (each.grain == planner::Grain::whole) whole.push_back(each.overlap);
  if (!whole.empty())
    text +=
        fmt::format(" By whole collectives, not by their messages: {}.", fmt::join(whole, ", "));
  if (!too_large.empty())
    text += fmt::format(" Beyond the memory, and not counted: {}.", fmt::join(too_large, ", "));
  return text;
}

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
  if (result.certificate) add_certificate(*result.certificate, result, json);
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
  std::string text = table.text(width);
  for (const planner::OverlapResult& each : results)
    if (each.certificate) text += "\n" + certificate_text(each) + "\n";
  return text;
}

}  // namespace longhaul::report
