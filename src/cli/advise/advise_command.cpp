#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/program/option_values.hpp"
#include "base/program/program.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/command/stop_signal.hpp"
#include "cli/plan/plan.hpp"
#include "planner/advice/advice.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "report/planning.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/memory.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::AdvisedPlan;
using planner::Idea;

/// A placed scenario, and what placed it: values of --set, none where its file does.
struct PlacedScenario {
  Scenario scenario;
  std::vector<std::string> set;
  std::string placed;  ///< in words; empty: its file does
};

/// "datacenter.west.stages=\"0-3\"" for each datacenter of the layout, replicas and cells.
std::vector<std::string> overrides_of(const planner::GpuInventory& inventory,
                                      const planner::SiteLayout& layout) {
  std::vector<std::string> set;
  int first = 0;
  for (const planner::DatacenterStages& share : layout.placement) {
    set.push_back(fmt::format("datacenter.{}.stages=\"{}-{}\"", inventory.name(share.datacenter),
                              first, first + share.stages - 1));
    first += share.stages;
  }
  set.push_back(fmt::format("parallel.replicas={}", layout.replicas()));
  set.push_back(fmt::format("parallel.cell={}", layout.pipelines));
  return set;
}

PlacedScenario placed_scenario_of(const Options& options) {
  const std::string& file = options.files.front();
  const Scenario open =
      scenario::load_scenario(file, options.overrides, scenario::Placing::optional);
  if (!open.placement.empty()) return {scenario_of(options), {}, ""};
  const planner::GpuInventory inventory{open};
  PlanOptions plan = plan_options_of({}, "");
  plan.exact = true;
  planner::CellTimes cells{inventory, plan.model, plan.threads};
  const planner::SitePlan best = best_of(inventory, plan, cells);
  PlacedScenario placed;
  placed.set = overrides_of(inventory, best.layout);
  placed.placed = fmt::format(
      "{}, {} of {}: the most iterations a second of one pipeline each, by "
      "{} (longhaul plan --search exact)",
      planner::to_text(inventory, best.layout.placement),
      report::counted(best.layout.cells, "cell"),
      report::counted(best.layout.pipelines, "pipeline"), best.schedule);
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), placed.set.begin(), placed.set.end());
  placed.scenario = scenario::load_scenario(file, overrides);
  return placed;
}

planner::AdviceOptions advice_options_of(const AdviseArguments& typed) {
  if (!typed.budget.empty() && !typed.moves.empty())
    fail(
        "--budget-seconds and --search-moves are both given (one of them ends the search). Leave "
        "one out.");
  planner::AdviceOptions advice;
  if (!typed.budget.empty())
    advice.time = std::chrono::seconds{whole_number("--budget-seconds", typed.budget, 1, 86'400)};
  report::PlannerArguments searches;
  searches.search_moves = typed.moves;
  searches.search_threads = typed.threads;
  const planner::SearchOptions search =
      report::planner_options_of(searches, Arrangement::decoupled).search;
  advice.moves = search.moves;
  advice.threads = search.threads;
  return advice;
}

std::vector<std::string> names_of(const planner::IdeaSet& ideas) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ideas.size(); ++i)
    if (ideas.test(i)) names.emplace_back(planner::to_string(static_cast<Idea>(i)));
  return names;
}

Bytes memory_of(const AdvisedPlan& plan, const Scenario& scenario) {
  Bytes most;
  for (const schedule::DeviceNeed& need : schedule::device_memory(plan.schedule, scenario))
    most = std::max(most, need.total());
  return most;
}

/// $ for a million tokens, of GPUs alone: where each rank's datacenter has a price.
std::optional<double> dollars_per_million_tokens(const Scenario& scenario, Duration makespan) {
  const auto tokens = report::tokens_per_second(scenario, makespan.count());
  if (!tokens) return std::nullopt;
  double dollars_an_hour = 0;
  for (const DatacenterId where : scenario.placement) {
    const auto& price = scenario.datacenters[index(where)].price;
    if (!price) return std::nullopt;
    dollars_an_hour += *price * (scenario.model ? scenario.model->tensor_parallel : 1);
  }
  return dollars_an_hour / 3600 / *tokens * 1e6;
}

