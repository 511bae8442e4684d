#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/program/option_values.hpp"
#include "base/program/program.hpp"
#include "base/suggest.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/advise/advised.hpp"
#include "cli/command/stop_signal.hpp"
#include "cli/plan/layout_plan.hpp"
#include "report/planning.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/search_section.hpp"
#include "schedule/csv/csv.hpp"

namespace longhaul::cli {
namespace {

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

Duration time_of(const char* option, const std::string& text) {
  try {
    return parse_duration(text);
  } catch (const Error& error) {
    fail("{}: {}", option, error.what());
  }
}

TrainingTerms terms_of(const AdviseArguments& typed) {
  TrainingTerms terms;
  if (!typed.tokens.empty()) terms.tokens = positive_number("--tokens", typed.tokens);
  if (!typed.deadline.empty()) {
    if (!terms.tokens) fail("--deadline: how much is trained is not known. Give --tokens, too.");
    terms.deadline_days = days_of("--deadline", typed.deadline);
  }
  if (typed.mtbf.empty() != typed.checkpoint.empty())
    fail("{}: it has no effect alone. Give --mtbf and --checkpoint, or none of them.",
         typed.mtbf.empty() ? "--checkpoint" : "--mtbf");
  if (typed.mtbf.empty()) return terms;
  terms.failures.mtbf = time_of("--mtbf", typed.mtbf);
  terms.failures.checkpoint = time_of("--checkpoint", typed.checkpoint);
  if (terms.failures.mtbf <= Duration::zero())
    fail("--mtbf: {} is no time between failures. Give one, as 50000h.", typed.mtbf);
  if (terms.failures.checkpoint < Duration::zero())
    fail("--checkpoint: {} is no time that writing one takes. Give one, as 60s.", typed.checkpoint);
  if (planner::share_lost(terms.failures, 1) >= 1)
    fail(
        "--mtbf {}: a GPU fails within the time of two checkpoints (--checkpoint {}), so that "
        "training never gets on. Give the mean of one GPU, as 50000h.",
        typed.mtbf, typed.checkpoint);
  return terms;
}

/// Each plan's scenario as text that needs no --set, for a file of its own in --out.
void give_own_scenarios(Advised& advised, const Options& options) {
  advised.scenarios.resize(advised.facts.size());
  for (std::size_t i = 0; i < advised.facts.size(); ++i) {
    PlanFacts& facts = advised.facts[i];
    std::string& text = advised.scenarios[i];
    const planner::AdvisedPlan& plan = advised.advice.plans[i];
    const std::string overlap = plan.overlap.empty() ? "" : " --overlap " + plan.overlap;
    const bool is_complete = !text.empty() && facts.set.empty();
    if (!is_complete)
      text = plan_text(options.files.front(), text, facts.set,
                       fmt::format("Plan {} of `longhaul advise`: --schedule {}{}.", i + 1,
                                   plan_file(i, "csv"), overlap));
    facts.scenario = (std::filesystem::path{options.out} / plan_file(i, "toml")).string();
  }
}

void write_all(const Advised& advised, const nlohmann::ordered_json& json,
               const std::filesystem::path& directory) {
  std::error_code problem;
  if (!std::filesystem::create_directory(directory, problem))
    fail("--out {}: it cannot be made ({}). Name a directory that does not exist yet.",
         directory.string(), problem ? problem.message() : "it exists");
  for (std::size_t i = 0; i < advised.advice.plans.size(); ++i)
    report::write_new_file(directory / plan_file(i, "csv"), [&](std::ostream& out) {
      out << schedule::write_csv(advised.advice.plans[i].schedule);
    });
  for (std::size_t i = 0; i < advised.scenarios.size(); ++i)
    report::write_new_file(directory / plan_file(i, "toml"),
                           [&](std::ostream& out) { out << advised.scenarios[i]; });
  report::write_new_file(directory / "advice.json",
                         [&](std::ostream& out) { out << report::json_text(json); });
}

/// Options of prompts that would have no effect.
void require_prompts_are_worth(const Options& options) {
  if (options.advise.objective == "value") return;
  for (const auto& [option, value] : {std::pair{"--requests", &options.prefill.requests},
                                      {"--backlog", &options.prefill.backlog},
                                      {"--prefill-price", &options.prefill.price}})
    if (!value->empty())
      fail("{}: it has no effect without --objective value. Add that, or leave it out.", option);
}

/// --without that names no datacenter.
void require_leavers_are_there(const Options& options, const scenario::ConfigNode& root) {
  if (options.advise.without.empty()) return;
  std::vector<std::string> known;
  if (const scenario::ConfigNode* const datacenters = root.find("datacenter"))
    for (const scenario::ConfigNode& each : datacenters->items)
      if (const scenario::ConfigNode* const name = each.find("name")) known.push_back(name->text);
  for (const std::string& name : options.advise.without)
    if (std::ranges::find(known, name) == known.end())
      fail("--without {}: {} has no such datacenter. {}", name, options.files.front(),
           suggestion(name, known));
}

/// Until it is done or SIGINT comes. `root`: of the scenario, which may say how many stages it has.
Advised searched(const Options& options, const scenario::ConfigNode& root,
                 const TrainingTerms& terms, planner::AdviceOptions how) {
  const StopSignal signal;
  how.stopped = StopSignal::came;
  constexpr int kPercent = 100;
  Progress progress{"advise", kPercent};
  progress.update(0);
  how.after_step = [&](int done, int all, const planner::AdvisedPlan& best) {
    progress.update(kPercent * done / all,
                    fmt::format("{} so far, {}", to_text(best.makespan), best.schedule.name));
  };
  return scenario::read_searched_text(root).has_stages
             ? advised_of_stages(options, std::move(how), terms)
             : advised_of_layouts(options, std::move(how), terms);
}

}  // namespace

std::optional<Duration> longest_iteration(const TrainingTerms& terms,
                                          std::optional<double> tokens_per_iteration,
                                          std::int64_t gpus) {
  if (!terms.deadline_days) return std::nullopt;
  if (!tokens_per_iteration)
    fail("--deadline: what an iteration trains is not known (there is no [model]). Leave it out.");
  constexpr double kNsOfDay = 86'400e9, kLongestNs = 0x1p62;
  const double iterations = std::ceil(*terms.tokens / *tokens_per_iteration);
  const double ns = *terms.deadline_days * kNsOfDay / iterations *
                    (1 - planner::share_lost(terms.failures, gpus));
  return Duration{std::llround(std::min(kLongestNs, ns))};
}

std::vector<std::string> overrides_with_leavers(const Options& options) {
  std::vector<std::string> overrides = options.overrides;
  for (const std::string& name : options.advise.without)
    overrides.push_back(fmt::format("datacenter.{}.gpus=0", name));
  return overrides;
}

Answer advise_command(const Options& options) {
  const TimePoint begin = now();
  const planner::AdviceOptions how = advice_options_of(options.advise);
  const TrainingTerms terms = terms_of(options.advise);
  require_prompts_are_worth(options);
  const std::string& file = options.files.front();
  const scenario::ConfigNode root =
      scenario::scenario_tree(read_text_file(file), file, options.overrides);
  require_leavers_are_there(options, root);
  if (!options.out.empty() && std::filesystem::exists(options.out))
    fail("--out {}: it exists. Name a directory that does not exist yet.", options.out);
  Advised advised = searched(options, root, terms, how);
  if (!options.out.empty()) give_own_scenarios(advised, options);
  nlohmann::ordered_json json = advice_json(advised, options, terms);
  json["seconds"] = std::chrono::duration<double>(now() - begin).count();
  if (!options.out.empty()) write_all(advised, json, options.out);
  if (options.json) return {report::json_text(json)};
  return {advice_text(advised, options, terms)};
}

}  // namespace longhaul::cli
