#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/program/arguments.hpp"
#include "base/suggest.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/prefill/simulated_bubbles.hpp"
#include "plan/rows.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/collectives/grain.hpp"
#include "prefill/accounts/training_state.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "sim/simulate.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPcie = "64GB/s";  // BubbleTea, section 5

ordered_json or_null(std::int64_t op) { return op < 0 ? ordered_json{} : ordered_json(op); }

/// Of --weights swap; empty: weights stay in memory.
std::vector<prefill::WeightSwap> swaps_of(const SimulatedBubbles& bubbles, const Scenario& scenario,
                                          const PrefillArguments& typed) {
  if (typed.weights.empty()) return {};
  return prefill::swapped_weights(bubbles.iteration, scenario,
                                  prefill::served_models(scenario, bubbles.cell, bubbles.iteration),
                                  parse_bandwidth(typed.pcie.empty() ? kPcie : typed.pcie));
}

void check_swap(const PrefillArguments& typed) {
  if (!typed.weights.empty() && typed.weights != "swap")
    fail("--weights: there is no \"{}\". {}", typed.weights,
         suggestion(typed.weights, std::vector<std::string>{"swap"}));
  if (typed.weights.empty() && !typed.pcie.empty())
    fail("--pcie: it has no effect without --weights swap. Add that, or leave it out.");
}

ordered_json swaps_json(const std::vector<prefill::WeightSwap>& swaps) {
  ordered_json json = ordered_json::array();
  for (const prefill::WeightSwap& each : swaps)
    json.push_back({{"model", each.model},
                    {"load_ns", each.load.count()},
                    {"restore_ns", each.restore.count()},
                    {"bubbles", each.bubbles},
                    {"usable_bubbles", each.usable},
                    {"idle_ns", each.idle.count()},
                    {"left_ns", each.left.count()}});
  return json;
}

std::string swaps_text(const std::string& schedule, const std::vector<prefill::WeightSwap>& swaps) {
  std::string text;
  for (const prefill::WeightSwap& each : swaps)
    text += fmt::format(
        "\n{}: {} swapped in ({}) and training's weights back ({}) leave {} of {} in {} of {} "
        "bubbles\n",
        schedule, each.model, to_text(each.load), to_text(each.restore), to_text(each.left),
        to_text(each.idle), each.usable, each.bubbles);
  return text;
}

}  // namespace

SimulatedBubbles bubbles_of(const Schedule& schedule, const Scenario& scenario,
                            Arrangement arrangement) {
  return try_bubbles_of(schedule, scenario, arrangement).or_throw();
}

Result<SimulatedBubbles> try_bubbles_of(const Schedule& schedule, const Scenario& scenario,
                                        Arrangement arrangement) {
  Result<planner::ReportedPlan> reported =
      planner::try_lower_reported(schedule, scenario, arrangement);
  if (!reported) return reported.refusal();
  Plan plan = std::move(reported->plan);
  Result<OpTimes> times = sim::try_simulate(plan);
  if (!times) return times.refusal();
  Timeline timeline;
  plan::append_rows(timeline, plan, *times, 0);
  const int cell = scenario.parallel.cell.value_or(plan.cell);
  return SimulatedBubbles{schedule, prefill::find_bubbles(timeline.rows, scenario.training_ranks()),
                          cell, std::move(plan), *std::move(times)};
}

void add_swap_options(Arguments& command, PrefillArguments& arguments) {
  command.option("--weights", arguments.weights,
                 "swap: what loading the served model and training by turns would leave");
  command.option("--pcie", arguments.pcie, "rate of these loads (default 64GB/s)");
}

std::vector<SimulatedBubbles> simulated_bubbles(const Options& options, const Scenario& scenario) {
  const planner::PlannerOptions planner = planner_options_of(options);
  const planner::ChosenSchedules chosen =
      planner::ScheduleChooser{planner::parse_schedule_option(options.schedule), scenario, planner}
          .choose();
  std::vector<SimulatedBubbles> all;
  for (const planner::ScheduleResult& made : chosen.schedules)
    all.push_back(bubbles_of(made.schedule, scenario, planner.search.arrangement));
  return all;
}