std::string file_of(std::size_t plan) { return fmt::format("plan-{}.csv", plan + 1); }

/// The command that says the same of the plan in `directory`.
std::string command_of(const AdvisedPlan& plan, const std::filesystem::path& schedule,
                       const Options& options, const PlacedScenario& placed) {
  std::vector<std::string> words{"simulate", options.files.front()};
  for (const auto* const set : {&options.overrides, &placed.set})
    for (const std::string& each : *set) words.insert(words.end(), {"--set", each});
  words.insert(words.end(), {"--schedule", schedule.string()});
  if (!plan.overlap.empty()) words.insert(words.end(), {"--overlap", plan.overlap});
  return report::shell_text("longhaul", words);
}

ordered_json json_of(const AdvisedPlan& plan, std::size_t number, const Options& options,
                     const PlacedScenario& placed) {
  const Scenario& scenario = placed.scenario;
  const auto number_or_null = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json{};
  };
  const bool is_bound = plan.bound.lower_bound > Duration::zero();
  ordered_json json{{"scenario", options.files.front()}, {"set", placed.set}};
  json["schedule"] = options.out.empty()
                         ? plan.schedule.name
                         : (std::filesystem::path{options.out} / file_of(number)).string();
  json["made_by"] = plan.schedule.name;
  json["overlap"] = plan.overlap.empty() ? ordered_json{} : ordered_json(plan.overlap);
  json["iteration_ns"] = plan.makespan.count();
  json["tokens_per_second"] =
      number_or_null(report::tokens_per_second(scenario, plan.makespan.count()));
  json["dollars_per_million_tokens"] =
      number_or_null(dollars_per_million_tokens(scenario, plan.makespan));
  json["bound_ns"] = is_bound ? ordered_json(plan.bound.lower_bound.count()) : ordered_json{};
  json["gap"] = is_bound ? ordered_json(planner::gap(plan.makespan, plan.bound)) : ordered_json{};
  json["memory_bytes"] = memory_of(plan, scenario).count();
  json["ideas"] = names_of(plan.ideas);
  return json;
}

ordered_json json_of(const planner::Advice& advice, const Options& options,
                     const PlacedScenario& placed) {
  ordered_json json = record_header(options, placed.scenario);
  json["placed"] = placed.placed.empty() ? ordered_json{} : ordered_json(placed.placed);
  json["plans"] = ordered_json::array();
  for (std::size_t i = 0; i < advice.plans.size(); ++i)
    json["plans"].push_back(json_of(advice.plans[i], i, options, placed));
  json["baseline_ns"] = advice.baseline ? ordered_json(advice.baseline->count()) : ordered_json{};
  json["waterfall"] = ordered_json::array();
  for (const planner::IdeaValue& each : advice.waterfall)
    json["waterfall"].push_back({{"idea", planner::to_string(each.idea)},
                                 {"alone_ns", each.alone.count()},
                                 {"added_ns", each.added.count()},
                                 {"removed_ns", each.removed.count()}});
  json["not_used"] = ordered_json::array();
  for (const planner::UnusedIdea& each : advice.unused)
    json["not_used"].push_back({{"idea", planner::to_string(each.idea)}, {"reason", each.reason}});
  json["searched"] = advice.evaluated;
  json["stopped"] = advice.is_stopped;
  return json;
}

std::string plans_text(const planner::Advice& advice, const Scenario& scenario, TableWidth width) {
  Table table{{{"plan"},
               {"schedule", Align::left},
               {"overlap", Align::left},
               {"ideas", Align::left, 1},
               {"iteration"},
               {"gap [%]", Align::right, 1},
               {"tokens/s"},
               {"$ per M tokens", Align::right, 1},
               {"memory", Align::right, 2}}};
  for (std::size_t i = 0; i < advice.plans.size(); ++i) {
    const AdvisedPlan& plan = advice.plans[i];
    const auto tokens = report::tokens_per_second(scenario, plan.makespan.count());
    const auto dollars = dollars_per_million_tokens(scenario, plan.makespan);
    const bool is_bound = plan.bound.lower_bound > Duration::zero();
    table.add_row(
        {std::to_string(i + 1), plan.schedule.name, plan.overlap.empty() ? "-" : plan.overlap,
         plan.ideas.none() ? "none" : fmt::format("{}", fmt::join(names_of(plan.ideas), ", ")),
         to_text(plan.makespan),
         is_bound ? report::percent_text(planner::gap(plan.makespan, plan.bound)) : "-",
         tokens ? fmt::format("{:.0f}", *tokens) : "-",
         dollars ? fmt::format("{:.4f}", *dollars) : "-", to_text(memory_of(plan, scenario))});
  }
  return table.text(width);
}

