#include "planner/advice/methods.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/search/makespan.hpp"
#include "planner/tune/family_between.hpp"
#include "planner/tune/stream_period.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"

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
  exchange_as(train, member);
  train.compress.method = CompressMethod::none;
  train.local_steps = 1;  // here each is an iteration of its own
  train.message = message;
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

/// From one exchange to the next, of all iterations between them; `own`: the scenario with its
/// sets.
Result<Duration> period_with(const Schedule& schedule, const Scenario& own,
                             const FamilyMember& member, const BesideMethods& beside) {
  if (member.staleness > 0) {
    const Result<ReportedPlan> plan = try_lower_reported(schedule, own, Arrangement::decoupled);
    if (!plan) return plan.refusal();
    return std::max(beside.alone,
                    stream_period(plan->plan, kStreamedIterations) + longest_step(own));
  }
  const Result<Duration> exchanging = try_makespan(schedule, own);
  if (!exchanging) return exchanging.refusal();
  return beside.alone * (member.local_steps - 1) + *exchanging + longest_step(own);
}

Result<Schedule> in_parts(const Scenario& scenario) {
  return schedule::try_generate(*schedule::find_generator("stella"), scenario);
}

/// The same of the schedule `stella`: all local steps are one iteration of a stream.
Result<Duration> streamed_period(Scenario own, const FamilyMember& member) {
  own.parallel.microbatches = own.train.local_steps = member.local_steps;
  const Result<Schedule> schedule = in_parts(own);
  if (!schedule) return schedule.refusal();
  const Result<ReportedPlan> plan = try_lower_reported(*schedule, own, Arrangement::decoupled);
  if (!plan) return plan.refusal();
  return stream_period(plan->plan, kStreamedIterations) + member.local_steps * longest_step(own);
}

/// In the mean of all updates until the loss, which is reached.
Duration mean_update(const FamilyForecast& forecast, int local_steps) {
  if (forecast.early_exchanges == 0)
    return Duration{(forecast.period.count() + local_steps / 2) / local_steps};
  const double updates = *forecast.updates.median;
  return Duration{std::llround(1e9 * forecast.seconds_of(updates, local_steps) / updates)};
}

}  // namespace

std::optional<std::string> why_not_played(const FamilyMember& member) {
  if (member.fragments > 1 || member.overlap > 0)
    return "local steps are iterations here, and its sets travel after some steps and come after "
           "others";
  if (member.method.ends_with(kHetero))
    return "it divides batches by the throughput of replicas, and plans are of the scenario's own";
  if (member.staleness > 0 && member.local_steps > 1)
    return "it has local steps, which begin with the weights of the last exchange, and staleness";
  return std::nullopt;
}

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
    if (auto why = why_not_played(each)) {
      if (change_of(each) <= most) methods.left_out.push_back({each.method, *std::move(why)});
      continue;
    }
    if (each.staleness > kMostStaleness ||
        std::max(each.wan_bytes, each.early_wan_bytes) > kMostBytes)
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

Result<Schedule> stream_of_parts(const Scenario& scenario, const TrainingMethods& methods) {
  if (scenario.parallel.stages > 1 || scenario.parallel.microbatches > 1 ||
      !scenario.parallel.replica_microbatches.empty())
    return refused("a replica has stages, or several microbatches");
  return in_parts(exchanging_scenario(scenario, methods.dense, std::nullopt));
}

Result<MethodPlay> play_method(const Schedule& schedule, const Scenario& scenario,
                               const TrainingMethods& methods, std::size_t method,
                               const BesideMethods& beside, Played how) {
  const FamilyMember& member = methods.others[method];
  const UpdatesToLoss updates = updates_to(member, methods.loss);
  if (!updates.median) return refused("{} does not reach the loss", member.method);
  const Result<double> tried =
      bytes_over_wan(schedule, exchanging_scenario(scenario, member, kTriedMessage));
  if (!tried) return tried.refusal();
  const auto sending = [&](double wan_bytes) {
    const double wanted = beside.dense_bytes * width_over(scenario, methods, member) * wan_bytes /
                          methods.dense.wan_bytes;
    const double share = wanted / (*tried - beside.block_bytes);
    const double message = share * static_cast<double>(kTriedMessage.count());
    return exchanging_scenario(scenario, member,
                               Bytes{std::max<std::int64_t>(1, std::llround(message))});
  };
  const auto period = [&](const Scenario& own) {
    return how == Played::streamed ? streamed_period(own, member)
                                   : period_with(schedule, own, member, beside);
  };
  MethodPlay play{sending(member.wan_bytes), {.updates = updates}, {}};
  const Result<Duration> later = period(play.scenario);
  if (!later) return later.refusal();
  play.forecast.period = play.forecast.early_period = *later;
  if (member.early_exchanges > 0) {
    const Result<Duration> early = period(sending(member.early_wan_bytes));
    if (!early) return early.refusal();
    play.forecast.early_exchanges = member.early_exchanges;
    play.forecast.early_period = *early;
  }
  play.update = mean_update(play.forecast, member.local_steps);
  return play;
}

}  // namespace longhaul::planner