ordered_json bubbles_json(const SimulatedBubbles& bubbles) {
  ordered_json json{{"schedule", bubbles.schedule.name},
                    {"period_ns", bubbles.iteration.period.count()},
                    {"busy_ratio", bubbles.iteration.busy_ratio()},
                    {"bubbles", ordered_json::array()},
                    {"idle_ns_by_length", ordered_json::array()}};
  for (const prefill::Bubble& bubble : bubbles.iteration.bubbles)
    json["bubbles"].push_back({{"rank", bubble.rank},
                               {"start_ns", bubble.start.count()},
                               {"end_ns", bubble.end.count()},
                               {"after_op", or_null(bubble.after_op)},
                               {"before_op", or_null(bubble.before_op)}});
  for (const prefill::LengthClass& length : prefill::idle_by_length(bubbles.iteration))
    json["idle_ns_by_length"].push_back(
        {{"below_ns",
          length.below == Duration::max() ? ordered_json{} : ordered_json(length.below.count())},
         {"bubbles", length.bubbles},
         {"idle_ns", length.idle.count()}});
  return json;
}

std::string bubbles_text(const std::vector<SimulatedBubbles>& all, TableWidth width) {
  Table table{{{"schedule", Align::left},
               {"period"},
               {"busy"},
               {"bubbles"},
               {"idle a GPU"},
               {"longest bubble"}}};
  for (const SimulatedBubbles& each : all) {
    Duration idle{}, longest{};
    for (const prefill::Bubble& bubble : each.iteration.bubbles) {
      idle += bubble.length();
      longest = std::max(longest, bubble.length());
    }
    table.add_row({each.schedule.name, to_text(each.iteration.period),
                   report::percent_text(each.iteration.busy_ratio()) + "%",
                   std::to_string(each.iteration.bubbles.size()),
                   to_text(idle / std::max(1, each.iteration.gpus)), to_text(longest)});
  }
  std::string text = table.text(width);
  for (const SimulatedBubbles& each : all) {
    text += fmt::format("\n{}: idle time by the length of its bubbles\n", each.schedule.name);
    Table lengths{{{"shorter than"}, {"bubbles"}, {"idle"}}};
    for (const prefill::LengthClass& length : prefill::idle_by_length(each.iteration))
      lengths.add_row({length.below == Duration::max() ? "-" : to_text(length.below),
                       std::to_string(length.bubbles), to_text(length.idle)});
    text += lengths.text(width);
  }
  return text;
}

Answer bubbles_command(const Options& options) {
  check_swap(options.prefill);
  if (!options.trace.empty() && !options.prefill.weights.empty())
    fail("--weights: it is of a scenario's bubbles. Leave --trace out.");
  if (!options.trace.empty()) return measured_bubbles_command(options);
  if (options.files.empty())
    fail("bubbles: a file is missing. Name a scenario (.toml), or a trace with --trace.");
  const Scenario scenario = scenario_of(options);
  const std::vector<SimulatedBubbles> all = simulated_bubbles(options, scenario);
  std::string swaps;
  ordered_json json = options.json ? record_header(options, scenario) : ordered_json{};
  json["schedules"] = ordered_json::array();
  for (const SimulatedBubbles& each : all) {
    const auto swapped = swaps_of(each, scenario, options.prefill);
    swaps += swaps_text(each.schedule.name, swapped);
    json["schedules"].push_back(bubbles_json(each));
    if (!swapped.empty()) json["schedules"].back()["swap"] = swaps_json(swapped);
  }
  if (!options.json)
    return {fmt::format("{}: {}; simulated, {}\n\n", scenario.name, report::size_text(scenario),
                        options.comm) +
            bubbles_text(all, table_width(options)) + swaps + report::ignored_text(scenario)};
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
