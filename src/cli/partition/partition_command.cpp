#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/overlap/partition_forest.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::PartitionForest;
using planner::PartitionLeaf;
using planner::PartitionTree;

std::string fraction_text(const collective::Fraction& part) {
  return part.denominator == 1 ? fmt::format("{}", part.numerator)
                               : fmt::format("{}/{}", part.numerator, part.denominator);
}

ordered_json leaf_json(const PartitionLeaf& leaf) {
  std::vector<std::string> granularity;
  for (const collective::Fraction& each : leaf.granularity)
    granularity.push_back(fraction_text(each));
  ordered_json json{{"partition", collective::to_text(leaf.partition)},
                    {"primitive", to_string(leaf.partition.substitution)},
                    {"group", to_string(leaf.partition.grouping)}};
  json["mesh"] =
      leaf.partition.mesh.sizes.empty() ? ordered_json{} : ordered_json(leaf.partition.mesh.sizes);
  json["dimension"] = leaf.dimension ? ordered_json(to_string(*leaf.dimension)) : ordered_json{};
  json["chain"] = leaf.chain;
  json["granularity"] = granularity;
  json["cost_ns"] = leaf.cost.count();
  json["exposed_ns"] = leaf.exposed.count();
  return json;
}

ordered_json tree_json(const PartitionTree& tree) {
  const collective::CommunicationClass& own = tree.communications;
  ordered_json json{{"traffic", to_string(own.traffic)},
                    {"kind", to_text(own.kind)},
                    {"tier", to_string(own.tier)},
                    {"count", own.all.size()},
                    {"ranks", tree.ranks},
                    {"size_bytes", own.size.count()},
                    {"beside", own.beside},
                    {"block", to_string(own.work)},
                    {"computation_ns", own.computation.count()},
                    {"independent_ns", own.independent.count()}};
  json["leaves"] = ordered_json::array();
  for (const PartitionLeaf& leaf : tree.leaves) json["leaves"].push_back(leaf_json(leaf));
  json["pruned"] = ordered_json::array();
  for (const planner::PrunedPartition& each : tree.pruned)
    json["pruned"].push_back({{"partition", each.partition}, {"reason", each.reason}});
  json["choice"] = tree.choice;
  return json;
}

ordered_json layer_json(const PartitionForest& forest) {
  const auto& [activations, weights] = forest.layer_times;
  return {{"w_ag_ns", forest.layer.weight_gather.count()},
          {"g_act_ns", forest.layer.activation_gradient.count()},
          {"act_ag_ns", forest.layer.activation_gather.count()},
          {"g_w_ns", forest.layer.weight_gradient.count()},
          {"act_rs_ns", forest.layer.activation_scatter.count()},
          {"g_w_rs_ns", forest.layer.weight_gradient_scatter.count()},
          {"others_ns", forest.layer.others.count()},
          {"t1_ns", activations.count()},
          {"t2_ns", weights.count()}};
}

ordered_json model_json(const PartitionForest& forest) {
  if (!forest.model) return {};
  return {{"t_ns", forest.model->exposed.count()},
          {"l1", forest.model->forward},
          {"l2", forest.model->backward}};
}

std::string beside_text(const collective::CommunicationClass& own) {
  return own.beside.empty() ? "-" : fmt::format("{} {}", own.beside, to_string(own.work));
}

std::string text_of(const PartitionForest& forest, TableWidth width) {
  Table table{{{"traffic", Align::left},
               {"collective", Align::left},
               {"size"},
               {"tier", Align::left},
               {"beside", Align::left},
               {"times"},
               {"whole"},
               {"choice", Align::left},
               {"cost"},
               {"exposed"},
               {"leaves", Align::right, 1},
               {"pruned", Align::right, 1}}};
  for (const PartitionTree& tree : forest.trees) {
    const collective::CommunicationClass& own = tree.communications;
    const PartitionLeaf& choice = tree.leaves[tree.choice];
    table.add_row({to_string(own.traffic), to_text(own.kind), to_text(own.size),
                   to_string(own.tier), beside_text(own), std::to_string(own.all.size()),
                   to_text(tree.leaves.front().cost), collective::to_text(choice.partition),
                   to_text(choice.cost), to_text(choice.exposed),
                   std::to_string(tree.leaves.size()), std::to_string(tree.pruned.size())});
  }
  std::string text = table.text(width);
  const auto& [activations, weights] = forest.layer_times;
  text += fmt::format(
      "\nBackward of a layer (equation 1): {} with gradients of activations first, {} with those "
      "of "
      "weights.\n",
      to_text(activations), to_text(weights));
  if (forest.model)
    text += fmt::format(
        "Model (equation 2): {} forward and {} backward microbatches together; {} is exposed.\n",
        forest.model->forward, forest.model->backward, to_text(forest.model->exposed));
  return text;
}

}  // namespace

Answer partition_command(const Options& options) {
  const Scenario scenario = scenario_of(options);
  const planner::PlannerOptions planner = planner_options_of(options);
  const Schedule schedule =
      planner::choose_schedule(planner::parse_single_schedule_option(options.schedule), scenario,
                               planner)
          .schedule;
  const planner::OverlapVariant variant =
      planner::overlap_variant(schedule, scenario, planner.search.arrangement).or_throw();
  const PartitionForest forest = planner::partition_forest(variant).or_throw();
  if (!options.json)
    return {fmt::format("{}: {}, {}; collectives simulated, each alone on the network\n\n",
                        scenario.name, report::size_text(scenario), schedule.name) +
            text_of(forest, table_width(options))};
  ordered_json json = record_header(options, scenario);
  json["schedule"] = schedule.name;
  json["communications"] = ordered_json::array();
  for (const PartitionTree& tree : forest.trees) json["communications"].push_back(tree_json(tree));
  json["layer"] = layer_json(forest);
  json["model"] = model_json(forest);
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
