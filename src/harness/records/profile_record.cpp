#include "harness/records/profile_record.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/records/sample_report.hpp"
#include "report/record.hpp"
#include "scenario/model_costs.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

struct ProfiledBlock {
  const char* name;
  std::vector<double> BlockSamples::*samples;
};
constexpr ProfiledBlock kBlocks[] = {{"F", &BlockSamples::forward},
                                     {"D", &BlockSamples::dgrad},
                                     {"W", &BlockSamples::wgrad},
                                     {"B", &BlockSamples::backward},
                                     {"R", &BlockSamples::recompute}};

ordered_json sample_json(const std::vector<double>& sample) {
  const SampleSummary summary = summarize(sample);
  ordered_json json = {{"n", summary.n},
                       {"measured_median_ns", std::llround(summary.median)},
                       {"measured_min_ns", std::llround(summary.min)}};
  add_sample(json, sample, summary, std::nullopt, 0);
  std::vector<std::int64_t> values;
  for (const double ns : sample) values.push_back(std::llround(ns));
  json["samples_ns"] = values;
  return json;
}

ordered_json device_json(const DeviceProfile& device) {
  ordered_json json = {{"name", device.name}, {"devices", numbers(device.devices)}};
  for (const nn::LayerRange& chunk : device.chunks)
    json["chunks"].push_back({{"first_layer", chunk.first}, {"layers", chunk.count}});
  for (const ProfiledBlock& block : kBlocks)
    json["blocks"][block.name] = sample_json(device.samples.*block.samples);
  const StageMemory& memory = device.memory;
  json["memory"] = {{"weights_bytes", memory.weights.count()},
                    {"resident_bytes", memory.resident.count()},
                    {"activation_bytes", memory.activation.count()},
                    {"kept_for_wgrad_bytes", memory.kept_for_wgrad.count()},
                    {"kept_recomputed_bytes", memory.kept_recomputed.count()},
                    {"peak_bytes", memory.peak.count()}};
  return json;
}

int layers_in(const DeviceProfile& device) {
  int layers = 0;
  for (const nn::LayerRange& chunk : device.chunks) layers += chunk.count;
  return layers;
}

/// FLOPs of the blocks of one decoder layer against the formulas that predictions are made with.
void check_flops(const ModelProfile& profile, const Scenario& scenario,
                 std::vector<std::string>& problems) {
  if (profile.shape.layers < 3) return;
  const double linear = scenario::linear_flops(*scenario.model);
  const double attention = scenario::attention_flops(*scenario.model);
  const std::pair<const char*, double> expected[] = {
      {"F", linear + attention}, {"D", linear + 2 * attention}, {"W", linear}};
  for (const auto& [block, flops] : expected) {
    const double found = block_flops(profile.operators, "layer", block);
    if (std::abs(found - flops) > 1e-9 * flops)
      problems.push_back(
          fmt::format("{} of a layer is {:g} FLOP, its operators do {:g}", block, flops, found));
  }
}

void check_costs(const ModelProfile& profile, const Scenario& scenario, const std::string& costs,
                 std::vector<std::string>& problems) {
  const std::string held = fmt::format(
      "[costs]\nfile = \"it\"\n[profiles]\nit = '''\n{}'''\n[parallel]\nstages = {}\n"
      "microbatches = 1\n",
      costs, scenario.parallel.stages);
  const Costs read = scenario::parse_scenario(held, "what was measured").costs;
  for (const DeviceId stage : ids<DeviceId>(scenario.parallel.stages)) {
    const std::size_t at = index(stage);
    const DeviceProfile& device = profile.of_device(stage);
    const double median = summarize(device.samples.forward).median;
    if (read.forward[at].count() != std::llround(median) ||
        read.activation[at] != device.memory.activation)
      problems.push_back(fmt::format("stage {} reads as F {}, measured {:.0f} ns", stage,
                                     to_text(read.forward[at]), median));
  }
}

std::vector<std::string> cells_of(const DeviceProfile& device, const report::TimeScale& scale) {
  std::vector<std::string> cells{device.name, std::to_string(layers_in(device)),
                                 std::to_string(device.samples.forward.size())};
  double widest = 0;
  for (const ProfiledBlock& block : kBlocks) {
    const SampleSummary summary = summarize(device.samples.*block.samples);
    cells.push_back(scale.text(summary.median));
    widest = std::max(widest, summary.relative_width().value_or(0));
  }
  cells.push_back(widest > 0 ? fmt::format("{:.1f}", 100 * widest) : "- (n < 6)");
  cells.push_back(to_text(device.memory.activation));
  cells.push_back(to_text(device.memory.kept_for_wgrad));
  cells.push_back(to_text(device.memory.weights));
  return cells;
}

