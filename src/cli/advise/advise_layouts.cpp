#include <fmt/format.h>

#include "base/program/option_values.hpp"
#include "cli/advise/advised.hpp"
#include "cli/plan/layout_plan.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using planner::AdvisedLayout;
using planner::LayoutProblem;

/// Plans that use no idea whose bubbles are filled.
constexpr std::size_t kFilledWithoutIdeas = 8;
constexpr int kBytesOfWeight = 2;  // of layouts' plans: bf16, without a [model]

std::string layout_words(const LayoutProblem& problem, const planner::Layout& layout) {
  std::string words = fmt::format("({}, {}, {}), b {}", layout.tensor, layout.data, layout.pipeline,
                                  layout.micro_batch);
  if (layout.recompute != RecomputeKind::none)
    words += fmt::format(", recompute {}", to_string(layout.recompute));
  if (layout.sharding != profile::ShardingKind::none)
    words += fmt::format(", {}", to_string(layout.sharding));
  if (problem.sites.size() > 1) words += "; " + placement_text(problem, layout);
  return words;
}

nlohmann::ordered_json layout_json_of(const LayoutProblem& problem,
                                      const planner::LayoutPlan& plan) {
  const planner::Layout& layout = plan.layout;
  return {{"tensor", layout.tensor},
          {"data", layout.data},
          {"pipeline", layout.pipeline},
          {"micro_batch", layout.micro_batch},
          {"chunks", layout.chunks},
          {"recompute", to_string(layout.recompute)},
          {"sharding", to_string(layout.sharding)},
          {"gpus", layout.gpus()},
          {"placement", placement_json(problem, layout)}};
}

double tokens_of(const LayoutProblem& problem) {
  return static_cast<double>(problem.model.global_batch) * problem.model.sequence;
}

PlanFacts facts_of(const LayoutProblem& problem, const AdvisedLayout& layout, double price,
                   const Options& options) {
  const planner::LayoutPlan& plan = layout.layout;
  PlanFacts facts;
  facts.scenario = options.files.front();
  facts.layout = layout_words(problem, plan.layout);
  facts.layout_json = layout_json_of(problem, plan);
  facts.gpus = plan.layout.gpus();
  facts.tokens_per_iteration = tokens_of(problem);
  facts.dollars_per_hour = plan.priced_gpus * price;
  const double time = static_cast<double>(plan.iteration.count());
  facts.interval = std::pair{static_cast<double>(plan.low.count()) / time,
                             static_cast<double>(plan.high.count()) / time};
  return facts;
}

void add_intervals_to(const LayoutProblem& problem, std::vector<AdvisedLayout>& layouts) {
  std::vector<planner::LayoutPlan> plans;
  for (const AdvisedLayout& each : layouts) plans.push_back(each.layout);
  add_intervals(problem, plans);
  for (std::size_t i = 0; i < plans.size(); ++i) layouts[i].layout = plans[i];
}

/// What was asked, in JSON and in words.
void put_header(Advised& advised, const Options& options, const Scenario& scenario,
                const LayoutProblem& problem) {
  advised.header = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  advised.header["scenario"] = scenario.name;
  advised.header["model"] = problem.model.model;
  advised.header["machine"] = problem.machine->name;
  advised.header["global_batch"] = problem.model.global_batch;
  advised.head = fmt::format("{} on {}: global batch {}", problem.model.model,
                             problem.machine->name, problem.model.global_batch);
}

/// Nanodollars of a ns that computes the prompts of the load, one after the other.
double worth_of_idle(const Scenario& scenario, const PrefillInput& prompts) {
  double tokens = 0, time = 0;
  for (const prefill::Request& request : prompts.requests)
    if (const auto takes = scenario.served.front().time(request.tokens)) {
      tokens += static_cast<double>(request.tokens);
      time += static_cast<double>(takes->count());
    }
  constexpr double kNanodollars = 1e9;
  return time > 0 ? tokens / time * *prompts.price / 1e6 * kNanodollars : 0;
}

