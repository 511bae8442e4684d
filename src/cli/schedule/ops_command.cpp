#include <ostream>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/schedule/ops_graph.hpp"
#include "collective/iteration/communications.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "planner/choose_schedules.hpp"
#include "report/granularity.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

const char* kind_name(const Op& op) {
  if (op.kind == OpKind::compute) return longhaul::to_string(op.block_kind);
  return op.kind == OpKind::collective ? longhaul::to_string(op.collective)
                                       : longhaul::to_string(op.kind);
}

std::vector<std::uint32_t> after_ids(const Plan& plan, OpId id) {
  std::vector<std::uint32_t> ids;
  for (const OpId before : plan.after_of(id)) ids.push_back(static_cast<std::uint32_t>(before));
  return ids;
}

std::vector<std::string> resource_names(const Plan& plan, OpId id) {
  std::vector<std::string> names;
  for (const ResourceId resource : plan.resources_of(id))
    names.push_back(plan.resources[index(resource)].name);
  return names;
}

/// "0F0", or which operator of it: "0F0 qkv of layer 3"; "optimizer of chunk 0".
std::string computation_text(const Plan& plan, const Op& op, const std::string& block) {
  if (is_optimizer_step(op)) return fmt::format("optimizer of chunk {}", op.chunk);
  const plan::OperatorStep* const step = plan.operator_of(op);
  if (step == nullptr) return block;
  const std::int32_t layer = plan.operators->layer_of(*step, op.chunk);
  const std::string name = fmt::format("{} {}", block, plan.operators->names[step->name]);
  return layer < 0 ? name : fmt::format("{} of layer {}", name, layer);
}

/// "F0" of which chunk and part; for a message, the block that it carries the result of, or the
/// step of which collective it is.
std::string block_text(const Plan& plan, const Op& op) {
  if (op.kind == OpKind::collective) return fmt::format("{} of chunk {}", kind_name(op), op.chunk);
  const char* const way = op.kind == OpKind::send ? "to" : "from";
  if (is_step(op))
    return fmt::format("{} of step {} of {} ({} {})", kind_name(op), op.microbatch,
                       plan::name_of(plan, stepped_of(op)), way, static_cast<int>(op.peer));
  const std::string part =
      op.parts == 1 ? std::string{} : fmt::format(".{}/{}", op.part + 1, op.parts);
  const std::string block =
      fmt::format("{}{}{}{}", op.chunk, longhaul::to_string(op.block_kind), op.microbatch, part);
  if (op.kind == OpKind::compute) return computation_text(plan, op, block);
  return fmt::format("{} of {} ({} {})", kind_name(op), block, way, static_cast<int>(op.peer));
}

template <typename Visit>
void for_each_op(const Lane& lane, Visit&& visit) {
  const auto first = static_cast<std::uint32_t>(lane.first);
  for (std::uint32_t id = first; id < first + lane.count; ++id) visit(OpId{id});
}

/// "replica 0, device 3", "replica 0, device 3, tensor rank 1", "controller".
std::string place_text(const RankInfo& info) {
  if (info.role != RankRole::training) return longhaul::to_string(info.role);
  return fmt::format("replica {}, device {}{}", info.replica, info.device,
                     info.tensor > 0 ? fmt::format(", tensor rank {}", info.tensor) : "");
}

std::string rank_ops_text(const Plan& plan, int rank, TableWidth width) {
  const RankInfo& info = plan.ranks[at(rank)];
  std::string text = fmt::format("rank {}: {}, {}\n", rank, place_text(info),
                                 plan.datacenters[index(info.datacenter)]);
  Table table{{{"lane", Align::left},
               {"op"},
               {"what", Align::left},
               {"takes"},
               {"bytes"},
               {"after", Align::left, 2},
               {"holds", Align::left, 1}}};
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != Rank{rank}) continue;
    for_each_op(lane, [&](OpId id) {
      const Op& op = plan.op(id);
      table.add_row({lane.name, std::to_string(index(id)), block_text(plan, op),
                     to_text(op.duration), op.kind == OpKind::compute ? "" : to_text(op.size),
                     fmt::format("{}", fmt::join(after_ids(plan, id), " ")),
                     fmt::format("{}", fmt::join(resource_names(plan, id), ", "))});
    });
  }
  return text + table.text(width);
}

ordered_json op_json(const Plan& plan, OpId id) {
  const Op& op = plan.op(id);
  ordered_json json{{"op", index(id)}, {"kind", kind_name(op)}};
  json["chunk"] = number(is_step(op) ? plan.stepped[stepped_of(op)].chunk : op.chunk);
  if (is_step(op)) {
    json["collective"] = plan::name_of(plan, stepped_of(op));
    json["step"] = number(op.microbatch);
  } else if (op.kind != OpKind::collective) {
    json["block"] = longhaul::to_string(op.block_kind);
    json["microbatch"] = number(op.microbatch);
    json["part"] = op.part;
    json["parts"] = op.parts;
  }
  if (const plan::OperatorStep* const step = plan.operator_of(op)) {
    json["operator"] = plan.operators->names[step->name];
    json["layer"] = plan.operators->layer_of(*step, op.chunk);
    json["slice"] = step->slice;
    json["slices"] = step->slices;
  }
  if (op.kind == OpKind::send || op.kind == OpKind::recv) {
    json["peer"] = static_cast<int>(op.peer);
    json["match"] = op.match;
  }
  if (op.kind == OpKind::collective) {
    json["members"] = ordered_json::array();
    for (const OpId member : plan.collectives[op.match]) json["members"].push_back(index(member));
  }
  json["duration_ns"] = op.duration.count();
  json["size_bytes"] = op.size.count();
  json["after"] = after_ids(plan, id);
  json["resources"] = resource_names(plan, id);
  return json;
}

