#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/predict/parameters_json.hpp"
#include "profile/operator_graph.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using profile::Machine;
using profile::RankGroup;
using profile::TrainingRow;

int borders_that_leave(const TrainingRow& row, const Machine& machine) {
  int count = 0;
  for (int border = 0; border + 1 < row.pipeline; ++border)
    count += border_leaves_node(row, machine, border) ? 1 : 0;
  return count;
}

ordered_json group_json(const RankGroup& group, int stride) {
  return {{"ranks", group.ranks},
          {"stride", stride},
          {"leaves_node", group.ranks > 1 && !group.inside_node},
          {"share_node", group.ranks > 1 && !group.inside_node ? group.rings : 1}};
}

}  // namespace

ordered_json rings_json(const TrainingRow& row, const Machine& machine) {
  return {{"tensor", group_json(tensor_group(row, machine), 1)},
          {"data", group_json(data_group(row, machine), row.tensor)},
          {"pipeline",
           {{"ranks", row.pipeline},
            {"stride", row.tensor * row.data},
            {"borders", row.pipeline - 1},
            {"leave_node", borders_that_leave(row, machine)}}}};
}

std::string rings_text(const TrainingRow& row, const Machine& machine) {
  std::string text;
  const auto add = [&](bool leaves, const char* letter) {
    if (leaves) text += fmt::format("{}{}", text.empty() ? "" : ", ", letter);
  };
  add(row.tensor > 1 && !tensor_group(row, machine).inside_node, "t");
  add(row.data > 1 && !data_group(row, machine).inside_node, "d");
  add(borders_that_leave(row, machine) > 0, "p");
  return text.empty() ? "-" : text;
}

}  // namespace longhaul::cli
