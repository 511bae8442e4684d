#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/advise/advised.hpp"
#include "planner/tune/family_between.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::AdviceGoal;
using planner::AdvisedPlan;
using planner::Score;

constexpr double kSecondsOfDay = 86'400, kSecondsOfHour = 3'600;

std::vector<std::string> names_of(const planner::IdeaSet& ideas) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ideas.size(); ++i)
    if (ideas.test(i)) names.emplace_back(planner::to_string(static_cast<planner::Idea>(i)));
  return names;
}

/// Of a plan under the terms; nothing: not known.
struct PlanFigures {
  std::optional<double> tokens_per_second, dollars_per_million_tokens, days, dollars;
  std::optional<Duration> low, high;
};

/// Of a plan where methods were allowed.
struct LossFigures {
  std::string method;
  std::vector<std::string> neighbours;  ///< measured, where it is between them
  planner::UpdatesToLoss updates;
  double relative_updates = 1;  ///< of those by exact sums
  int local_steps = 1;
};

LossFigures loss_figures_of(const AdvisedPlan& plan, const planner::TrainingMethods& methods) {
  const planner::FamilyMember& member = plan.method ? methods.others[*plan.method] : methods.dense;
  std::vector<std::string> neighbours;
  if (member.between) neighbours = {member.between->lower.method, member.between->upper.method};
  return {member.method, std::move(neighbours), planner::updates_to(member, methods.loss),
          *methods.updates(plan.method) / *methods.updates(), member.local_steps};
}

/// Of so many updates, ns; nothing where the runs did not get there.
std::optional<std::int64_t> time_of_updates(const std::optional<double>& updates,
                                            const AdvisedPlan& plan, int local_steps) {
  if (!updates) return std::nullopt;
  constexpr double kMostNs = 0x1p62;
  const double ns = plan.method ? 1e9 * plan.forecast.seconds_of(*updates, local_steps)
                                : *updates * static_cast<double>(plan.makespan.count());
  return std::llround(std::min(kMostNs, ns));
}

PlanFigures figures_of(const AdvisedPlan& plan, const Advised& advised, const PlanFacts& facts,
                       const TrainingTerms& terms) {
  PlanFigures figures;
  const double seconds = std::chrono::duration<double>(plan.makespan).count();
  const double gets_on = 1 - planner::share_lost(terms.failures, facts.gpus);
  if (facts.interval) {
    figures.low = scaled(plan.makespan, facts.interval->first);
    figures.high = scaled(plan.makespan, facts.interval->second);
  }
  if (!facts.tokens_per_iteration || !(gets_on > 0)) return figures;
  figures.tokens_per_second = *facts.tokens_per_iteration / seconds * gets_on;
  std::optional<double> dollars;  // of an iteration
  if (facts.dollars_per_hour)
    dollars = *facts.dollars_per_hour / kSecondsOfHour * seconds / gets_on + facts.egress_dollars;
  if (dollars) figures.dollars_per_million_tokens = *dollars / *facts.tokens_per_iteration * 1e6;
  if (!terms.tokens) return figures;
  const double more =
      advised.methods ? loss_figures_of(plan, *advised.methods).relative_updates : 1;
  const double iterations = std::ceil(*terms.tokens / *facts.tokens_per_iteration) * more;
  figures.days = iterations * seconds / gets_on / kSecondsOfDay;
  if (dollars) figures.dollars = iterations * *dollars;
  return figures;
}

