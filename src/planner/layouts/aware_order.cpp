#include <algorithm>

#include "planner/layouts/layout_search.hpp"
#include "planner/layouts/order_time.hpp"
#include "planner/search/best.hpp"
#include "planner/search/makespan.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// What the plan's emitted scenario says, so that the order is the one that commands make of it.
Scenario scenario_of_layout(const LayoutProblem& problem, const Layout& layout) {
  LayoutPlan plan;
  plan.layout = layout;
  return scenario::parse_scenario(scenario_text(problem, plan, "plan"), "plan.toml");
}

Result<Schedule> best_on_links(const Scenario& scenario) {
  SearchOptions options;
  options.moves = kMovesOfBest;
  options.threads = 1;
  options.placements = {schedule::Placement::unidirectional};
  Result<SearchResult> found = try_find_best(scenario, options);
  if (!found) return found.refusal();
  return std::move(found->schedule);
}

Result<Schedule> schedule_of_order(LayoutOrder order, const Scenario& scenario) {
  if (order == LayoutOrder::best) return best_on_links(scenario);
  const schedule::Generator* const generator = schedule::find_generator(to_string(order));
  LONGHAUL_ASSERT(generator != nullptr, "no generator {}", to_string(order));
  return schedule::try_generate(*generator, scenario);
}

Bytes largest_need(const Schedule& schedule, const Scenario& scenario) {
  Bytes most;
  for (const schedule::DeviceNeed& need : schedule::device_memory(schedule, scenario))
    most = std::max(most, need.total());
  return most;
}

}  // namespace

std::optional<AwareOrder> make_aware_order(const LayoutProblem& problem, const Layout& layout,
                                           const LayoutTimes& times) {
  Scenario scenario = scenario_of_layout(problem, layout);
  // Replicas share nothing but for the cells of Atlas: one stands for all.
  if (layout.order != LayoutOrder::atlas) scenario = scenario.of_replica(ReplicaId{0});
  Result<Schedule> made = schedule_of_order(layout.order, scenario);
  if (!made || schedule::first_violation(*made, scenario)) return std::nullopt;
  AwareOrder order;
  order.schedule = std::make_shared<const Schedule>(*std::move(made));
  order.memory = largest_need(*order.schedule, scenario);
  if (is_plain_order(*order.schedule)) {
    order.makespan = play_order(*order.schedule, times);
    return order;
  }
  const Result<Duration> makespan = try_makespan(*order.schedule, scenario);
  if (!makespan) return std::nullopt;
  order.makespan = *makespan;
  return order;
}

}  // namespace longhaul::planner
