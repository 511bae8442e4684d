#include "planner/layouts/layout_figures.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "planner/predict/predict.hpp"

namespace longhaul::planner {
namespace {

using profile::Parameter;
using profile::ParameterValues;

constexpr double kSecondsOfDay = 86400;
constexpr double kOfNormal = 1.6449;  ///< 90% lie within so many standard deviations
constexpr double kStep = 1e-3;

double in_seconds(Duration time) { return static_cast<double>(time.count()) / 1e9; }

Duration times_factor(Duration time, double factor) {
  return Duration{std::llround(static_cast<double>(time.count()) * factor)};
}

/// Of so many plans the parameters' effects are those on the makespan, of more those on its bound,
/// which has nearly the same path and takes no order.
constexpr std::size_t kFewPlans = 100;
enum class SpreadOf : std::uint8_t { makespan, bound };

/// Standard deviation of the logarithm of a plan's time.
double spread_of(const LayoutProblem& problem, const LayoutPlan& plan, LayoutTimer& timer,
                 OrderTimer& orders, SpreadOf what) {
  (void)timer.graph(plan.layout);
  if (plan.schedule && !is_plain_order(*plan.schedule)) what = SpreadOf::bound;
  const Duration here = what == SpreadOf::bound ? plan.bound : plan.iteration;
  double variance = kModelSpread * kModelSpread;
  for (const Parameter parameter : every<Parameter>()) {
    ParameterValues moved = problem.values;
    moved[parameter] *= 1 + kStep;
    const LayoutTimes times = timer.times(plan.layout, &moved);
    const Duration there = what == SpreadOf::bound ? least_makespan(plan.layout, times)
                           : plan.schedule         ? play_order(*plan.schedule, times)
                                                   : orders.makespan(plan.layout, times);
    const double by = (in_seconds(there) / in_seconds(here) - 1) / kStep;
    const double share = by * profile::facts_of(parameter).spread;
    variance += share * share;
  }
  return std::sqrt(variance);
}

}  // namespace

double paper_flops(const profile::TrainingRow& model) {
  const double B = model.global_batch, s = model.sequence, L = model.layers, h = model.hidden;
  return 72 * B * s * L * h * h * (1 + s / (6 * h) + model.vocabulary / (12 * L * h));
}

double paper_utilisation(const profile::TrainingRow& model, Duration iteration, std::int64_t gpus,
                         double peak_flops) {
  return paper_flops(model) / (static_cast<double>(gpus) * in_seconds(iteration) * peak_flops);
}

double own_flops(const profile::TrainingRow& model) {
  const double h = model.hidden;
  const double kv = h / model.heads * model.kv_heads;
  const double maps = model.mlp == MlpKind::swiglu ? 3 : 2;
  const double linear = 2 * h * h + 2 * h * kv + maps * h * model.intermediate;
  const double tokens = double(model.global_batch) * model.sequence;
  const double attention = model.sequence * h;  // two products of s h, halved
  return 6 * tokens * (model.layers * (linear + attention) + h * model.vocabulary);
}

TrainingCost cost_of(const TrainingRun& run, Duration iteration, double gpus) {
  TrainingCost cost;
  cost.dollars_per_hour = run.dollars_per_gpu_hour * gpus;
  if (run.iterations) {
    cost.days = *run.iterations * in_seconds(iteration) / kSecondsOfDay;
    cost.dollars = *cost.days * 24 * cost.dollars_per_hour;
  }
  return cost;
}

double iterations_of(double tokens, const profile::TrainingRow& model) {
  return std::ceil(tokens / (double(model.global_batch) * model.sequence) * (1 - 1e-12));
}

void add_intervals(const LayoutProblem& problem, std::vector<LayoutPlan>& plans) {
  LayoutTimer timer{problem};
  OrderTimer orders;
  const SpreadOf what = plans.size() > kFewPlans ? SpreadOf::bound : SpreadOf::makespan;
  for (LayoutPlan& plan : plans) {
    std::pair<double, double> factors;
    if (problem.interval) {
      factors = *problem.interval;
    } else {
      const double width = kOfNormal * spread_of(problem, plan, timer, orders, what);
      factors = {std::exp(-width), std::exp(width)};
    }
    plan.low = times_factor(plan.iteration, factors.first);
    plan.high = times_factor(plan.iteration, factors.second);
  }
}

}  // namespace longhaul::planner