ordered_json rank_ops_json(const Plan& plan, int rank) {
  const RankInfo& info = plan.ranks[at(rank)];
  ordered_json json{{"rank", rank},
                    {"replica", info.replica},
                    {"device", info.device},
                    {"datacenter", plan.datacenters[index(info.datacenter)]}};
  if (info.tensor > 0) json["tensor"] = info.tensor;
  if (info.role != RankRole::training) json["role"] = longhaul::to_string(info.role);
  json["lanes"] = ordered_json::array();
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != Rank{rank}) continue;
    ordered_json lane_json{{"lane", lane.name}, {"ops", ordered_json::array()}};
    for_each_op(lane, [&](OpId id) { lane_json["ops"].push_back(op_json(plan, id)); });
    json["lanes"].push_back(std::move(lane_json));
  }
  return json;
}

/// The ranks that were asked for.
std::vector<int> ranks_of(const Options& options, const Plan& plan) {
  const int ranks = static_cast<int>(plan.ranks.size());
  if (options.rank) {
    if (*options.rank < 0 || *options.rank >= ranks)
      fail("--rank: there is no rank {} (the plan has {}). Name one from 0 to {}.", *options.rank,
           ranks, ranks - 1);
    return {*options.rank};
  }
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  return all;
}

/// `ops --graph`: the operators of an iteration and what they need of each other, as a picture.
Answer graph_answer(const Options& options, const Schedule& schedule, const Scenario& scenario,
                    Arrangement arrangement) {
  report::require_new_file(options.graph);
  const collective::IterationPlan iteration =
      collective::with_communications(
          collective::iteration_of(schedule, scenario, arrangement).or_throw())
          .or_throw();
  const OperatorGraph graph = operator_graph(iteration);
  report::write_new_file(options.graph, [&](std::ostream& out) { out << graph.dot; });
  if (options.json) {
    ordered_json json = record_header(options, scenario);
    json.erase("numbers");
    json["schedule"] = schedule.name;
    json["graph"] = options.graph;
    json["nodes"] = graph.nodes;
    json["edges"] = graph.edges;
    json["kinds"] = graph.kinds;
    return {report::json_text(json)};
  }
  std::string text = fmt::format("wrote {}: {} operators of one rank of each stage, {} edges\n",
                                 options.graph, graph.nodes, graph.edges);
  Table table{{{"operator", Align::left}, {"count"}}};
  for (const auto& [kind, count] : graph.kinds) table.add_row({kind, std::to_string(count)});
  return {text + table.text(table_width(options))};
}

/// What chooses ops of a plan: a graph has all operators of one rank of each stage.
void refuse_beside_graph(const Options& options) {
  if (options.graph.empty()) return;
  const auto refuse = [](const char* option) {
    fail("{} and --graph are both given (a graph is of one rank of each stage). Leave one out.",
         option);
  };
  if (options.rank) refuse("--rank");
  if (!options.granularity.empty()) refuse("--granularity");
}

}  // namespace

Answer ops_command(const Options& options) {
  refuse_beside_graph(options);
  const Scenario scenario = scenario_of(options);
  const planner::PlannerOptions planner = planner_options_of(options);
  const Granularity granularity = report::granularity_of(options.granularity);
  const Schedule schedule =
      planner::choose_schedule(planner::parse_single_schedule_option(options.schedule), scenario,
                               planner)
          .schedule;
  if (!options.graph.empty())
    return graph_answer(options, schedule, scenario, planner.search.arrangement);
  const Plan plan = plan::lower_at(granularity, schedule, scenario, planner.search.arrangement);
  const std::vector<int> ranks = ranks_of(options, plan);
  if (options.json) {
    ordered_json json = record_header(options, scenario);
    json.erase("numbers");
    json["schedule"] = plan.schedule;
    json["granularity"] = to_string(plan.granularity);
    json["ranks"] = ordered_json::array();
    for (const int rank : ranks) json["ranks"].push_back(rank_ops_json(plan, rank));
    return {report::json_text(json)};
  }
  std::string text = fmt::format("{} on {}: {} on {}, {}\n", plan.schedule, scenario.name,
                                 report::counted(std::ssize(plan.ops), "op"),
                                 report::counted(std::ssize(plan.ranks), "rank"), options.comm);
  for (const int rank : ranks) text += '\n' + rank_ops_text(plan, rank, table_width(options));
  return {text};
}

}  // namespace longhaul::cli