/// Share of a layer's block times that the operators explain.
std::string coverage_text(const ModelProfile& profile) {
  const auto layer = std::ranges::find(profile.parts, "layer", &DeviceProfile::name);
  if (layer == profile.parts.end()) return "";
  std::string text = "operators of a layer's blocks, each by itself, come to";
  for (const char* block : {"F", "D", "W"}) {
    const auto at = std::ranges::find_if(
        kBlocks, [&](const ProfiledBlock& one) { return std::string_view{one.name} == block; });
    const double whole = summarize(layer->samples.*at->samples).median;
    text +=
        fmt::format(" {:.0f}% of {}{}", 100 * block_time(profile.operators, "layer", block) / whole,
                    block, block[0] == 'W' ? "\n" : ",");
  }
  return text;
}

}  // namespace

std::vector<std::string> profile_problems(const ModelProfile& profile, const Scenario& scenario,
                                          const std::string& costs) {
  std::vector<std::string> problems;
  for (const auto* devices : {&profile.devices, &profile.parts}) {
    for (const DeviceProfile& device : *devices) {
      if (device.memory.left_over != Bytes{})
        problems.push_back(
            fmt::format("{}: {} are left behind W", device.name, to_text(device.memory.left_over)));
      if (!std::isfinite(device.loss))
        problems.push_back(fmt::format("{}: the loss is no number", device.name));
    }
  }
  for (const CollectiveMeasurement& each : profile.collectives)
    if (each.wrong() != 0)
      problems.push_back(fmt::format("{} of {} over {} ranks: {} numbers are wrong",
                                     to_text(each.predicted.collective.kind),
                                     to_text(each.predicted.collective.size),
                                     each.predicted.collective.members.size(), each.wrong()));
  check_flops(profile, scenario, problems);
  check_costs(profile, scenario, costs, problems);
  return problems;
}

ordered_json profile_json(const ModelProfile& profile) {
  ordered_json json = {{"number_type", longhaul::to_string(profile.type)},
                       {"message_bytes", profile.message_size().count()},
                       {"message", sample_json(profile.message)}};
  for (const DeviceProfile& device : profile.devices) json["stages"].push_back(device_json(device));
  for (const DeviceProfile& part : profile.parts) json["parts"].push_back(device_json(part));
  for (const CollectiveMeasurement& each : profile.collectives) {
    const plan::Collective& collective = each.predicted.collective;
    json["collectives"].push_back({{"operation", longhaul::to_string(collective.kind)},
                                   {"ranks", collective.members.size()},
                                   {"size_bytes", collective.size.count()},
                                   {"duration", sample_json(each.durations_ns)}});
  }
  if (profile.tasks) json["tasks"] = tasks_json(profile);
  return json;
}

std::string profile_table(const ModelProfile& profile, int ranks) {
  double largest = 0;
  for (const DeviceProfile& device : profile.devices)
    largest = std::max(largest, summarize(device.samples.backward).median);
  const report::TimeScale scale{largest};
  const auto time = [&](const char* block) { return fmt::format("{} {}", block, scale.unit()); };
  Table table{{{"", Align::left},
               {"layers"},
               {"n"},
               {time("F")},
               {time("D")},
               {time("W")},
               {time("B")},
               {time("R")},
               {"interval %"},
               {"activation"},
               {"kept for W"},
               {"weights"}}};
  for (const auto* devices : {&profile.devices, &profile.parts})
    for (const DeviceProfile& device : *devices) table.add_row(cells_of(device, scale));
  const SampleSummary message = summarize(profile.message);
  return table.text() +
         fmt::format("message of {}: {} ({})\n", to_text(profile.message_size()),
                     to_text(Duration{std::llround(message.median)}),
                     ranks > 1
                         ? "half of there and back between two ranks"
                         : "a copy on the device; two ranks would show the way between them") +
         coverage_text(profile) + tasks_text(profile);
}

}  // namespace longhaul::harness
