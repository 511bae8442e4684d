#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command/commands.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/advice/failures.hpp"
#include "planner/advice/layout_advice.hpp"

namespace longhaul::cli {

/// What is trained in all, and what the time is worth; --tokens, --deadline, --mtbf, --checkpoint.
struct TrainingTerms {
  std::optional<double> tokens;
  std::optional<double> deadline_days;
  planner::Failures failures;
};

/// What a plan says beside its schedule.
struct PlanFacts {
  std::string scenario;            ///< that simulates it: file
  std::vector<std::string> set{};  ///< values of --set that it has, the user's too
  std::string layout{};            ///< in words; empty: the scenario's
  nlohmann::ordered_json layout_json{};
  std::int64_t gpus = 0;
  std::optional<double> tokens_per_iteration{};
  std::optional<double> dollars_per_hour{};  ///< of its GPUs
  double egress_dollars = 0;                 ///< of an iteration, beside them
  nlohmann::ordered_json place_json{};       ///< of given stages whose places were searched
  std::string placed{};                      ///< the same in words
  int parts = 1;                             ///< replicas of which its score is one's
  std::optional<std::pair<double, double>> interval{};  ///< 90% of measured over predicted times
  Bytes memory;
};

/// An answer before it is worded.
struct Advised {
  planner::Advice advice;
  std::vector<PlanFacts> facts;          ///< of each plan
  std::vector<std::string> scenarios{};  ///< of each plan, as text to be written; none: the file's
  nlohmann::ordered_json header{};
  std::string head{};       ///< "NAME: 8 ranks"
  bool has_places = false;  ///< the places of its stages were searched
  planner::AdviceGoal goal = planner::AdviceGoal::time;
  std::optional<planner::Score> bound{};              ///< of all plans
  std::string bound_reason{};                         ///< why none is below it
  std::optional<planner::TrainingMethods> methods{};  ///< that were allowed
  std::optional<std::int64_t> points{}, pruned{};
};

/// Name of a plan's file in --out: "plan-1.csv".
[[nodiscard]] std::string plan_file(std::size_t plan, const char* ending);
/// The scenario has its stages: placed or not.
[[nodiscard]] Advised advised_of_stages(const Options& options, planner::AdviceOptions how,
                                        const TrainingTerms& terms);
/// The scenario has its stages, and places for them are looked for.
[[nodiscard]] Advised advised_of_sites(const Options& options, planner::AdviceOptions how,
                                       const TrainingTerms& terms);
/// --objective.
[[nodiscard]] planner::AdviceGoal goal_of(const Options& options);
/// What a plan of a placed scenario says, but for its memory.
[[nodiscard]] PlanFacts facts_of_stages(const std::string& file, const Scenario& scenario,
                                        std::vector<std::string> set);
/// Of an iteration: activations and gradients of them that leave datacenters at their prices, once
/// over each border between neighbouring stages, whatever the schedule. Not in it: sums between
/// replicas, more borders of interleaved chunks, messages of tensor ranks.
[[nodiscard]] double egress_dollars_of(const Scenario& scenario);
/// The most of a device: under its overlap, should it have one.
[[nodiscard]] Bytes memory_of(const planner::AdvisedPlan& plan, const Scenario& scenario);
/// Whose bubbles are filled: those of a plan's scenario, of which there are `copies` that compute
/// prompts of their own.
struct FilledPlace {
  const Scenario& scenario;
  double copies = 1;
  double dollars_per_hour = 0;        ///< of all copies
  double egress_dollars = 0;          ///< of an iteration
  double parts = 1;                   ///< what is compared is one of so many
  std::optional<Duration> longest{};  ///< plans that take longer are none
};
/// How bubbles of plans are filled.
struct Filling {
  const PrefillInput& input;
  std::size_t most = 0;  ///< plans without any idea that are filled, the best
  /// Of `prefill --schedule best --objective value`, where the best plan is, with prompts and
  /// without: what it finds, and what it chose from. `time`: of all; nothing: there is no search.
  std::optional<planner::SearchOptions> by_worth{};
  std::function<bool()> stopped{};  ///< asked between plans; empty: never
};
/// --objective value: plans by what an iteration costs less what prompts earn in it, each with
/// bubbles that are filled (--requests, --backlog, --prefill-price) and without.
[[nodiscard]] planner::Advice filled_advice(
    const planner::Advice& advice,
    const std::function<FilledPlace(const planner::AdvisedPlan&)>& place, const Filling& filling);
/// The search by worth within a budget, of which `how` keeps the other half.
[[nodiscard]] planner::SearchOptions search_by_worth(planner::AdviceOptions& how);
/// Of GPUs without a price each costs kAssumedGpuHour.
[[nodiscard]] FilledPlace place_of_stages(const Scenario& scenario);
/// [prefill] and [run] of a scenario as TOML, with the files that it holds; what plans of layouts
/// take over.
[[nodiscard]] std::string carried_text(const Scenario& scenario);
/// The lines of a scenario's text that hold files.
[[nodiscard]] std::string held_lines(const std::string& text);
/// A scenario as TOML that needs no other file and no --set: `text`, or where that is empty the
/// file `source`, with `set` written in. `title` is the comment on top.
[[nodiscard]] std::string plan_text(const std::string& source, const std::string& text,
                                    const std::vector<std::string>& set, const std::string& title);
/// The prompts that these options name. Throws Error where one is missing.
[[nodiscard]] PrefillInput prompts_of(const Options& options, const Scenario& scenario);
/// Those of --allow, --curves and --target; nothing: exact sums alone. Throws Error where one is
/// missing or has no effect.
[[nodiscard]] std::optional<planner::TrainingMethods> methods_of(const Options& options,
                                                                 const Scenario& scenario);
/// With the values of --set by which the plan's scenario, which has these `costs`, is trained by
/// its method, should it have one.
[[nodiscard]] PlanFacts with_method(PlanFacts facts, const planner::AdvisedPlan& plan,
                                    const std::optional<planner::TrainingMethods>& methods,
                                    const PartCosts& costs = {});
/// The scenario has no stages.
[[nodiscard]] Advised advised_of_layouts(const Options& options, planner::AdviceOptions how,
                                         const TrainingTerms& terms);
/// Iterations that take longer on so many GPUs end after the deadline; nothing: there is none.
[[nodiscard]] std::optional<Duration> longest_iteration(const TrainingTerms& terms,
                                                        std::optional<double> tokens_per_iteration,
                                                        std::int64_t gpus);
/// --set that leaves out the datacenters of --without.
[[nodiscard]] std::vector<std::string> overrides_with_leavers(const Options& options);

[[nodiscard]] nlohmann::ordered_json advice_json(const Advised& advised, const Options& options,
                                                 const TrainingTerms& terms);
[[nodiscard]] std::string advice_text(const Advised& advised, const Options& options,
                                      const TrainingTerms& terms);

}  // namespace longhaul::cli
