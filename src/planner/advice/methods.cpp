#include "planner/advice/methods.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/search/makespan.hpp"
#include "planner/tune/family_between.hpp"
#include "planner/tune/stream_period.hpp"

namespace longhaul::planner {
namespace {

constexpr int kStreamedIterations = 24;
constexpr int kMostStaleness = 16;  // of a scenario
/// Of a set of a part, to see how many of it travel.
constexpr Bytes kTriedMessage{1'000'000};

/// Sets as the member exchanges them, of all numbers of a part where `message` says nothing.
Scenario exchanging_scenario(Scenario scenario, const FamilyMember& member,
                             std::optional<Bytes> message) {
  scenario.parallel.gradient_sync = GradientSync::compressed;
  Training& train = scenario.train;
  train.compress.method = CompressMethod::none;
  train.compress.exchange = member.exchange;
  train.serve = member.serve;
  train.staleness = member.staleness;
  train.local_steps = 1;
  train.adapt.every = 0;
  train.message = message;
  if (!member.has_host_tasks)
    for (const auto task : kPartCosts)
      if (!(train.costs.*task).empty()) train.costs.*task = {Duration::zero()};
  return scenario;
}

/// Between datacenters, all ways together; of everything.
Result<double> bytes_over_wan(const Schedule& schedule, const Scenario& scenario) {
  const Result<ReportedPlan> lowered =
      try_lower_reported(schedule, scenario, Arrangement::decoupled);
  if (!lowered) return lowered.refusal();
  return bytes_between_datacenters(lowered->plan);
}

/// Bytes of a number that a member sends before it makes them less, over those that the scenario
/// counts where it says no method: 4 of a weight, with a [model] of 2.
double width_over(const Scenario& scenario, const TrainingMethods& methods,
                  const FamilyMember& member) {
  constexpr double kF32 = 4;
  if (change_of(member) == TrainingChange::exact) return scenario.model ? 0.5 : 1;
  return scenario.model ? 1 : kF32 / methods.bytes_of_weight;
}

Duration longest_step(const Scenario& scenario) {
  const std::vector<Duration>& steps = scenario.costs.optimizer;
  return steps.empty() ? Duration::zero() : *std::ranges::max_element(steps);
}

}  // namespace

TrainingChange change_of(const FamilyMember& member) {
  const std::string_view name = std::string_view{member.method}.substr(0, member.method.find(':'));
  if (name != to_string(CompressMethod::none) || member.local_steps > 1)
    return TrainingChange::lossy;
  return member.staleness > 0 ? TrainingChange::stale : TrainingChange::exact;
}

std::optional<double> TrainingMethods::updates(std::optional<std::size_t> other) const {
  return updates_to(other ? others[*other] : dense, loss).median;
}

TrainingMethods allowed_methods(const std::vector<FamilyMember>& members, TrainingChange most,
                                double loss) {
  constexpr double kMostBytes = 1e15;
  TrainingMethods methods;
  methods.loss = loss;
  std::optional<double> fewest;
  for (const FamilyMember& each : members) {
    if (each.staleness > kMostStaleness || each.wan_bytes > kMostBytes)
      fail("{}: a staleness above {} or more than {:g} bytes of an exchange. Check the curves.",
           each.method, kMostStaleness, kMostBytes);
    const std::optional<double> updates = updates_to(each, loss).median;
    if (updates == 0.0)
      fail("{} has a loss of {:g} before its first update. Give a lower target.", each.method,
           loss);
    if (change_of(each) == TrainingChange::exact) {
      if (!updates || each.wan_bytes < 1 || (fewest && *fewest <= *updates)) continue;
      fewest = updates;
      methods.dense = each;
    } else if (change_of(each) <= most) {
      methods.others.push_back(each);
    }
  }
  if (!fewest)
    fail(
        "no \"none\" without staleness and local steps, which others are held against, reaches a "
        "loss of {:g} (and sends something). Add its runs, or train longer.",
        loss);
  methods.others.insert(methods.others.begin(), methods.dense);
  for (FamilyMember& each : members_between(methods.others))
    if (const TrainingChange change = change_of(each);
        change != TrainingChange::exact && change <= most)
      methods.others.push_back(std::move(each));
  return methods;
}

Scenario without_sums(Scenario scenario) {
  scenario.parallel.gradient_sync = GradientSync::none;
  return scenario;
}

Result<BesideMethods> beside_methods(const Schedule& schedule, const Scenario& scenario,
                                     const TrainingMethods& methods) {
  const Result<double> blocks = bytes_over_wan(schedule, without_sums(scenario));
  if (!blocks) return blocks.refusal();
  const Result<double> all =
      bytes_over_wan(schedule, exchanging_scenario(scenario, methods.dense, std::nullopt));
  if (!all) return all.refusal();
  if (*all <= *blocks) return refused("no gradients travel between datacenters");
  const Result<Duration> alone = try_makespan(schedule, without_sums(scenario));
  if (!alone) return alone.refusal();
  return BesideMethods{*blocks, *all - *blocks, *alone};
}

Result<Scenario> scenario_with_method(const Schedule& schedule, const Scenario& scenario,
                                      const TrainingMethods& methods, std::size_t method,
                                      const BesideMethods& beside) {
  const FamilyMember& member = methods.others[method];
  const Result<double> tried =
      bytes_over_wan(schedule, exchanging_scenario(scenario, member, kTriedMessage));
  if (!tried) return tried.refusal();
  const double wanted = beside.dense_bytes * width_over(scenario, methods, member) *
                        member.wan_bytes / methods.dense.wan_bytes;
  const double share = wanted / (*tried - beside.block_bytes);
  const double message = share * static_cast<double>(kTriedMessage.count());
  return exchanging_scenario(scenario, member,
                             Bytes{std::max<std::int64_t>(1, std::llround(message))});
}

Result<Duration> time_with_method(const Schedule& schedule, const Scenario& scenario,
                                  const Scenario& own, const FamilyMember& method,
                                  const BesideMethods& beside) {
  if (method.staleness > 0) {
    const Result<ReportedPlan> plan = try_lower_reported(schedule, own, Arrangement::decoupled);
    if (!plan) return plan.refusal();
    const Duration period = stream_period(plan->plan, kStreamedIterations);
    return std::max(beside.alone, period + longest_step(scenario));
  }
  const Result<Duration> exchanging = try_makespan(schedule, own);
  if (!exchanging) return exchanging.refusal();
  const std::int64_t steps = method.local_steps;
  const Duration all = beside.alone * (steps - 1) + *exchanging + longest_step(scenario);
  return Duration{(all.count() + steps / 2) / steps};
}

}  // namespace longhaul::planner
