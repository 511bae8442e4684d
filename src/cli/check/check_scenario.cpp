#include <algorithm>

#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/check/check.hpp"
#include "cli/command/commands.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/lowering/prove_collectives.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/collectives/grain.hpp"
#include "report/record.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/memory.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kReferenceSchedule = "1f1b";

const std::string& datacenter_name(const Scenario& scenario, DatacenterId datacenter) {
  return scenario.datacenters[index(datacenter)].name;
}

/// Where the replicas of a device are: "west", or "west, east" where replicas lie apart.
std::string home_of(const Scenario& scenario, DeviceId device) {
  std::vector<std::string> names;
  for (const ReplicaId replica : scenario.replica_ids()) {
    const auto& name =
        datacenter_name(scenario, scenario.datacenter_of(scenario.rank(replica, device)));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string placement_table(const Scenario& scenario) {
  Table table{{{"datacenter", Align::left}, {"replica"}, {"stages", Align::left}, {"GPUs there"}}};
  for (std::size_t d = 0; d < scenario.datacenters.size(); ++d) {
    const Datacenter& datacenter = scenario.datacenters[d];
    for (const ReplicaId replica : scenario.replica_ids()) {
      std::vector<int> stages;
      for (const DeviceId device : scenario.device_ids()) {
        if (index(scenario.datacenter_of(scenario.rank(replica, device))) == d)
          stages.push_back(number(device));
      }
      if (stages.empty()) continue;
      table.add_row({datacenter.name, std::to_string(number(replica)), report::ranges_text(stages),
                     datacenter.gpus ? std::to_string(*datacenter.gpus) : "-"});
    }
  }
  return table.text();
}

/// Contents of each stage, and the cost of one microbatch there.
std::string stage_table(const Scenario& scenario) {
  const Costs& costs = scenario.costs;
  Table table{{{"stage"},
               {"in", Align::left},
               {"speed"},
               {"layers"},
               {"F"},
               {"B"},
               {"D"},
               {"W"},
               {"R"},
               {"activation"},
               {"message"}}};
  for (const DeviceId stage : scenario.device_ids()) {
    const auto s = index(stage);
    table.add_row({std::to_string(number(stage)), home_of(scenario, stage),
                   fmt::format("{:g}", scenario.speed_of_stage(stage)),
                   scenario.layers.empty() ? "-" : std::to_string(scenario.layers[s]),
                   to_text(costs.forward[s]), to_text(costs.backward[s]), to_text(costs.dgrad[s]),
                   to_text(costs.wgrad[s]), to_text(costs.recompute[s]),
                   to_text(costs.activation[s]), to_text(costs.message[s])});
  }
  return '\n' + table.text();
}

std::string fit_table(const std::vector<schedule::DeviceNeed>& devices, const Scenario& scenario) {
  Table table{{{"device"},
               {"in", Align::left},
               {"weights"},
               {"gradients"},
               {"optimizer"},
               {"activations"},
               {"buffers"},
               {"total"},
               {"capacity"},
               {"fits", Align::left}}};
  for (const schedule::DeviceNeed& device : devices) {
    table.add_row({std::to_string(number(device.device)), home_of(scenario, device.device),
                   to_text(device.weights), to_text(device.gradients), to_text(device.optimizer),
                   to_text(device.activations), to_text(device.buffers), to_text(device.total()),
                   device.capacity ? to_text(*device.capacity) : "not given",
                   !device.capacity ? "-"
                   : device.fits()  ? "yes"
                                    : "NO"});
  }
  return '\n' + table.text();
}

ordered_json fit_json(const std::vector<schedule::DeviceNeed>& devices) {
  ordered_json json = ordered_json::array();
  for (const schedule::DeviceNeed& device : devices) {
    json.push_back({{"device", device.device},
                    {"weights_bytes", device.weights.count()},
                    {"gradients_bytes", device.gradients.count()},
                    {"optimizer_bytes", device.optimizer.count()},
                    {"activations_bytes", device.activations.count()},
                    {"buffers_bytes", device.buffers.count()},
                    {"total_bytes", device.total().count()},
                    {"capacity_bytes", device.capacity ? ordered_json(device.capacity->count())
                                                       : ordered_json(nullptr)},
                    {"fits", device.fits()}});
  }
  return json;
}

ordered_json stages_json(const Scenario& scenario) {
  const Costs& costs = scenario.costs;
  ordered_json json = ordered_json::array();
  for (const DeviceId stage : scenario.device_ids()) {
    const auto s = index(stage);
    json.push_back({{"stage", stage},
                    {"speed", scenario.speed_of_stage(stage)},
                    {"layers", scenario.layers.empty() ? ordered_json(nullptr)
                                                       : ordered_json(scenario.layers[s])},
                    {"forward_ns", costs.forward[s].count()},
                    {"backward_ns", costs.backward[s].count()},
                    {"dgrad_ns", costs.dgrad[s].count()},
                    {"wgrad_ns", costs.wgrad[s].count()},
                    {"recompute_ns", costs.recompute[s].count()},
                    {"activation_bytes", costs.activation[s].count()},
                    {"message_bytes", costs.message[s].count()}});
  }
  return json;
}

ordered_json placement_json(const Scenario& scenario) {
  ordered_json json = ordered_json::array();
  for (const DatacenterId datacenter : scenario.placement)
    json.push_back(datacenter_name(scenario, datacenter));
  return json;
}

/// What stage_table() leaves out of replicas that differ.
std::string replicas_text(const Scenario& scenario) {
  if (!scenario.has_uneven_replicas()) return {};
  std::string text = "\nReplicas differ";
  if (!scenario.replica_costs.empty()) text += "; costs above are the largest of each";
  text += ":";
  for (const ReplicaId replica : scenario.replica_ids())
    text += fmt::format("\n  replica {}: {}, F {}", replica,
                        report::counted(scenario.microbatches_of(replica), "microbatch"),
                        to_text(*std::ranges::max_element(scenario.costs_of(replica).forward)));
  return text + "\n";
}

/// Of replicas that differ.
ordered_json replicas_json(const Scenario& scenario) {
  ordered_json json = ordered_json::array();
  for (const ReplicaId replica : scenario.replica_ids()) {
    ordered_json forward = ordered_json::array();
    for (const Duration time : scenario.costs_of(replica).forward) forward.push_back(time.count());
    json.push_back(
        {{"microbatches", scenario.microbatches_of(replica)}, {"forward_ns", std::move(forward)}});
  }
  return json;
}

/// Proves the collectives of the plan that the schedule becomes.
void check_collectives(const Schedule& schedule, const Scenario& scenario, Finding& finding) {
  if (planner::grain_of(schedule, scenario) == planner::Grain::whole) {
    finding.details += fmt::format(
        "\nthe collectives of {} are not proven: as messages they are more than {} ops\n",
        schedule.name, planner::kMostOpsInSteps);
    finding.json["collectives"] = {{"proven", nullptr}};
    return;
  }
  const Result<Plan> plan = plan::try_lower(schedule, scenario);
  if (!plan) {
    finding.problems.push_back(plan.refusal().reason);
    return;
  }
  std::size_t messages = 0;
  for (const SteppedCollective& each : plan->stepped) messages += each.sends.size();
  const std::optional<Refusal> why = plan::why_collectives_wrong(*plan);
  finding.json["collectives"] = {
      {"count", plan->stepped.size()}, {"messages", messages}, {"proven", !why}};
  if (why) finding.problems.push_back(why->reason);
  if (plan->stepped.empty() || why) return;
  finding.details +=
      fmt::format("\n{} of {} in {}: proven, each member ends with each contribution once\n",
                  report::counted(std::ssize(plan->stepped), "collective"), schedule.name,
                  report::counted(static_cast<std::int64_t>(messages), "message"));
}

}  // namespace

Finding check_scenario(const std::string& file, const Options& options) {
  const Scenario scenario = scenario::load_scenario(file, options.overrides);
  const std::string reference = options.schedule.empty() ? kReferenceSchedule : options.schedule;
  const Schedule schedule =
      planner::choose_schedule(planner::parse_single_schedule_option(reference), scenario,
                               planner_options_of(options))
          .schedule;
  const std::vector<schedule::DeviceNeed> devices = schedule::device_memory(schedule, scenario);
  Finding finding{file, "scenario", {}, {}, {}, {}};
  finding.summary =
      fmt::format("scenario {}: {}, {}, model {}", scenario.name, report::size_text(scenario),
                  report::counted(std::ssize(scenario.datacenters), "datacenter"),
                  scenario.model ? scenario.model->name : "not named (costs are given)");
  for (const schedule::DeviceNeed& device : devices) {
    if (device.fits()) continue;
    finding.problems.push_back(
        fmt::format("device {} does not fit: {} are needed and it has {} ({} too little)",
                    device.device, to_text(device.total()), to_text(*device.capacity),
                    to_text(device.total() - *device.capacity)));
  }
  finding.details = placement_table(scenario) + report::site_table(scenario) +
                    stage_table(scenario) + replicas_text(scenario) + report::link_table(scenario) +
                    report::overlap_text(scenario, Granularity::operators) +
                    fmt::format("\nMemory of each device under {}:", schedule.name) +
                    fit_table(devices, scenario);
  finding.json["scenario"] = scenario.name;
  finding.json["datacenters"] = report::sites_json(scenario);
  finding.json["placement"] = placement_json(scenario);
  finding.json["stages"] = stages_json(scenario);
  if (scenario.has_uneven_replicas()) finding.json["replicas"] = replicas_json(scenario);
  if (scenario.parallel.tensor > 1) finding.json["tensor"] = scenario.parallel.tensor;
  if (scenario.parallel.shard > 1) finding.json["shard"] = scenario.parallel.shard;
  finding.json["links"] = report::links_json(scenario);
  if (scenario.overlap.largest() > 1)
    finding.json["overlap_slowdown"] = report::overlap_json(scenario);
  finding.json["schedule"] = schedule.name;
  finding.json["memory"] = fit_json(devices);
  check_collectives(schedule, scenario, finding);
  return finding;
}

}  // namespace longhaul::cli
