#include <algorithm>
#include <cmath>
#include <map>

#include "cli/advise/advised.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "planner/advice/idea_pool.hpp"
#include "prefill/outcome.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::cli {
namespace {

using planner::AdvisedPlan;
using planner::Idea;

/// Plans of each set of ideas whose bubbles are filled, the best without.
constexpr std::size_t kFilled = 3;
constexpr double kNanodollars = 1e9;

/// The best without prompts first.
std::vector<AdvisedPlan> by_score(std::vector<AdvisedPlan> plans) {
  std::ranges::stable_sort(plans, {}, &AdvisedPlan::score);
  return plans;
}

/// Nanodollars that the prompts of an iteration earn, and their tokens.
struct Earned {
  double nanodollars = 0;
  double tokens = 0;
};

Earned earned_in(const AdvisedPlan& plan, const Scenario& scenario, const PrefillInput& input) {
  const FilledSchedule filled =
      fill_bubbles(bubbles_of(plan.schedule, scenario, Arrangement::decoupled), scenario, input);
  const auto iterations = std::max<std::int64_t>(1, filled.outcome.iterations);
  Earned earned;
  earned.tokens =
      static_cast<double>(filled.outcome.tokens_served) / static_cast<double>(iterations);
  earned.nanodollars = earned.tokens * *input.price / 1e6 * kNanodollars;
  return earned;
}

/// The name of a table whose header the line is: "run" of "  [ run ]  # a comment"; else empty.
std::string table_of(const std::string& line) {
  const std::size_t open = line.find_first_not_of(" \t");
  if (open == std::string::npos || line[open] != '[') return {};
  std::string name;
  for (const char letter : line.substr(open)) {
    if (letter == ']') return name;
    if (letter != '[' && letter != ' ' && letter != '\t') name += letter;
  }
  return {};
}

}  // namespace

PrefillInput prompts_of(const Options& options, const Scenario& scenario) {
  PrefillArguments typed = options.prefill;
  typed.objective = "value";
  PrefillInput input = read_prefill_input(typed, scenario);
  if (scenario.served.empty())
    fail("--objective value: {} serves nothing (there is no [prefill]). Add one.", scenario.name);
  return input;
}

FilledPlace place_of_stages(const Scenario& scenario) {
  const double gpu_hour = prefill::gpu_hour_of(scenario).value_or(kAssumedGpuHour);
  return {scenario, 1, scenario.training_ranks() * gpu_hour};
}

std::string carried_text(const Scenario& scenario) {
  const std::string all = scenario::without_stored_options(scenario.text);
  std::string text, held;
  bool is_taken = false, has_prefill = false;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size() - 1);
    const std::string line = all.substr(at, end + 1 - at);
    at = end + 1;
    if (line.starts_with("#: ")) {  // files that the text holds
      held += line;
      continue;
    }
    if (const std::string table = table_of(line); !table.empty()) {
      const bool is_prefill = table == "prefill" || table.starts_with("prefill.");
      is_taken = is_prefill || table == "run" || table.starts_with("run.");
      has_prefill |= is_prefill;
    }
    if (is_taken) text += line;
  }
  if (!has_prefill)
    fail("--objective value: [prefill] of {} is no table of its own lines. Write it as one.",
         scenario.name);
  return "\n" + text + held;
}

planner::Advice filled_advice(const planner::Advice& advice,
                              const std::function<FilledPlace(const AdvisedPlan&)>& place,
                              const PrefillInput& input, std::size_t most,
                              const std::function<bool()>& stopped) {
  planner::IdeaPool pool;
  for (const planner::UnusedIdea& each : advice.unused) pool.refuse(each.idea, each.reason);
  std::map<unsigned long, std::size_t> filled;
  bool is_stopped = advice.is_stopped;
  for (AdvisedPlan plan : by_score(advice.all)) {
    const FilledPlace where = place(plan);
    plan.score = std::llround(where.dollars_per_hour / 3600 *  // nanodollars of a ns
                              static_cast<double>(plan.makespan.count()));
    pool.add(plan);
    pool.note_evaluated();
    is_stopped = is_stopped || (stopped && stopped());
    if (is_stopped) continue;
    if (!plan.overlap.empty()) continue;  // bubbles are those of whole blocks
    if (filled[plan.ideas.to_ulong()]++ >= (plan.ideas.any() ? kFilled : most)) continue;
    const Earned earned = earned_in(plan, where.scenario, input);
    plan.ideas |= planner::only(Idea::prefill);
    plan.score -= std::llround(where.copies * earned.nanodollars);
    plan.prefill_tokens = where.copies * earned.tokens;
    pool.add(std::move(plan));
  }
  planner::Advice found = pool.advice();
  found.evaluated = advice.evaluated;
  found.is_stopped = is_stopped;
  return found;
}

}  // namespace longhaul::cli