/// Of an open layout: prompts wait without end, each copy of a plan's ranks has its own.
PrefillInput fill_layouts(const Options& options, const Scenario& scenario,
                          planner::LayoutAdviceOptions& layouts) {
  PrefillInput prompts = prompts_of(options, scenario);
  if (!prompts.backlog)
    fail(
        "--objective value without --backlog: {} has no stages (a plan's GPUs compute prompts of "
        "their own, so that each needs a queue). Write --backlog 512.",
        options.files.front());
  for (const ServedModel& served : scenario.served)
    if (served.stages > 1)
      fail(
          "--objective value: prefill.stages = {} of {} takes {} DP-cells, and a plan's ranks are "
          "of one. Write 1, or add parallel.stages.",
          served.stages, options.files.front(), served.stages);
  for (const ServedModel& served : scenario.served)
    if (served.decode)
      fail(
          "--objective value: prefill.decode of {} names ranks that no layout has yet. Leave it "
          "out, or add parallel.stages.",
          options.files.front());
  layouts.goal = planner::AdviceGoal::cost;
  layouts.appended = carried_text(scenario);
  layouts.idle_nanodollars = worth_of_idle(scenario, prompts);
  for (const std::string& each : options.overrides)
    if (each.starts_with("prefill.") || each.starts_with("run.")) layouts.overrides.push_back(each);
  return prompts;
}

/// A plan's ranks stand for all of its GPUs.
FilledPlace place_in(const AdvisedLayout& layout, double price) {
  return {layout.scenario,
          static_cast<double>(layout.layout.layout.gpus()) / layout.scenario.training_ranks(),
          layout.layout.priced_gpus * price};
}

}  // namespace

Advised advised_of_layouts(const Options& options, planner::AdviceOptions how,
                           const TrainingTerms& terms) {
  const SearchedScenario searched =
      searched_scenario(options.files.front(), overrides_with_leavers(options));
  const Scenario& scenario = searched.scenario;
  const LayoutTexts texts{options.layout, "", searched.texts};
  const std::string machine = texts.get(
      "machine", std::string{scenario.model ? planner::usual_machine(*scenario.model) : "selene"});
  LayoutProblem problem =
      planner::layout_problem(scenario, profile::machine_named(machine),
                              layout_calibration(texts.get("calibration", "none")));
  set_limits(texts, options.layout, problem);
  const planner::LayoutSpace space = layout_space(texts, problem);
  require_few_points(problem, space);
  planner::LayoutAdviceOptions layouts;
  if (!options.advise.objective.empty())
    layouts.goal = choice<planner::AdviceGoal>("--objective", options.advise.objective);
  std::optional<PrefillInput> prompts;
  if (layouts.goal == planner::AdviceGoal::value)
    prompts = fill_layouts(options, scenario, layouts);
  layouts.dollars_per_gpu_hour = set_prices(scenario, "", problem);
  layouts.longest_on = [&](std::int64_t gpus) {
    return longest_iteration(terms, tokens_of(problem), gpus);
  };
  layouts.searches = std::move(how);
  layouts.searches.keeps_all = prompts.has_value();
  layouts.searches.methods = methods_of(options, scenario);
  if (layouts.searches.methods) layouts.searches.methods->bytes_of_weight = kBytesOfWeight;
  layouts.searches.longest = layouts.longest_on(1);
  planner::LayoutAdvice found = planner::advise_layouts(problem, space, layouts).or_throw();
  add_intervals_to(problem, found.layouts);
  Advised advised;
  advised.advice =
      prompts ? filled_advice(found.advice,
                              [&](const planner::AdvisedPlan& plan) {
                                return place_in(found.layouts[to_size(plan.scenario)],
                                                layouts.dollars_per_gpu_hour);
                              },
                              {*prompts, kFilledWithoutIdeas, {}, layouts.searches.stopped})
              : std::move(found.advice);
  for (std::size_t i = 0; i < advised.advice.plans.size(); ++i) {
    const AdvisedLayout& layout =
        found.layouts[static_cast<std::size_t>(advised.advice.plans[i].scenario)];
    PlanFacts facts = facts_of(problem, layout, layouts.dollars_per_gpu_hour, options);
    facts.set = layouts.overrides;
    facts.memory = memory_of(advised.advice.plans[i], layout.scenario);
    advised.facts.push_back(
        with_method(std::move(facts), advised.advice.plans[i], layouts.searches.methods));
    advised.scenarios.push_back(layout.text);
  }
  put_header(advised, options, scenario, problem);
  advised.goal = prompts ? planner::AdviceGoal::value : layouts.goal;
  advised.methods = layouts.searches.methods;
  if (!prompts) advised.bound = found.bound;
  advised.bound_reason =
      "every layout of the space on its best links: no turns, orders or overlaps take less";
  advised.points = found.points;
  advised.pruned = found.pruned;
  return advised;
}

}  // namespace longhaul::cli