std::string waterfall_text(const planner::Advice& advice, TableWidth width) {
  if (!advice.baseline)
    return "\nNo static schedule fits, so that there is nothing to hold the ideas against.\n";
  Table table{{{"idea", Align::left}, {"alone"}, {"added"}, {"lost without"}}};
  const auto share = [&](Duration gain) {
    return fmt::format(
        "{} ({:.1f}%)", to_text(gain),
        100 * static_cast<double>(gain.count()) / static_cast<double>(advice.baseline->count()));
  };
  for (const planner::IdeaValue& each : advice.waterfall)
    table.add_row(
        {planner::to_string(each.idea), share(each.alone), share(each.added), share(each.removed)});
  return fmt::format(
      "\nWhat each idea brings over the fastest static schedule, {}; what is added "
      "sums up to the whole gain, {}:\n{}",
      to_text(*advice.baseline), share(*advice.baseline - advice.best().makespan),
      table.text(width));
}

std::string text_of(const planner::Advice& advice, const Options& options,
                    const PlacedScenario& placed) {
  std::string text = fmt::format("{}: {}; simulated, decoupled\n", placed.scenario.name,
                                 report::counted(placed.scenario.ranks(), "rank"));
  if (!placed.placed.empty()) text += fmt::format("Placed: {}.\n", placed.placed);
  text += '\n' + plans_text(advice, placed.scenario, table_width(options)) +
          waterfall_text(advice, table_width(options));
  for (const planner::UnusedIdea& each : advice.unused)
    text += fmt::format("Not used: {} ({}).\n", planner::to_string(each.idea), each.reason);
  if (advice.is_stopped) text += "The search was ended before all was tried.\n";
  if (options.out.empty()) return text;
  return text +
         fmt::format("\nThe best again: {}\n",
                     command_of(advice.best(), std::filesystem::path{options.out} / file_of(0),
                                options, placed));
}

void write_all(const planner::Advice& advice, const ordered_json& json,
               const std::filesystem::path& directory) {
  std::error_code problem;
  if (!std::filesystem::create_directory(directory, problem))
    fail("--out {}: it cannot be made ({}). Name a directory that does not exist yet.",
         directory.string(), problem ? problem.message() : "it exists");
  for (std::size_t i = 0; i < advice.plans.size(); ++i)
    report::write_new_file(directory / file_of(i), [&](std::ostream& out) {
      out << schedule::write_csv(advice.plans[i].schedule);
    });
  report::write_new_file(directory / "advice.json",
                         [&](std::ostream& out) { out << report::json_text(json); });
}

/// Until it is done or SIGINT comes.
planner::Advice searched(const Scenario& scenario, planner::AdviceOptions how) {
  const StopSignal signal;
  how.stopped = StopSignal::came;
  Progress progress{"advise", planner::kStepsOfAdvice};
  progress.update(0);
  how.after_step = [&](int done, const AdvisedPlan& best) {
    progress.update(done, fmt::format("{} so far, {}", to_text(best.makespan), best.schedule.name));
  };
  return planner::advise(scenario, how).or_throw();
}

}  // namespace

Answer advise_command(const Options& options) {
  const planner::AdviceOptions how = advice_options_of(options.advise);
  if (!options.out.empty() && std::filesystem::exists(options.out))
    fail("--out {}: it exists. Name a directory that does not exist yet.", options.out);
  const PlacedScenario placed = placed_scenario_of(options);
  const planner::Advice advice = searched(placed.scenario, how);
  const ordered_json json = json_of(advice, options, placed);
  if (!options.out.empty()) write_all(advice, json, options.out);
  if (options.json) return {report::json_text(json)};
  return {text_of(advice, options, placed)};
}

}  // namespace longhaul::cli
