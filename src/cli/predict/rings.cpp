#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "cli/predict/parameters_json.hpp"
#include "profile/operator_graph.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using profile::Machine;
using profile::RankGroup;
using profile::TrainingRow;

int borders_that_leave(const TrainingRow& row, const Machine& machine, const ApartRanks& apart) {
  const std::vector<int>& sites = apart.sites_of_stages;
  int count = 0;
  for (int border = 0; border + 1 < row.pipeline; ++border) {
    const bool leaves_site = !sites.empty() && sites[at(border)] != sites[at(border + 1)];
    count += leaves_site || border_leaves_node(row, machine, border) ? 1 : 0;
  }
  return count;
}

RankGroup replicas_of(const TrainingRow& row, const Machine& machine, const ApartRanks& apart) {
  RankGroup group = data_group(row, machine);
  group.inside_node = group.inside_node && !apart.replicas;
  return group;
}

bool leaves_node(const RankGroup& group) { return group.ranks > 1 && !group.inside_node; }

ordered_json group_json(const RankGroup& group, int stride) {
  return {{"ranks", group.ranks},
          {"stride", stride},
          {"leaves_node", leaves_node(group)},
          {"share_node", leaves_node(group) ? group.rings : 1}};
}

}  // namespace

ordered_json rings_json(const TrainingRow& row, const Machine& machine, const ApartRanks& apart) {
  return {{"tensor", group_json(tensor_group(row, machine), 1)},
          {"data", group_json(replicas_of(row, machine, apart), row.tensor)},
          {"pipeline",
           {{"ranks", row.pipeline},
            {"stride", row.tensor * row.data},
            {"borders", row.pipeline - 1},
            {"leave_node", borders_that_leave(row, machine, apart)}}}};
}

std::string rings_text(const TrainingRow& row, const Machine& machine, const ApartRanks& apart) {
  std::string text;
  const auto add = [&](bool leaves, const char* letter) {
    if (leaves) text += fmt::format("{}{}", text.empty() ? "" : ", ", letter);
  };
  add(leaves_node(tensor_group(row, machine)), "t");
  add(leaves_node(replicas_of(row, machine, apart)), "d");
  add(borders_that_leave(row, machine, apart) > 0, "p");
  return text.empty() ? "-" : text;
}

}  // namespace longhaul::cli
