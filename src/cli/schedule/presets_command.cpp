#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/make_schedule.hpp"
#include "report/record_file.hpp"
#include "scenario/presets.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

std::string model_table() {
  Table table{{{"model", Align::left},
               {"layers"},
               {"hidden"},
               {"intermediate"},
               {"heads"},
               {"KV heads"},
               {"sequence"},
               {"GPUs a stage"},
               {"10^9 weights"},
               {"block times", Align::left}}};
  for (const scenario::ModelPreset& preset : scenario::model_presets()) {
    const Model& model = preset.model;
    const double weights = static_cast<double>(scenario::model_parameters(model)) * 1e-9;
    table.add_row({model.name, std::to_string(model.layers), std::to_string(model.hidden),
                   std::to_string(model.intermediate), std::to_string(model.heads),
                   std::to_string(model.kv_heads), std::to_string(model.sequence_length),
                   std::to_string(model.tensor_parallel), fmt::format("{:.1f}", weights),
                   preset.measured
                       ? "measured"
                       : fmt::format("FLOPs at {:g} TFLOP/s", model.achieved_flops * 1e-12)});
  }
  return table.text();
}

std::string link_table() {
  Table table{{{"link", Align::left}, {"latency"}, {"bandwidth"}, {"64 MiB take"}}};
  for (const scenario::LinkPreset& link : scenario::link_presets())
    table.add_row({link.name, to_text(link.latency), to_text(link.bandwidth),
                   to_text(64_MiB / link.bandwidth)});
  return table.text();
}

std::string node_table() {
  Table table{{{"node", Align::left}, {"GPUs"}, {"port of each"}, {"between nodes"}}};
  for (const scenario::NodePreset& node : scenario::node_presets())
    table.add_row(
        {node.name, std::to_string(node.gpus), to_text(node.device), to_text(node.internal)});
  return table.text();
}

std::string schedule_table() {
  Table table{{{"schedule", Align::left}, {"what it does", Align::left}}};
  for (const planner::ScheduleName& schedule : planner::schedule_names())
    table.add_row({schedule.name, schedule.summary});
  return table.text();
}

ordered_json models_json() {
  ordered_json json = ordered_json::array();
  for (const scenario::ModelPreset& preset : scenario::model_presets()) {
    const Model& model = preset.model;
    json.push_back({{"name", model.name},
                    {"layers", model.layers},
                    {"hidden", model.hidden},
                    {"intermediate", model.intermediate},
                    {"heads", model.heads},
                    {"kv_heads", model.kv_heads},
                    {"vocabulary", model.vocabulary},
                    {"sequence_length", model.sequence_length},
                    {"microbatch_size", model.microbatch_size},
                    {"tensor_parallel", model.tensor_parallel},
                    {"achieved_flops_per_second", model.achieved_flops},
                    {"peak_flops_per_second", model.peak_flops},
                    {"parameters", scenario::model_parameters(model)},
                    {"measured", preset.measured.has_value()}});
  }
  return json;
}

ordered_json links_json() {
  ordered_json json = ordered_json::array();
  for (const scenario::LinkPreset& link : scenario::link_presets())
    json.push_back({{"name", link.name},
                    {"latency_ns", link.latency.count()},
                    {"rate_bits_per_second", link.bandwidth.bits_per_second()}});
  return json;
}

ordered_json nodes_json() {
  ordered_json json = ordered_json::array();
  for (const scenario::NodePreset& node : scenario::node_presets())
    json.push_back({{"name", node.name},
                    {"gpus", node.gpus},
                    {"device_bits_per_second", node.device.bits_per_second()},
                    {"internal_bits_per_second", node.internal.bits_per_second()}});
  return json;
}

ordered_json schedules_json() {
  ordered_json json = ordered_json::array();
  for (const planner::ScheduleName& schedule : planner::schedule_names())
    json.push_back({{"name", schedule.name}, {"summary", schedule.summary}});
  return json;
}

ordered_json overlaps_json() {
  ordered_json json = ordered_json::array();
  for (const auto list : {collective::overlaps(), collective::searched_overlaps()})
    for (const collective::Overlap& overlap : list)
      json.push_back({{"name", overlap.name}, {"summary", overlap.summary}});
  return json;
}

}  // namespace

Answer presets_command(const Options& options) {
  if (!options.json)
    return {model_table() + '\n' + link_table() + '\n' + node_table() + '\n' + schedule_table()};
  ordered_json json = report::record_header();
  json["models"] = models_json();
  json["links"] = links_json();
  json["nodes"] = nodes_json();
  json["schedules"] = schedules_json();
  json["overlaps"] = overlaps_json();
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
