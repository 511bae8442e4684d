#include "report/evaluate.hpp"

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/table.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "plan/rows.hpp"
#include "planner/plan_memory.hpp"
#include "planner/search/in_parallel.hpp"
#include "planner/search/makespan.hpp"
#include "report/record.hpp"
#include "sim/simulate.hpp"
#include "trace/report/report_rows.hpp"

namespace longhaul::report {
namespace {

/// Takes the solver's proof where it says more. Its class is narrower than ours: what it started
/// from may lie outside, and below.
void raise_bound(ScheduleRecord& record, const planner::SolverResult& solved) {
  if (record.bound && solved.bound <= record.bound->lower_bound) return;
  if (solved.bound.count() > record.makespan_ns) return;
  record.bound = planner::Bound{solved.bound, solved.holds_for, "the solver's proof"};
}

/// How much later than all blocks and collectives the optimizer's steps end.
Duration after_last_block(const Plan& plan, const OpTimes& times) {
  Duration blocks{}, all{};
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind == OpKind::send || (op.kind == OpKind::recv && !is_step(op))) continue;
    all = std::max(all, times[i].end);
    if (!is_optimizer_step(op)) blocks = std::max(blocks, times[i].end);
  }
  return all - blocks;
}

constexpr int kMostIterations = 1'000'000;

UnderWeather under_weather(const Schedule& schedule, const Scenario& scenario,
                           Arrangement arrangement, int iterations) {
  const Plan plan = planner::lower_reported(schedule, scenario, arrangement).plan;
  const plan::Weather weather{plan, scenario};
  UnderWeather result;
  result.schedule = schedule.name;
  result.calm = planner::makespan_of(schedule, scenario, arrangement);
  result.varies = !weather.calm();
  result.iterations = sim::play_iterations(plan, weather, iterations);
  for (const sim::PlayedIteration& played : result.iterations)
    result.sorted.push_back(played.makespan);
  std::ranges::sort(result.sorted);
  return result;
}

}  // namespace

ScheduleRecord evaluate(const planner::ScheduleResult& made, const Scenario& scenario,
                        Arrangement arrangement, Bounds bounds, Timeline* timeline,
                        Granularity granularity, std::size_t most_ops) {
  const Schedule& schedule = made.schedule;
  const bool inside = granularity != Granularity::blocks;
  auto [plan, grain] = planner::lower_reported(schedule, scenario, arrangement, most_ops);
  std::optional<OperatorReport> operators;
  if (inside) {
    plan = plan::with_operators(std::move(plan), schedule, scenario, granularity).or_throw();
    operators = report_operators(plan);
    // What slows a block slows some of its operators: its time says no longer when they end.
    if (!plan.extras.overlap.none()) plan = plan::expand(plan);
  }
  const OpTimes times = sim::simulate(plan);
  if (timeline != nullptr) {
    if (inside && plan.granularity == Granularity::blocks)
      plan::append_operator_rows(*timeline, plan, times, 0);
    else
      plan::append_rows(*timeline, plan, times, 0);
  }
  trace::IterationReport report = trace::report_rows(
      plan::PlanRows{plan, times}, scenario.activation_budget().count(), plan.datacenters);
  report.schedule = plan.schedule;
  const bool looked_for = made.found || made.solved;
  ScheduleRecord record =
      make_record(report, schedule, scenario, looked_for ? Bounds::computed : bounds);
  record.makespan_ns -= after_last_block(plan, times).count();
  record.per_microbatch_ns =
      static_cast<double>(record.makespan_ns) / scenario.parallel.microbatches;
  if (made.solved) raise_bound(record, *made.solved);
  record.grain = grain;
  record.resources = plan::occupancy(plan, times);
  std::erase_if(record.resources,
                [](const plan::ResourceUse& use) { return use.kind == ResourceKind::device; });
  record.operators = std::move(operators);
  return record;
}

std::vector<ScheduleRecord> evaluate_all(std::span<const planner::ScheduleResult> schedules,
                                         const Scenario& scenario, Arrangement arrangement,
                                         Bounds bounds, int threads, Granularity granularity) {
  if (threads == 0) {
    const std::int64_t one =
        std::max<std::int64_t>(1, planner::least_plan_memory(scenario).count());
    const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
    threads =
        static_cast<int>(std::clamp(planner::free_memory().count() / one, std::int64_t{1}, cores));
  }
  std::vector<ScheduleRecord> records(schedules.size());
  planner::in_parallel(schedules.size(), threads, [&](std::size_t i) {
    records[i] = evaluate(schedules[i], scenario, arrangement, bounds, nullptr, granularity);
  });
  return records;
}

Duration UnderWeather::median() const {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2;
}

Duration UnderWeather::whole() const {
  return iterations.back().begin + iterations.back().makespan;
}

void require_iteration_count(int iterations) {
  if (iterations < 1 || iterations > kMostIterations)
    fail("--iterations {} is out of range (1 to {}). Choose a value in it.", iterations,
         kMostIterations);
}

std::vector<UnderWeather> all_under_weather(std::span<const planner::ScheduleResult> schedules,
                                            const Scenario& scenario, Arrangement arrangement,
                                            int iterations) {
  std::vector<UnderWeather> result;
  for (const planner::ScheduleResult& made : schedules)
    result.push_back(under_weather(made.schedule, scenario, arrangement, iterations));
  return result;
}

std::string under_weather_text(std::span<const UnderWeather> schedules, const Scenario& scenario) {
  double longest = 0;
  double whole = 0;
  bool varies = false;
  for (const UnderWeather& each : schedules) {
    longest = std::max({longest, static_cast<double>(each.sorted.back().count()),
                        static_cast<double>(each.calm.count())});
    whole = std::max(whole, static_cast<double>(each.whole().count()));
    varies = varies || each.varies;
  }
  const TimeScale scale{longest};
  const TimeScale of_run{whole};
  Table table{{{"under weather", Align::left},
               {fmt::format("median [{}]", scale.unit())},
               {"min"},
               {"max"},
               {"calm"},
               {fmt::format("all [{}]", of_run.unit())}}};
  const auto cell = [](const TimeScale& of, Duration time) {
    return of.text(static_cast<double>(time.count()));
  };
  for (const UnderWeather& each : schedules)
    table.add_row({each.schedule, cell(scale, each.median()), cell(scale, each.sorted.front()),
                   cell(scale, each.sorted.back()), cell(scale, each.calm),
                   cell(of_run, each.whole())});
  const std::string title =
      varies ? fmt::format("weather (run.seed = {})", scenario.run.seed)
             : std::string{"weather, which is calm (no link that they use has any)"};
  return fmt::format("\n{} iterations back to back under {}:\n",
                     schedules.empty() ? 0 : schedules.front().iterations.size(), title) +
         table.text();
}

nlohmann::ordered_json under_weather_json(std::span<const UnderWeather> schedules) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const UnderWeather& each : schedules) {
    json.push_back({{"schedule", each.schedule},
                    {"median_ns", each.median().count()},
                    {"min_ns", each.sorted.front().count()},
                    {"max_ns", each.sorted.back().count()},
                    {"calm_ns", each.calm.count()},
                    {"all_ns", each.whole().count()},
                    {"iterations", nlohmann::ordered_json::array()}});
    for (const sim::PlayedIteration& played : each.iterations)
      json.back()["iterations"].push_back(
          {{"begin_ns", played.begin.count()}, {"makespan_ns", played.makespan.count()}});
  }
  return json;
}

}  // namespace longhaul::report
