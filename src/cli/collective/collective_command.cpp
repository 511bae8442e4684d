#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/tie_range.hpp"
#include "report/collective_options.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::CollectiveBound;
using planner::CollectiveTime;
using planner::TieRange;

std::vector<CollectiveTime> times_of(const report::CollectiveRequest& request,
                                     const Scenario& scenario) {
  if (request.wanted == report::Wanted::best)
    return {planner::best_collective(request.collective, scenario).or_throw()};
  if (request.wanted == report::Wanted::one)
    return {planner::play_collective(request.collective, scenario).or_throw()};
  std::vector<CollectiveTime> times;
  for (const plan::Collective& each : planner::every_algorithm(request.collective, scenario))
    times.push_back(planner::play_collective(each, scenario).or_throw());
  if (times.empty()) require_none(plan::why_no_steps(request.collective));
  return times;
}

/// Of each of the times; empty: not asked for.
std::vector<TieRange> ranges_of(const std::vector<CollectiveTime>& times, const Scenario& scenario,
                                int draws) {
  std::vector<TieRange> ranges;
  if (draws == 0) return ranges;
  for (const CollectiveTime& each : times)
    ranges.push_back(
        planner::range_over_ties(each.collective, scenario, {.draws = draws}).or_throw());
  return ranges;
}

std::string ranges_text(const std::vector<CollectiveTime>& times,
                        const std::vector<TieRange>& ranges, TableWidth width) {
  if (ranges.empty()) return "";
  Table table{{{"algorithm", Align::left}, {"time"}, {"10th percentile"}, {"median"}, {"90th"}}};
  for (std::size_t i = 0; i < times.size(); ++i)
    table.add_row({report::algorithm_text(times[i].collective), to_text(times[i].duration),
                   to_text(ranges[i].low), to_text(ranges[i].median), to_text(ranges[i].high)});
  return fmt::format(
      "\nWhere messages that ask at once come in any order ({} simulations, each rank and message "
      "up "
      "to 1 us late):\n{}",
      ranges.front().draws, table.text(width));
}

ordered_json range_json(const TieRange& range) {
  return {{"low_ns", range.low.count()},
          {"median_ns", range.median.count()},
          {"high_ns", range.high.count()},
          {"draws", range.draws}};
}

std::vector<const char*> algorithm_names(const plan::Mesh& mesh) {
  std::vector<const char*> names;
  for (const plan::CollectiveAlgorithm each : mesh.algorithms)
    names.push_back(plan::to_string(each));
  return names;
}

std::string bound_text(Duration duration, const CollectiveBound& bound) {
  if (bound.lower_bound == Duration::zero()) return "-";
  return fmt::format("{:+.1f}%", 100.0 * (static_cast<double>(duration.count()) /
                                              static_cast<double>(bound.lower_bound.count()) -
                                          1));
}

std::string text_of(const std::vector<CollectiveTime>& times, const CollectiveBound& bound,
                    const plan::Collective& asked, const Scenario& scenario, TableWidth width) {
  std::string text =
      fmt::format("{}: {} of {} among {} of {}; simulated, alone on the network\n\n", scenario.name,
                  to_text(asked.kind), to_text(asked.size),
                  report::counted(std::ssize(asked.members), "rank"), scenario.ranks());
  Table table{{{"algorithm", Align::left},
               {"pieces"},
               {"time"},
               {"over bound"},
               {"messages", Align::right, 3},
               {"in nodes"},
               {"between nodes"},
               {"WAN"},
               {"busiest", Align::left, 1},
               {"busy", Align::right, 2}}};
  for (const CollectiveTime& each : times)
    table.add_row({report::algorithm_text(each.collective), std::to_string(each.collective.pieces),
                   to_text(each.duration), bound_text(each.duration, bound),
                   std::to_string(each.messages), to_text(each.bytes.node),
                   to_text(each.bytes.datacenter), to_text(each.bytes.wan), each.busiest.name,
                   to_text(each.busiest.busy)});
  text += table.text(width);
  if (bound.lower_bound > Duration::zero())
    text += fmt::format("\nNo algorithm ends before {}: {}.\n", to_text(bound.lower_bound),
                        bound.reason);
  return text;
}

ordered_json mesh_json(const plan::Collective& collective) {
  ordered_json json;
  const plan::Mesh& mesh = collective.mesh;
  const bool flat = mesh.sizes.empty();
  json["mesh"] = flat ? ordered_json{} : ordered_json(mesh.sizes);
  json["order"] = flat ? ordered_json{} : ordered_json(mesh.order);
  json["per_dimension"] = flat ? ordered_json{} : ordered_json(algorithm_names(mesh));
  return json;
}

ordered_json time_json(const CollectiveTime& time, const CollectiveBound& bound) {
  const plan::Collective& collective = time.collective;
  ordered_json json{{"kind", to_text(collective.kind)},
                    {"algorithm", plan::to_string(collective.algorithm)}};
  json.update(mesh_json(collective));
  json["pieces"] = collective.pieces;
  json["members"] = collective.members.size();
  json["size_bytes"] = collective.size.count();
  json["duration_ns"] = time.duration.count();
  json["messages"] = time.messages;
  json["critical_messages"] = time.critical_messages;
  json["bytes_by_level"] = {{"node", time.bytes.node.count()},
                            {"datacenter", time.bytes.datacenter.count()},
                            {"wan", time.bytes.wan.count()}};
  json["busiest"] =
      time.busiest.name.empty()
          ? ordered_json{}
          : ordered_json{{"resource", time.busiest.name}, {"busy_ns", time.busiest.busy.count()}};
  json["lower_bound_ns"] = bound.lower_bound.count();
  json["bound_reason"] = bound.reason;
  return json;
}

}  // namespace

Answer collective_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const report::CollectiveRequest request = report::read_collective(options.collective, scenario);
  const std::vector<CollectiveTime> times = times_of(request, scenario);
  const CollectiveBound bound = planner::bound_of_collective(request.collective, scenario);
  const std::vector<TieRange> ranges = ranges_of(times, scenario, options.ties);
  if (!options.json)
    return {text_of(times, bound, request.collective, scenario, table_width(options)) +
            ranges_text(times, ranges, table_width(options))};
  ordered_json json = record_header(options, scenario);
  json["collectives"] = ordered_json::array();
  for (std::size_t i = 0; i < times.size(); ++i) {
    json["collectives"].push_back(time_json(times[i], bound));
    if (!ranges.empty()) json["collectives"].back()["over_ties"] = range_json(ranges[i]);
  }
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
