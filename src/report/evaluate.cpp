#include "report/evaluate.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/suggest.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "report/words.hpp"
#include "sim/simulate.hpp"

namespace longhaul::report {
namespace {

/// Takes the solver's proof where it says more. Its class is narrower than ours: what it started
/// from may lie outside, and below.
void raise_bound(ScheduleRecord& record, const planner::SolverResult& solved) {
  if (solved.bound <= record.bound.lower_bound || solved.bound.count() > record.makespan_ns) return;
  record.bound = {solved.bound, solved.holds_for, "the solver's proof"};
}

}  // namespace

Arrangement arrangement_of(std::string_view comm) {
  if (const auto arrangement = from_string<Arrangement>(comm)) return *arrangement;
  fail("--comm: unknown arrangement \"{}\". {}", comm, suggestion(comm, every_name<Arrangement>()));
}

ScheduleRecord evaluate(const planner::ScheduleResult& made, const Scenario& scenario,
                        Arrangement arrangement, Timeline& timeline) {
  const Schedule& schedule = made.schedule;
  const Plan plan = plan::lower(schedule, scenario, arrangement);
  const OpTimes times = sim::simulate(plan);
  plan::append_rows(timeline, plan, times, 0);
  const auto named = std::find(timeline.schedules.begin(), timeline.schedules.end(), plan.schedule);
  const int position = static_cast<int>(named - timeline.schedules.begin());
  const std::int64_t budget = scenario.activation_budget().count();
  ScheduleRecord record =
      make_record(trace::report_iteration(timeline, position, 0, budget), schedule, scenario);
  if (made.solved) raise_bound(record, *made.solved);
  record.resources = plan::occupancy(plan, times);
  std::erase_if(record.resources,
                [](const plan::ResourceUse& use) { return use.kind == ResourceKind::device; });
  return record;
}

std::string size_text(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  return fmt::format("{}, {}, {}", counted(parallel.stages, "stage"),
                     counted(parallel.replicas, "replica"),
                     counted(parallel.microbatches, "microbatch"));
}

std::vector<std::string> ignored_settings(const Scenario& scenario) {
  std::vector<std::string> ignored;
  if (scenario.run.noise > 0) ignored.emplace_back("run.noise");
  const auto& stragglers = scenario.run.stragglers;
  if (std::ranges::any_of(stragglers, [](double factor) { return factor != 1; }))
    ignored.emplace_back("run.stragglers");
  const auto any_link = [&](auto has) { return std::ranges::any_of(scenario.links, has); };
  if (any_link([](const Link& link) { return link.weather.trace != nullptr; }))
    ignored.emplace_back("link.trace");
  if (any_link([](const Link& link) { return link.weather.loss.probability > 0; }))
    ignored.emplace_back("link.loss");
  if (any_link([](const Link& link) { return !link.weather.outages.empty(); }))
    ignored.emplace_back("link.outage");
  return ignored;
}

std::string ignored_text(const Scenario& scenario, std::string_view but) {
  const std::vector<std::string> ignored = ignored_settings(scenario);
  if (ignored.empty()) return {};
  return fmt::format("\npredictions leave out {} (for ranks that play the scenario{})\n",
                     fmt::join(ignored, " and "), but);
}

std::string json_text(const nlohmann::ordered_json& json) {
  // File names are bytes, JSON is UTF-8: what is neither is replaced, not refused.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace longhaul::report