ordered_json null_or(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

bool has_bound(const AdvisedPlan& plan) { return plan.bound.lower_bound > Duration::zero(); }

std::string schedule_of(const AdvisedPlan& plan, std::size_t number, const Options& options) {
  return options.out.empty()
             ? plan.schedule.name
             : (std::filesystem::path{options.out} / plan_file(number, "csv")).string();
}

ordered_json loss_json(const AdvisedPlan& plan, const Advised& advised) {
  if (!advised.methods) return {};
  const LossFigures figures = loss_figures_of(plan, *advised.methods);
  const auto ns = [&](const std::optional<double>& updates) {
    const std::optional<std::int64_t> time = time_of_updates(updates, plan, figures.local_steps);
    return time ? ordered_json(*time) : ordered_json{};
  };
  return {{"target", advised.methods->loss},
          {"method", figures.method},
          {"composed_of",
           figures.neighbours.empty() ? ordered_json{} : ordered_json(figures.neighbours)},
          {"updates", *figures.updates.median},
          {"time_ns", ns(figures.updates.median)},
          {"least_ns", ns(figures.updates.least)},
          {"most_ns", ns(figures.updates.most)},
          {"alone_ns", plan.method ? ordered_json(plan.alone.count()) : ordered_json{}}};
}

ordered_json json_of(const Advised& advised, std::size_t number, const Options& options,
                     const TrainingTerms& terms) {
  const AdvisedPlan& plan = advised.advice.plans[number];
  const PlanFacts& facts = advised.facts[number];
  const PlanFigures figures = figures_of(plan, advised, facts, terms);
  ordered_json json{{"scenario", facts.scenario}, {"set", facts.set}};
  json["layout"] = facts.layout_json;
  json["place"] = facts.place_json;
  json["schedule"] = schedule_of(plan, number, options);
  json["made_by"] = plan.schedule.name;
  json["overlap"] = plan.overlap.empty() ? ordered_json{} : ordered_json(plan.overlap);
  json["overlap_search"] =
      plan.overlap_evaluations ? ordered_json(*plan.overlap_evaluations) : ordered_json{};
  json["iteration_ns"] = plan.makespan.count();
  json["low_ns"] = figures.low ? ordered_json(figures.low->count()) : ordered_json{};
  json["high_ns"] = figures.high ? ordered_json(figures.high->count()) : ordered_json{};
  json["gpus"] = facts.gpus;
  json["tokens_per_second"] = null_or(figures.tokens_per_second);
  json["dollars_per_million_tokens"] = null_or(figures.dollars_per_million_tokens);
  json["days"] = null_or(figures.days);
  json["dollars"] = null_or(figures.dollars);
  json["share_lost"] = planner::share_lost(terms.failures, facts.gpus);
  json["bound_ns"] =
      has_bound(plan) ? ordered_json(plan.bound.lower_bound.count()) : ordered_json{};
  json["gap"] =
      has_bound(plan) ? ordered_json(planner::gap(plan.makespan, plan.bound)) : ordered_json{};
  json["prefill_tokens"] = null_or(plan.prefill_tokens);
  json["net_dollars"] = advised.goal == AdviceGoal::value
                            ? ordered_json(static_cast<double>(plan.score) * 1e-9 * facts.parts)
                            : ordered_json{};
  json["memory_bytes"] = facts.memory.count();
  json["ideas"] = names_of(plan.ideas);
  json["loss"] = loss_json(plan, advised);
  return json;
}

/// Of keys that hold a Score: "alone_ns".
std::string unit_of(AdviceGoal goal) { return goal == AdviceGoal::time ? "ns" : "nanodollars"; }

std::string score_text(Score score, AdviceGoal goal) {
  if (goal == AdviceGoal::time) return to_text(Duration{score});
  return fmt::format("${:.4g}", static_cast<double>(score) * 1e-9);
}

ordered_json bound_json(const Advised& advised) {
  const AdvisedPlan& best = advised.advice.best();
  if (advised.goal == AdviceGoal::value) return {};
  if (advised.bound)
    return {{unit_of(advised.goal), *advised.bound}, {"reason", advised.bound_reason}};
  if (!has_bound(best)) return {};
  return {{"ns", best.bound.lower_bound.count()}, {"reason", best.bound.reason}};
}

/// Of the best plan over `bound`; nothing: there is none.
std::optional<double> whole_gap(const Advised& advised) {
  if (!advised.bound || *advised.bound <= 0) return std::nullopt;
  return static_cast<double>(advised.advice.best().score) / static_cast<double>(*advised.bound) - 1;
}

std::string plans_text(const Advised& advised, const Options& options, const TrainingTerms& terms) {
  const bool has_layouts = advised.points.has_value();
  std::vector<Table::Column> columns{{"plan"}};
  if (has_layouts)
    columns.insert(columns.end(), {{"(t, d, p)", Align::left}, {"GPUs", Align::right, 1}});
  if (advised.has_places)
    columns.insert(columns.end(), {{"placed", Align::left}, {"GPUs", Align::right, 1}});
  columns.insert(columns.end(), {{"schedule", Align::left},
                                 {"overlap", Align::left},
                                 {"ideas", Align::left, 1},
                                 {"iteration"},
                                 {"gap [%]", Align::right, 1},
                                 {"tokens/s"},
                                 {"$ per M tokens", Align::right, 1},
                                 {"memory", Align::right, 2}});
  const bool has_prompts = advised.goal == AdviceGoal::value;
  if (has_prompts) columns.insert(columns.end(), {{"prompt tokens"}, {"net"}});
  if (advised.methods)
    columns.insert(columns.end(),
                   {{"method", Align::left}, {"updates"}, {"to the loss"}, {"most"}});
  if (terms.tokens) columns.insert(columns.end(), {{"days"}, {"$"}});
  Table table{columns};
  const auto number_text = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string{"-"};
  };
  for (std::size_t i = 0; i < advised.advice.plans.size(); ++i) {
    const AdvisedPlan& plan = advised.advice.plans[i];
    const PlanFacts& facts = advised.facts[i];
    const PlanFigures figures = figures_of(plan, advised, facts, terms);
    std::vector<std::string> row{std::to_string(i + 1)};
    if (has_layouts) row.insert(row.end(), {facts.layout, std::to_string(facts.gpus)});
    if (advised.has_places) row.insert(row.end(), {facts.placed, std::to_string(facts.gpus)});
    row.insert(
        row.end(),
        {plan.schedule.name, plan.overlap.empty() ? "-" : plan.overlap,
         plan.ideas.none() ? "none" : fmt::format("{}", fmt::join(names_of(plan.ideas), ", ")),
         to_text(plan.makespan),
         has_bound(plan) ? report::percent_text(planner::gap(plan.makespan, plan.bound)) : "-",
         number_text(figures.tokens_per_second, "{:.0f}"),
         number_text(figures.dollars_per_million_tokens, "{:.4f}"), to_text(facts.memory)});
    if (has_prompts)
      row.insert(row.end(), {number_text(plan.prefill_tokens, "{:.0f}"),
                             score_text(plan.score * facts.parts, advised.goal)});
    if (advised.methods) {
      const LossFigures loss = loss_figures_of(plan, *advised.methods);
      const auto time = [&](const std::optional<double>& updates) {
        const std::optional<std::int64_t> ns = time_of_updates(updates, plan, loss.local_steps);
        return ns ? to_text(Duration{*ns}) : std::string{"-"};
      };
      row.insert(row.end(), {loss.neighbours.empty() ? loss.method : loss.method + " (composed)",
                             number_text(loss.updates.median, "{:g}"), time(loss.updates.median),
                             time(loss.updates.most)});
    }
    if (terms.tokens)
      row.insert(row.end(),
                 {number_text(figures.days, "{:.2f}"), number_text(figures.dollars, "{:.0f}")});
    table.add_row(row);
  }
  return table.text(table_width(options));
}

