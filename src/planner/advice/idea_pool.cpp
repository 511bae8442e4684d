#include "planner/advice/idea_pool.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace longhaul::planner {
namespace {

constexpr std::array kIdeas = every<Idea>();

IdeaSet every_idea() { return IdeaSet{}.set(); }

/// Of plans that use it.
const char* why_no_gain(Idea idea) {
  switch (idea) {
    case Idea::layout: return "no other layout is better than a node's GPUs and the least p";
    case Idea::sites: return "no other choice of datacenters is better";
    case Idea::order: return "no order that knows of delays is faster than the static ones";
    case Idea::turns: return "no turns on the WAN are faster than sending for oneself";
    case Idea::overlap: return "no overlap of collectives is faster";
    case Idea::prefill: return "prompts earn nothing";
    case Idea::method: return "no method reaches the loss sooner than exact sums";
  }
  return "";
}

}  // namespace

IdeaSet ideas_of(const schedule::Generator* from, const Schedule& made) {
  IdeaSet ideas;
  if (made.cell > 1) ideas |= only(Idea::turns);
  const bool turns_are_its_own = from != nullptr && from->shares_wan;
  const bool knows_links = from == nullptr || !schedule::is_static(from->knowledge);
  if (turns_are_its_own ? made.cell == 1 : knows_links) ideas |= only(Idea::order);
  return ideas;
}

void IdeaPool::add(AdvisedPlan plan) { plans_.push_back(std::move(plan)); }

const AdvisedPlan* IdeaPool::best_within(const IdeaSet& ideas) const {
  const AdvisedPlan* best = nullptr;
  for (const AdvisedPlan& each : plans_)
    if (!each.is_late() && is_within(each.ideas, ideas) &&
        (best == nullptr || each.score < best->score))
      best = &each;
  return best;
}

Score IdeaPool::score_with(const IdeaSet& ideas) const {
  const AdvisedPlan* const best = best_within(ideas);
  return best == nullptr ? std::numeric_limits<Score>::max() : best->score;
}

bool IdeaPool::has_method(int scenario) const {
  return std::ranges::any_of(plans_, [&](const AdvisedPlan& plan) {
    return plan.scenario == scenario && plan.method.has_value();
  });
}

std::pair<Duration, Score> IdeaPool::standing_of(int scenario) const {
  std::pair best{Duration::max(), std::numeric_limits<Score>::max()};
  for (const AdvisedPlan& each : plans_)
    if (each.scenario == scenario) best = std::min(best, {each.late_by, each.score});
  return best;
}

std::vector<AdvisedPlan> IdeaPool::plans_in_time() const {
  std::vector<AdvisedPlan> found;
  std::ranges::copy_if(plans_, std::back_inserter(found), std::not_fn(&AdvisedPlan::is_late));
  return found;
}

std::vector<Schedule> IdeaPool::fastest_of(int scenario, const IdeaSet& ideas,
                                           std::size_t most) const {
  std::vector<const AdvisedPlan*> found;
  for (const AdvisedPlan& each : plans_)
    if (each.scenario == scenario && each.ideas == ideas && !each.method) found.push_back(&each);
  std::ranges::stable_sort(found, {}, [](const AdvisedPlan* plan) { return plan->makespan; });
  std::vector<Schedule> schedules;
  for (std::size_t i = 0; i < std::min(most, found.size()); ++i)
    schedules.push_back(found[i]->schedule);
  return schedules;
}

void IdeaPool::set_bound(int scenario, const Bound& bound) {
  for (AdvisedPlan& each : plans_)
    if (each.scenario == scenario && !each.method && each.bound.lower_bound == Duration::zero())
      each.bound = bound;
}

void IdeaPool::set_bound_of_methods(int scenario, const Bound& bound) {
  for (AdvisedPlan& each : plans_)
    if (each.scenario == scenario && each.method) each.bound = bound;
}

Advice IdeaPool::advice() const {
  Advice advice;
  advice.evaluated = evaluated_;
  advice.is_stopped = is_stopped_;
  for (std::uint32_t bits = 0; bits < (1U << kCountOf<Idea>); ++bits)
    if (const AdvisedPlan* const plan = best_within(IdeaSet{bits}); plan && plan->ideas == bits)
      advice.plans.push_back(*plan);
  std::ranges::stable_sort(advice.plans, {}, &AdvisedPlan::score);
  if (const AdvisedPlan* const fixed = best_within({})) {
    advice.baseline = fixed->score;
    advice.waterfall = waterfall();
  }
  for (const Idea idea : kIdeas)
    if (score_with(every_idea().reset(static_cast<std::size_t>(idea))) == score_with(every_idea()))
      advice.unused.push_back({idea, reason_of(idea)});
  return advice;
}

std::vector<IdeaValue> IdeaPool::waterfall() const {
  std::vector<IdeaValue> values;
  IdeaSet used;
  while (!used.all()) {
    std::optional<Idea> next;
    for (const Idea idea : kIdeas)
      if (!has(used, idea) &&
          (!next || score_with(used | only(idea)) < score_with(used | only(*next))))
        next = idea;
    const IdeaSet more = used | only(*next);
    const IdeaSet others = every_idea() & ~only(*next);
    values.push_back({*next, score_with({}) - score_with(only(*next)),
                      score_with(used) - score_with(more),
                      score_with(others) - score_with(every_idea())});
    used = more;
  }
  return values;
}

std::string IdeaPool::reason_of(Idea idea) const {
  bool is_tried = false, is_in_time = false;
  for (const AdvisedPlan& plan : plans_) {
    is_tried |= has(plan.ideas, idea);
    is_in_time |= has(plan.ideas, idea) && !plan.is_late();
  }
  if (is_tried && !is_in_time) return "every plan with it ends after the deadline";
  for (const Exclusion& each : exclusions_) {
    if (each.one != idea && each.other != idea) continue;
    const Idea other = each.one == idea ? each.other : each.one;
    const bool gains = score_with(only(idea)) < score_with({});
    if (gains && best() != nullptr && has(best()->ideas, other))
      return fmt::format("it does not go with {}: {}", to_string(other), each.reason);
  }
  const std::string& refused = reasons_[static_cast<std::size_t>(idea)];
  if (is_tried || (refused.empty() && !is_stopped_)) return why_no_gain(idea);
  return refused.empty() ? "it was not tried before the search was ended" : refused;
}

}  // namespace longhaul::planner