/// Iterations of different placements train differently much: shares are compared.
bool is_of_pipeline(const Advised& advised) { return advised.has_places && !advised.methods; }

std::string waterfall_text(const Advised& advised, TableWidth width) {
  const planner::Advice& advice = advised.advice;
  if (!advice.baseline)
    return "\nNothing fits without these ideas, so that there is nothing to hold them against.\n";
  Table table{{{"idea", Align::left}, {"alone"}, {"added"}, {"lost without"}}};
  const auto share = [&](Score gain) {
    if (*advice.baseline <= 0 || gain > *advice.baseline)  // prompts earn more than GPUs cost
      return score_text(gain, advised.goal);
    return fmt::format("{} ({:.1f}%)", score_text(gain, advised.goal),
                       100 * static_cast<double>(gain) / static_cast<double>(*advice.baseline));
  };
  for (const planner::IdeaValue& each : advice.waterfall)
    table.add_row(
        {planner::to_string(each.idea), share(each.alone), share(each.added), share(each.removed)});
  return fmt::format(
      "\nWhat each idea brings over the best plan without any, {}{}{}; what is added sums up to "
      "the "
      "whole gain, {}:\n{}",
      score_text(*advice.baseline, advised.goal),
      is_of_pipeline(advised) ? " of one pipeline (of an iteration, over its replicas)" : "",
      advised.methods ? fmt::format(" to a loss of {:g}", advised.methods->loss) : std::string{},
      share(*advice.baseline - advice.best().score), table.text(width));
}

/// Ideas that bring nothing, and methods that no plan can train by.
std::vector<planner::UnusedIdea> unused_of(const Advised& advised) {
  std::vector<planner::UnusedIdea> unused = advised.advice.unused;
  if (!advised.methods) return unused;
  for (const auto& [method, reason] : advised.methods->left_out)
    unused.push_back({planner::Idea::method, fmt::format("{}: {}", method, reason)});
  return unused;
}

/// Plans of which days and dollars have no end.
std::string stuck_text(const Advised& advised, const TrainingTerms& terms) {
  std::vector<std::size_t> stuck;
  for (std::size_t i = 0; i < advised.facts.size(); ++i)
    if (planner::share_lost(terms.failures, advised.facts[i].gpus) >= 1) stuck.push_back(i + 1);
  if (stuck.empty()) return {};
  return fmt::format(
      "Training never gets on with plan {}: of its GPUs one fails within the time of two "
      "checkpoints (--mtbf, --checkpoint).\n",
      fmt::join(stuck, ", "));
}

/// The command that plays the best plan again: updates with an exchange, and bubbles with prompts.
std::string command_of(const Advised& advised, const Options& options) {
  const PlanFacts& facts = advised.facts.front();
  const AdvisedPlan& best = advised.advice.best();
  const bool has_prompts = best.prefill_tokens.has_value();
  std::vector<std::string> words{has_prompts ? "prefill" : "simulate", facts.scenario};
  words.insert(words.end(), {"--schedule", schedule_of(best, 0, options)});
  if (!best.overlap.empty()) words.insert(words.end(), {"--overlap", best.overlap});
  if (best.overlap_evaluations)
    words.insert(words.end(), {"--overlap-search", std::to_string(*best.overlap_evaluations)});
  if (best.method) words.insert(words.end(), {"--iterations", "8"});
  if (has_prompts)
    for (const auto& [option, value] : {std::pair{"--requests", &options.prefill.requests},
                                        {"--backlog", &options.prefill.backlog}})
      if (!value->empty()) words.insert(words.end(), {option, *value});
  return report::shell_text("longhaul", words);
}

}  // namespace

std::string plan_file(std::size_t plan, const char* ending) {
  return fmt::format("plan-{}.{}", plan + 1, ending);
}

ordered_json advice_json(const Advised& advised, const Options& options,
                         const TrainingTerms& terms) {
  const planner::Advice& advice = advised.advice;
  const std::string unit = unit_of(advised.goal);
  ordered_json json = advised.header;
  json["objective"] = planner::to_string(advised.goal);
  json["placed"] = advised.has_places ? ordered_json(advised.facts.front().placed) : ordered_json{};
  json["compared"] = is_of_pipeline(advised) ? "pipeline" : "iteration";
  json["plans"] = ordered_json::array();
  for (std::size_t i = 0; i < advice.plans.size(); ++i)
    json["plans"].push_back(json_of(advised, i, options, terms));
  json["baseline_" + unit] = advice.baseline ? ordered_json(*advice.baseline) : ordered_json{};
  json["waterfall"] = ordered_json::array();
  for (const planner::IdeaValue& each : advice.waterfall)
    json["waterfall"].push_back({{"idea", planner::to_string(each.idea)},
                                 {"alone_" + unit, each.alone},
                                 {"added_" + unit, each.added},
                                 {"removed_" + unit, each.removed}});
  json["not_used"] = ordered_json::array();
  for (const planner::UnusedIdea& each : unused_of(advised))
    json["not_used"].push_back({{"idea", planner::to_string(each.idea)}, {"reason", each.reason}});
  json["bound"] = bound_json(advised);
  json["gap"] = null_or(whole_gap(advised));
  json["layouts"] = advised.points ? ordered_json(*advised.points) : ordered_json{};
  json["pruned"] = advised.pruned ? ordered_json(*advised.pruned) : ordered_json{};
  json["searched"] = advice.evaluated;
  json["stopped"] = advice.is_stopped;
  return json;
}

std::string advice_text(const Advised& advised, const Options& options,
                        const TrainingTerms& terms) {
  std::string text = fmt::format("{}; simulated, decoupled\n", advised.head);
  if (advised.has_places) text += fmt::format("Placed: {}.\n", advised.facts.front().placed);
  text +=
      '\n' + plans_text(advised, options, terms) + waterfall_text(advised, table_width(options));
  for (const planner::UnusedIdea& each : unused_of(advised))
    text += fmt::format("Not used: {} ({}).\n", planner::to_string(each.idea), each.reason);
  if (const std::optional<double> gap = whole_gap(advised))
    text += fmt::format("No plan {}of {} is below {}: the best is at most {} above.\n",
                        advised.methods ? "by exact sums " : "",
                        advised.points ? fmt::format("these {} layouts", *advised.points)
                                       : std::string{"any placement, a pipeline each,"},
                        score_text(*advised.bound, advised.goal), report::percent_text(*gap) + "%");
  if (advised.methods)
    text +=
        "Updates to the loss are those that runs of the curves took; of a composed method they lie "
        "between those of two that ran.\n";
  if (terms.failures.mtbf == Duration::zero() && terms.tokens)
    text += "Days and dollars are without failures (--mtbf).\n";
  text += stuck_text(advised, terms);
  if (advised.advice.is_stopped) text += "The search was ended before all was tried.\n";
  if (options.out.empty()) return text;
  return text + fmt::format("\nThe best again: {}\n", command_of(advised, options));
}

}  // namespace longhaul::cli
